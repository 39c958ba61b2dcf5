"""Runs: policies of the catalogue in the loop of Go, policies of Python in a loop here, in the same worlds."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, Unpack, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _library
from .instance import InstanceLike
from .policies import Crawls, View
from .world import World, spec

if TYPE_CHECKING:
    import pandas as pd


@runtime_checkable
class Agent(Protocol):
    """A policy in Python that has more than a function to offer.

    ``begin(info)``, if there is one, is called before each run with names, costs, budget and
    knowledge; ``update(crawls, view)``, if there is one, after each epoch.
    """

    def select(self, view: View) -> ArrayLike:
        """Return source numbers (integers), a score of each source (floats) or marks (bool)."""
        ...


PolicyLike: TypeAlias = "str | tuple[str, Mapping[str, Any]] | Agent | Callable[[View], ArrayLike]"
"""A name of the catalogue, a name and settings, an :class:`Agent`, or its select alone."""

_SOURCES, _SCORES = range(2)  # forms of the numbers that are handed in


def _choice(chosen: ArrayLike, n: int) -> NDArray[np.float64]:
    """Return what a policy chose as its form and its numbers."""
    a = np.asarray(chosen)
    form = _SOURCES
    if a.dtype.kind == "f" and a.shape == (n,):
        if np.isnan(a).any():
            raise ValueError(f"the score of source {int(np.isnan(a).argmax())} is NaN")
        form = _SCORES
    elif a.dtype == np.bool_ and a.shape == (n,):
        a = np.flatnonzero(a)
    elif a.ndim == 0 and a.dtype.kind in "iu":
        a = a[None]
    elif a.size == 0:
        a = np.empty(0)
    elif a.ndim != 1 or a.dtype.kind not in "iu":
        raise ValueError(
            f"the policy returned shape {a.shape} and dtype {a.dtype}; allowed are source numbers (integers), "
            f"scores (float, shape ({n},)) and marks (bool, shape ({n},))"
        )
    return np.concatenate([[form], a], dtype=np.float64)


class _Play(_library.Handle):
    """A world in which a policy of Python crawls; see native/play.go for the numbers."""

    _kind = "world"

    def __init__(self, settings: dict[str, Any]) -> None:
        self._handle, self.about = _library.build("play", settings)
        self.n = len(self.about["names"])
        self.room = np.empty(5 + 7 * self.n)

    def _seen(self, what: str, given: NDArray[np.float64]) -> tuple[View, Crawls]:
        """Go on, and return what is seen then and what the crawls brought."""
        _, count, _ = _library.exchange(what, self._alive(), b"", given, self.room)
        if count > len(self.room):
            self.room = np.empty(2 * count)
            _, count, _ = _library.exchange("view", self._alive(), b"", np.empty(0), self.room)
        numbers, n, at = self.room[:count], self.n, 5
        epoch, shows_mean, shows_state, crawls, _ = (int(v) for v in numbers[:5])

        def part(length: int) -> NDArray[np.float64]:
            nonlocal at
            at += length
            return numbers[at - length : at].copy()

        view = View(epoch, part(n).astype(np.int64), part(n) if shows_mean else None, part(n) if shows_state else None)
        source, since, interest, count_of = part(4 * crawls).reshape(-1, 4).T
        items = None
        if count_of.any():
            cuts = np.cumsum(count_of.astype(np.int64))
            items = [(i[:, 0], i[:, 1]) for i in np.split(part(2 * cuts[-1]).reshape(-1, 2), cuts[:-1])]
        return view, Crawls(source.astype(np.int64), interest, since.astype(np.int64), items)

    def run(self, policy: Any) -> dict[str, Any]:
        """Have a policy crawl to the end; the record of the run."""
        if begin := getattr(policy, "begin", None):
            begin(self.about)
        select, update = getattr(policy, "select", policy), getattr(policy, "update", None)
        view, _ = self._seen("view", np.empty(0))
        for _ in range(self.about["epochs"]):
            view, crawls = self._seen("step", _choice(select(view), self.n))
            if update is not None:
                update(crawls, view)
        return dict(_library.ask("record", handle=self._alive()))


def _records(settings: dict[str, Any], players: Sequence[_Player], seeds: int) -> list[list[dict[str, Any]]]:
    """Perform runs and return the records of each player, by seed."""
    plain = [p.settings for p in players if p.own is None]
    found: list[list[dict[str, Any]]] = []
    if plain:
        handle, _ = _library.build("runs", {**settings, "policies": plain, "seeds": seeds})
        try:
            # Between the calls, which return soon, Python takes up signals.
            while (done := _library.ask("wait", handle=handle)) is None:
                pass
        finally:
            _library.ask("close", handle=handle)
        found = done
    told = {k: v for k, v in settings.items() if k not in ("evaluation", "workers")}
    first = settings["seed"]
    by_name = iter(found)
    all_of: list[list[dict[str, Any]]] = []
    for p in players:
        if p.own is None:
            all_of.append(next(by_name))
            continue
        all_of.append([])
        for seed in range(first, first + seeds):
            play = _Play({**told, "seed": seed})
            try:
                all_of[-1].append(play.run(p.own))
            finally:
                play.close()
    return all_of


@dataclass(frozen=True)
class _Player:
    """A policy of a comparison."""

    row: str
    own: Any
    """Of Python, or None."""
    settings: dict[str, Any]
    """For Go, of one of the catalogue."""

    @property
    def learns(self) -> bool:
        """Whether it gives two rows."""
        from .references import catalogue

        return self.own is None and any(e.learns and e.name == self.settings["name"] for e in catalogue())


def earned(name: str, settings: dict[str, Any]) -> float:
    """Return what a policy of the catalogue earns in a run, interest per epoch."""
    return float(_records(settings, [_player(None, name)], 1)[0][0]["learning"]["reward"])


def _player(name: str | None, p: PolicyLike) -> _Player:
    if isinstance(p, str):
        return _Player(name or p, None, {"name": p})
    if isinstance(p, tuple) and len(p) == 2:
        return _Player(name or p[0], None, {"name": p[0], "settings": dict(p[1])})
    if callable(p) or isinstance(p, Agent):
        own = name or getattr(p, "name", None) or getattr(p, "__name__", None) or type(p).__name__
        return _Player(str(own), p, {})
    raise TypeError(f"{p!r} is no policy; allowed are a name, (name, settings), a function and an Agent")


@dataclass(frozen=True)
class Outcome:
    """What was earned over a run."""

    epochs: int
    reward: float
    """Interest per epoch."""
    crawls: float
    """Per epoch."""
    cost: float
    """Budget units per epoch."""
    over: float
    """Share of the epochs whose crawls cost more than the budget."""
    overrun: float
    """Mean cost above the budget over all epochs, budget units."""


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


def _outcome(figures: Mapping[str, Any]) -> Outcome:
    return Outcome(*(figures[k] for k in ("epochs", "reward", "crawls", "cost", "over", "overrun")))


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
        world: keywords that name the world; :class:`ephemera.CrawlEnv` explains them.
    """
    player = _player(None, policy)
    settings = {
        **spec(instance, **world), "steps": operator.index(steps or 0),
        "evaluation": operator.index(evaluation or 0), "seed": operator.index(seed),
    }  # fmt: skip
    ((record,),) = _records(settings, [player], 1)
    curve = np.array([(c["epoch"], c["reward"], c["crawls"]) for c in record["curve"]], np.float64).reshape(-1, 3)
    return Run(_outcome(record["learning"]), _outcome(record["learned"]) if player.learns else None, curve)


@dataclass(frozen=True)
class Comparison:
    """The table that the command ``bench`` prints, and the runs behind it."""

    report: dict[str, Any]
    """The object that ``bench -format json`` prints."""
    table: str
    runs: list[dict[str, Any]] = field(repr=False)
    """Policy, instance, seed and reward of each run."""

    def __str__(self) -> str:
        return self.table

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
        import pandas as pd

        return pd.DataFrame(self.report["results"]).set_index("policy")


def compare(
    policies: Sequence[PolicyLike] | Mapping[str, PolicyLike],
    instance: InstanceLike = "paper",
    steps: int | None = 10_000,
    seeds: int = 20,
    seed: int = 1,
    *,
    workers: int | None = None,
    **world: Unpack[World],
) -> Comparison:
    """Run policies under the same seeds and return the table that ``bench`` prints.

    Args:
        policies: as in :func:`run`; a mapping gives them names of their own, so that one learner may be
            there with several settings. With ``whittle`` among the names the rows have their share of
            it. A learner gives two rows, ``NAME/learning`` and ``NAME/learned``.
        instance: of n sources.
        steps: epochs of each run; None for all of a recording.
        seeds: how many.
        seed: the first.
        workers: runs at a time of policies of the catalogue; None for one per processor.
        world: keywords that name the world; :class:`ephemera.CrawlEnv` explains them.
    """
    pairs: list[tuple[str | None, PolicyLike]] = (
        list(policies.items()) if isinstance(policies, Mapping) else [(None, p) for p in policies]
    )
    players = [_player(name, p) for name, p in pairs]
    settings = {
        **spec(instance, **world), "steps": operator.index(steps or 0),
        "seed": operator.index(seed), "workers": operator.index(workers or 0),
    }  # fmt: skip
    records = _records(settings, players, operator.index(seeds))
    a = _library.ask(
        "compare",
        {
            "knowledge": settings.get("knowledge", "model"), "seeds": seeds, "seed": seed,
            "contenders": [
                {"name": p.row, "learns": p.learns, "records": r} for p, r in zip(players, records, strict=True)
            ],
        },
    )  # fmt: skip
    runs = [
        {"policy": row, "instance": r["instance"], "seed": seed + k, **r[part]}
        for p, rs in zip(players, records, strict=True)
        for row, part in (
            [(f"{p.row}/learning", "learning"), (f"{p.row}/learned", "learned")] if p.learns else [(p.row, "learned")]
        )
        for k, r in enumerate(rs)
    ]
    return Comparison(a["report"], a["table"], runs)


def whittle(
    instance: InstanceLike = "paper", steps: int | None = 10_000, seed: int = 1, **world: Unpack[World]
) -> float:
    """Return what the exact Whittle index policy earns, interest per epoch."""
    return run("whittle", instance, steps, seed, **world).outcome.reward
