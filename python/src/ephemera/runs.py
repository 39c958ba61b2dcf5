"""Runs: policies of the catalogue in the loop of Go, policies of Python in a loop here, in the same worlds."""

from __future__ import annotations

import csv
import functools
import hashlib
import inspect
import io
import itertools
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, Unpack, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _library, document
from .batch import perform, steps_or_all
from .instance import InstanceLike
from .loop import RAW, Gym, Stage
from .policies import View
from .references import Entry, catalogue
from .world import TEST_SEEDS, World, seed_of, spec, whole

if TYPE_CHECKING:
    import pandas as pd


_SEEDS = 100_000  # each has a record in memory
_OTHERS = (
    "command.txt", "metrics.csv", "thresholds.csv", "result.md", "papers.json", "papers.md", "learned.csv",
    "summary.json", "summary.csv", "summary.md",
)  # fmt: skip
"""Files of the commands that a comparison does not write; they would be read with its own."""
_MARKS = ("command.txt", "runs.json", "summary.json")
"""Files of which each command puts one next to its directory ``runs``."""


@runtime_checkable
class Agent(Protocol):
    """A policy in Python that has more than a function to offer.

    If it has them, ``begin(info)`` is called before each run, ``update(crawls, view)`` after each epoch, with the
    crawls that did not fail, and ``frozen()`` after a run, for what was learned as a policy, which is then run in the
    same world from its beginning. ``info`` has

    - ``names`` and ``costs`` of the n sources, ``budget``, and ``epochs``, how many the run has;
    - ``knowledge``, ``model``, ``observed`` or ``online``, and ``seed``, for what the policy draws itself;
    - ``instance``, with ``model`` and ``observed``: the :class:`Instance` of this run, with the parameters of its
      sources and their changes, as :func:`index`, :func:`threshold`, :func:`curves` and :func:`relax` take it. Its
      sources are in the order of ``names``. A recording has none;
    - ``importance`` of each page, in world ``pages``, otherwise None, and ``objective``, what crawls are to bring about
      there, or where that was named, otherwise empty;
    - where hosts limit crawls, ``hosts``, the number of each source's host or 0, and ``perhost``;
    - of a recording ``start``, Unix seconds at which it begins, and ``length``, seconds of an epoch; otherwise 0.
    """

    def select(self, view: View) -> ArrayLike:
        """Return source numbers (integers), a score of each source (floats) or marks (bool).

        Of scores inf is crawled first, and −inf never; NaN is an error. Equal ones go by number.
        """
        ...


PolicyLike: TypeAlias = "str | tuple[str, Mapping[str, Any]] | Agent | Callable[[View], ArrayLike] | Callable[[], Any]"
"""A name of the catalogue, a name and settings, a select function, or what makes an :class:`Agent`:
a class or a function without arguments. An agent itself is taken where there is one run."""


def gym_policy(model: Any, **form: Any) -> Callable[[], Any]:
    """Return an agent that was trained on an environment as a policy for :func:`run` and :func:`compare`.

    Args:
        model: what has ``predict(observation, deterministic=True)``, as agents of Stable-Baselines3, or
            a function of an observation that returns an action, as one around a PyTorch module.
        form: keywords of the environment that it was trained on which do not name the world: ``action``,
            ``observation``, ``scaled``, ``overspend``.
    """
    if not callable(model) and not hasattr(model, "predict"):
        raise TypeError(f"{model!r} neither has predict nor is a function of an observation")
    return _Trained(model, form)


@dataclass(frozen=True)
class _Trained:
    """What makes a policy of an agent that was trained; it can be pickled where the agent can."""

    model: Any
    form: dict[str, Any]

    @property
    def name(self) -> str:
        """Its name in tables."""
        return str(getattr(self.model, "__name__", type(self.model).__name__))

    def __call__(self) -> Gym:
        return Gym(self.act, self.form)

    def act(self, seen: Any) -> Any:
        """Return the action that the agent finds best."""
        if hasattr(self.model, "predict"):
            return self.model.predict(seen, deterministic=True)[0]
        return self.model(seen)


@dataclass(frozen=True)
class Player:
    """A policy that is played."""

    row: str
    make: Callable[[], Any] | None
    """Of Python."""
    settings: dict[str, Any]
    """For Go, of one of the catalogue."""
    reason: str = ""
    """Why it is for one seed only."""

    @property
    def entry(self) -> Entry | None:
        """Of the catalogue; None for what was saved and for policies of Python."""
        return next((e for e in catalogue() if self.make is None and e.name == self.settings["name"]), None)


def player(name: str | None, p: PolicyLike) -> Player:
    """Return how a policy is played, under that name or its own."""
    if p == "" or (isinstance(p, tuple) and p[:1] == ("",)):
        raise ValueError(f"a policy has the name ''; allowed are {', '.join(e.name for e in catalogue())}")
    if isinstance(p, str):
        return Player(name or p, None, {"name": p})
    if isinstance(p, tuple) and len(p) == 2:
        return Player(name or p[0], None, {"name": p[0], "settings": dict(p[1])})
    own = str(name or getattr(p, "name", None) or getattr(p, "__name__", None) or type(p).__name__)
    if isinstance(p, type):
        try:
            inspect.signature(p).bind()
        except TypeError as e:
            raise TypeError(
                f"{own} is a class that takes arguments ({e}); needed is one without, or lambda: {own}(…)"
            ) from None
        return Player(own, p, {})
    if isinstance(p, Agent):
        return Player(own, lambda: p, {}, (
            f"{own} is one agent, which would carry what it learned from run to run; give what makes one for each: "
            f"a class, or lambda: {type(p).__name__}(…)"
        ))  # fmt: skip
    if callable(p):
        try:
            inspect.signature(p).bind()
        except TypeError:  # it takes a view
            return Player(own, lambda: p, {})
        return Player(own, p, {})  # type: ignore[arg-type]
    raise TypeError(f"{p!r} is no policy; allowed are a name, (name, settings), a function and what makes an Agent")


class _Scene:
    """A world, and for how long policies are run in it, under which seeds."""

    def __init__(
        self, instance: InstanceLike, steps: int | None, seed: int, seeds: int, evaluation: int, world: World
    ) -> None:
        if world.get("window") is not None:
            raise ValueError(
                "a window is drawn by environments; window=None runs policies on the part that is held out"
            )
        self.instance, self.world, self.seed, self.seeds = instance, world, seed_of(seed), whole(seeds, "seeds")
        self.steps = steps_or_all(steps)
        self.level = world.get("knowledge")  # None where each policy has its own
        self.evaluation = evaluation
        self.named = spec(instance, **world)

    def records(self, players: Sequence[Player], workers: int = 0) -> list[tuple[list[dict[str, Any]], bool]]:
        """Perform runs; of each player the records by seed, and whether it learned."""
        if not 1 <= self.seeds <= _SEEDS:
            raise ValueError(f"there are {self.seeds} seeds; allowed are 1 to {_SEEDS}")
        for p in players:
            if p.reason and self.seeds > 1:
                raise ValueError(p.reason)
        named = [p.settings for p in players if p.make is None]
        of = {"steps": self.steps, "evaluation": self.evaluation}
        seeds = range(self.seed, self.seed + self.seeds)
        done = iter(
            perform(self.named, self.level, [(p, {**of, "seed": seed}) for p in named for seed in seeds], workers)
        )
        return [
            ([next(done) for _ in seeds], p.entry is not None and p.entry.learns)
            if p.make is None
            else self.in_python(p.make, p.row)
            for p in players
        ]

    def levels(self, players: Sequence[Player]) -> str:
        """Return the levels of knowledge at which policies are played."""
        of = [self.level] if self.level else [p.entry.levels[0] if p.entry else "model" for p in players]
        return "+".join(dict.fromkeys(of))

    def in_python(self, make: Callable[[], Any], row: str) -> tuple[list[dict[str, Any]], bool]:
        """Perform the runs of a policy of Python."""
        first = make()
        level = self.level or "model"
        form = first.form if isinstance(first, Gym) else RAW | ({"items": True} if level == "online" else {})
        stage = Stage(self.instance, self.steps, self.evaluation, **self.world, **form)
        agents = itertools.chain([first], (make() for _ in itertools.count()))
        try:
            found = [
                stage.record(lambda: next(agents), row, seed, level)
                for seed in range(self.seed, self.seed + self.seeds)
            ]
        finally:
            stage.close()
        return [r for r, _ in found], found[0][1]


class Outcome:
    """What was earned over a run: ``epochs``, and each of :func:`figures` under its name."""

    epochs: int

    def __init__(self, kept: Mapping[str, Any]) -> None:
        """Take the figures from a part of a record."""
        vars(self).update({k: kept[k] for k in ("epochs", *figures())})

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> float:
            """Return a figure."""

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse: what was earned stays."""
        raise AttributeError(f"{name} cannot be set")

    def __eq__(self, other: object) -> bool:
        """Return whether all figures are the same."""
        return isinstance(other, Outcome) and vars(self) == vars(other)

    def __hash__(self) -> int:
        """Return a number that is the same for the same figures."""
        return hash(tuple(vars(self).items()))

    def __repr__(self) -> str:
        """Return the figures in the order of records."""
        return f"Outcome({', '.join(f'{k}={v!r}' for k, v in vars(self).items())})"


@functools.cache
def figures() -> Mapping[str, str]:
    """Return the figures of an :class:`Outcome`: by its name what each is, with the unit."""
    return MappingProxyType({m["name"]: m["words"] for m in _library.ask(0, "measures")})


@dataclass(frozen=True)
class Run:
    """A run of one policy."""

    outcome: Outcome
    """Of the policy; of a learner while it learned."""
    learned: Outcome | None
    """Of what a learner had learned, in the same world from its beginning."""
    curve: NDArray[np.float64]
    """(rows, 3): epoch at the end of the row, mean reward and mean crawls per epoch in it; eight rows in
    each factor of ten."""


def run(
    policy: PolicyLike,
    instance: InstanceLike = "paper",
    steps: int | None = 10_000,
    seed: int = 1,
    *,
    evaluation: int | None = None,
    **world: Unpack[World],
) -> Run:
    """Play a policy.

    Args:
        policy: a name of the catalogue, ``(name, settings)``, a function of a :class:`View`, or an
            :class:`Agent`.
        instance: of n sources.
        steps: epochs; None for all of a recording.
        seed: of the world and the policy's draws.
        evaluation: epochs for which what was learned is run; None for as many as it learned.
        world: keywords that name the world; :class:`ephemera.CrawlEnv` explains them. Without
            ``knowledge`` a policy of the catalogue has the first of its levels, and one of Python ``model``.
    """
    scene = _Scene(instance, steps, seed, 1, whole(evaluation or 0, "evaluation"), world)
    (((record,), learns),) = scene.records([player(None, policy)])
    curve = np.array([(c["epoch"], c["reward"], c["crawls"]) for c in record["curve"]], np.float64).reshape(-1, 3)
    return Run(Outcome(record["learning"]), Outcome(record["learned"]) if learns else None, curve)


@dataclass(frozen=True)
class Comparison:
    """The table that the command ``bench`` prints, and the runs behind it."""

    report: dict[str, Any]
    """The object that ``bench -format json`` prints."""
    table: str
    runs: list[dict[str, Any]]
    """Policy, instance, seed and figures of each run."""
    curves: list[dict[str, Any]]
    """Policy, instance and seed of each run, and along its epochs reward and crawls per epoch since the row before."""
    records: dict[str, list[dict[str, Any]]]
    """All that is kept of each run, by the names of the policies."""

    def __str__(self) -> str:
        return self.table.replace("-format markdown has them", "frame() has them")

    __repr__ = __str__

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.report["results"])

    def __getitem__(self, policy: str) -> dict[str, Any]:
        """Return the row of a policy."""
        for row in self:
            if row["policy"] == policy:
                return row
        raise KeyError(policy)

    def frame(self) -> pd.DataFrame:
        """Return the table as a pandas frame."""
        frame: pd.DataFrame = _library.extra("pandas").DataFrame(self.report["results"])
        return frame.set_index("policy")

    def to_rliable(self) -> dict[str, NDArray[np.float64]]:
        """Return scores for rliable, (seeds, 1) for each row: shares of what exact Whittle earns in the same epochs."""
        scores: dict[str, list[float]] = {}
        for r in self.runs:
            scores.setdefault(r["policy"], []).append(r.get("of_whittle", math.nan))
        return {name: np.array(shares)[:, None] for name, shares in scores.items()}

    def _cells(self) -> list[list[str]]:
        reward, crawls = (document.plain(*(r[of] for r in self)) for of in ("reward", "crawls"))
        return [
            [
                r["policy"], reward(r["reward"]), document.interval(r["lo"], r["hi"], reward),
                document.percent(r.get("of_whittle")),
                document.interval(r.get("of_whittle_lo"), r.get("of_whittle_hi")), crawls(r["crawls"]),
            ]
            for r in self
        ]  # fmt: skip

    _head = ("policy", "reward", "95 % interval", "% of Whittle", "95 % interval", "crawls per epoch")

    def to_latex(self) -> str:
        """Return the table as LaTeX, with the rules of the package booktabs."""
        return document.latex(self._head, self._cells())

    def _repr_html_(self) -> str:
        r = self.report
        about = (
            f"instance {r['instance']}, knowledge {r['knowledge']}, budget {r['budget']:g}, {r['steps']} epochs, "
            f"{r['seeds']} seeds from {r['seed']}"
        )
        return document.table(self._head, self._cells(), about)

    def _chosen(self, policies: Sequence[str] | None, of: Sequence[dict[str, Any]]) -> list[str]:
        """Return the names of the lines of a picture: those that are named, or the best."""
        ranked = [r["policy"] for r in self if any(x["policy"] == r["policy"] for x in of)]
        names = list(policies or ranked[: document.MOST])
        if unknown := [n for n in names if n not in ranked]:
            raise ValueError(f"there is no line of {unknown[0]!r}; there are {', '.join(ranked)}")
        return names

    def plot(self, policies: Sequence[str] | None = None) -> Any:
        """Return a matplotlib figure of the way there: the share of what exact Whittle earns, along the epochs.

        A point is the mean over the seeds of what was earned since the point before; bands are intervals of 95 %. The
        picture fits one column of a paper, lines have their names at their ends and are told apart in grey:
        ``plot().savefig("curves.pdf")``, or .png or .svg. Epochs in which exact Whittle earned nothing under one of the
        seeds have no share, and no point; where no share is known, rewards are drawn.

        Args:
            policies: names of at most six rows; None for the best six.
        """
        names = self._chosen(policies, self.curves)
        shares = self._along(names, "of_whittle")
        found = shares or self._along(names, "reward")
        figure, axes = document.column()
        axes.set_xscale("log")
        axes.set_xlabel("epoch")
        axes.set_ylabel("share of exact Whittle" if shares else "interest per epoch")
        most = max((float(y[:, 0].max()) for _, y in found.values()), default=1.0)
        axes.set_ylim(0, 1.05 * (max(1.0, most) if shares else most))
        document.lines(axes, found)
        return figure

    def _along(self, names: Sequence[str], of: str) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Return of each policy the epochs at which a figure is known under all seeds, and its means there."""
        found = {}
        for name in names:
            by_epoch: dict[int, list[Any]] = {}
            for c in self.curves:
                if c["policy"] == name:
                    by_epoch.setdefault(c["epoch"], []).append(c.get(of))
            points = {epoch: values for epoch, values in by_epoch.items() if None not in values}
            if points:
                found[name] = np.array(list(points), np.float64), document.means(list(points.values()))
        return found

    def profile(self, policies: Sequence[str] | None = None) -> Any:
        """Return a matplotlib figure of how often: the part of the runs that earn at least a share of exact Whittle.

        Args:
            policies: names of at most six rows; None for the best six.
        """
        scores = {name: s for name, s in self.to_rliable().items() if np.isfinite(s).all()}
        if not scores:
            raise ValueError("no policy has a share of exact Whittle under each seed; needed are more epochs")
        names = self._chosen(policies, [{"policy": name} for name in scores])
        figure, axes = document.column()
        axes.set_xlabel("share of exact Whittle")
        axes.set_ylabel("runs that earn it")
        axes.set_ylim(0, 1.05)
        at = np.linspace(0, max(1.0, *(float(scores[n].max()) for n in names)), 201)
        document.lines(axes, {n: (at, (scores[n] >= at).mean(axis=0)[:, None]) for n in names})
        return figure

    def save(self, directory: str | os.PathLike[str], files: Mapping[str, list[str]] | None = None) -> None:
        """Write what ``bench -out`` does into a directory, for :func:`ephemera.load` and the command ``report``.

        That is result.json, result.txt, runs.csv, curves.csv, and a file of each run, which runs.json lists.

        Args:
            directory: that is made if it is missing.
            files: names of the files of runs, by policy, where they are in its directory ``runs`` already.
        """
        d = Path(directory)
        earlier = (d / "runs").is_dir() and any((d / name).exists() for name in _MARKS)
        (d / "runs").mkdir(parents=True, exist_ok=True)
        names = dict(files or {})
        for policy, records in self.records.items():
            for r in records if files is None else []:
                run = {**r["run"], "seed": 0}
                names.setdefault(policy, []).append(f"{_digest([policy, run])}-{r['run']['seed']}")
                document.put(d / "runs" / f"{names[policy][-1]}.json", json.dumps(r) + "\n")
        for name in _OTHERS if earlier else ():  # else files of these names are somebody else's
            (d / name).unlink(missing_ok=True)
        document.put(d / "runs.json", json.dumps(names) + "\n")
        document.put(d / "result.txt", self.table)
        document.put(d / "result.json", json.dumps(self.report, indent=1) + "\n")
        for name, rows in (("runs.csv", self.runs), ("curves.csv", self.curves)):
            plain = [{k: v for k, v in r.items() if not isinstance(v, list)} for r in rows]
            text = io.StringIO()
            table = csv.DictWriter(text, list(dict.fromkeys(k for r in plain for k in r)))
            table.writeheader()
            table.writerows(plain)
            document.put(d / name, text.getvalue())


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def compare(
    policies: Sequence[PolicyLike] | Mapping[str, PolicyLike],
    instance: InstanceLike = "paper",
    steps: int | None = 10_000,
    seeds: int = 20,
    seed: int = TEST_SEEDS[0],
    *,
    workers: int | None = None,
    **world: Unpack[World],
) -> Comparison:
    """Run policies under the same seeds and return the table that ``bench`` prints.

    Args:
        policies: as in :func:`run`; a mapping gives them names of their own, so that one learner may be
            there with several settings. With ``whittle`` among them, under any name, the rows have their share
            of it. A learner gives two rows, ``NAME/learning`` and ``NAME/learned``.
        instance: of n sources.
        steps: epochs of each run; None for all of a recording.
        seeds: how many.
        seed: the first; by default those of :data:`ephemera.TEST_SEEDS`, under which nobody trains.
        workers: runs at a time of policies of the catalogue; None for one per processor.
        world: keywords that name the world; :class:`ephemera.CrawlEnv` explains them. Without
            ``knowledge`` each policy of the catalogue has the first of its levels, and those of Python
            ``model``; with it all have that one.
    """
    if isinstance(policies, str) or not isinstance(policies, Iterable):
        raise ValueError(f"policies is {policies!r}; needed is a list of policies, or a mapping of names to them")
    pairs: list[tuple[str | None, PolicyLike]] = (
        list(policies.items()) if isinstance(policies, Mapping) else [(None, p) for p in policies]
    )
    players = [player(name, p) for name, p in pairs]
    names = [p.row for p in players]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"the policies are {names}; needed is one at least, each with a name of its own")
    scene = _Scene(instance, steps, seed, seeds, 0, world)
    if workers is not None and whole(workers, "workers") < 1:
        raise ValueError(f"workers is {workers}; allowed is 1 or more")
    records = scene.records(players, workers or 0)
    of = [(p.row, learns, r) for p, (r, learns) in zip(players, records, strict=True)]
    return compared(of, scene.levels(players), seeds, seed)


def compared(
    policies: Sequence[tuple[str, bool, list[dict[str, Any]]]], levels: str, seeds: int, first: int
) -> Comparison:
    """Return the comparison of policies, each by its name, whether it learns, and its records by seed."""
    contenders = [{"name": name, "learns": learns, "records": r} for name, learns, r in policies]
    a = _library.ask(0, "compare", contenders, levels, seeds, first)
    return Comparison(a["report"], a["table"], a["runs"], a["curves"], {name: r for name, _, r in policies})


def whittle(
    instance: InstanceLike = "paper", steps: int | None = 10_000, seed: int = 1, **world: Unpack[World]
) -> float:
    """Return what the exact Whittle index policy earns, interest per epoch."""
    return run("whittle", instance, steps, seed, **world).outcome.reward
