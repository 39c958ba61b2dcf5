"""Long runs: the Go loop with policies of the catalogue and of Python in it."""

from __future__ import annotations

import json
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

_BEGIN, _SELECT, _UPDATE = range(3)
_SOURCES, _SCORES, _AGAIN = range(3)  # forms of the numbers that are handed in
_NONE = _SOURCES, np.empty(0)


def _reply(choice: ArrayLike, n: int) -> tuple[int, NDArray[Any]]:
    """Return the form of what a policy chose, and its numbers."""
    a = np.asarray(choice)
    if a.dtype.kind == "f" and a.shape == (n,):
        if np.isnan(a).any():
            raise ValueError(f"the score of source {int(np.isnan(a).argmax())} is NaN")
        return _SCORES, a
    if a.dtype == np.bool_ and a.shape == (n,):
        return _SOURCES, np.flatnonzero(a)
    if a.ndim == 0 and a.dtype.kind in "iu":
        a = a[None]
    if a.size == 0:
        return _NONE
    if a.ndim != 1 or a.dtype.kind not in "iu":
        raise ValueError(
            f"the policy returned shape {a.shape} and dtype {a.dtype}; allowed are source numbers (integers), "
            f"scores (float, shape ({n},)) and marks (bool, shape ({n},))"
        )
    return _SOURCES, a


class _Job:
    """A run of the Go code with guests in Python, served by the thread that waits for it.

    Nothing is called from another thread, so that guests raise into the caller, and Ctrl-C ends
    the wait at once.
    """

    def __init__(self, settings: dict[str, Any], guests: Mapping[int, Any]) -> None:
        self.guests = guests
        self.handle, self.about = _library.build("run", settings)
        self.n = len(self.about["names"])
        # Numbers that come out, see native/job.go, and that go in.
        self.request, self.reply = np.empty(7 + 7 * self.n), np.empty(1 + self.n)

    def result(self) -> Any:
        """Serve the guests until the job is done."""
        form, values = _NONE
        try:
            while True:
                length = 1 + len(values)
                if length > len(self.reply):
                    self.reply = np.empty(length)
                self.reply[0], self.reply[1:length] = form, values
                _, count, answer = _library.exchange("serve", self.handle, b"", self.reply[:length], self.request)
                form, values = _NONE
                if answer:
                    return json.loads(answer)
                if count > len(self.request):
                    self.request, form = np.empty(2 * count), _AGAIN
                elif count:
                    form, values = self.play(self.request[:count])
        finally:
            _library.ask("close", handle=self.handle)

    def play(self, request: NDArray[np.float64]) -> tuple[int, NDArray[Any]]:
        """Have a guest answer a request."""
        kind, number, epoch, shows_mean, shows_state, crawls, _ = (int(v) for v in request[:7])
        guest = self.guests[number]
        if kind == _BEGIN:
            begin = getattr(guest, "begin", None)
            if begin is not None:
                begin(self.about)
            return _NONE
        n, at = self.n, 7

        def part(length: int) -> NDArray[np.float64]:
            nonlocal at
            at += length
            return request[at - length : at].copy()

        view = View(epoch, part(n).astype(np.int64), part(n) if shows_mean else None, part(n) if shows_state else None)
        if kind == _SELECT:
            return _reply(guest.select(view) if hasattr(guest, "select") else guest(view), n)
        source, since, interest, count = part(4 * crawls).reshape(-1, 4).T
        items = None
        if count.any():
            cuts = np.cumsum(count.astype(np.int64))
            items = [(i[:, 0], i[:, 1]) for i in np.split(part(2 * cuts[-1]).reshape(-1, 2), cuts[:-1])]
        guest.update(Crawls(source.astype(np.int64), interest, since.astype(np.int64), items), view)
        return _NONE


def earned(settings: dict[str, Any]) -> float:
    """Return what a policy of the Go code earns in a run, interest per epoch."""
    return float(_Job(settings, {}).result()["learning"]["reward"])


def _players(policies: Sequence[tuple[str | None, PolicyLike]]) -> tuple[list[dict[str, Any]], dict[int, Any]]:
    """Describe policies to the Go code, and return those that are guests by number."""
    players: list[dict[str, Any]] = []
    guests: dict[int, Any] = {}
    for k, (name, p) in enumerate(policies):
        if isinstance(p, str):
            players.append({"name": p, "as": name or ""})
        elif isinstance(p, tuple) and len(p) == 2:
            players.append({"name": p[0], "as": name or "", "settings": dict(p[1])})
        elif callable(p) or isinstance(p, Agent):
            guests[k] = p
            own = name or getattr(p, "name", None) or getattr(p, "__name__", None) or type(p).__name__
            players.append({"name": str(own), "guest": True, "updates": hasattr(p, "update")})
        else:
            raise TypeError(f"{p!r} is no policy; allowed are a name, (name, settings), a function and an Agent")
    return players, guests


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
    """(rows, 3): epoch at the end of the row, mean reward and mean crawls per epoch in it."""


def run(
    policy: PolicyLike,
    instance: InstanceLike = "paper",
    steps: int | None = 10_000,
    seed: int = 1,
    *,
    rows: int = 100,
    evaluation: int | None = None,
    **world: Unpack[World],
) -> Run:
    """Play a policy in the Go loop.

    Args:
        policy: a name of the catalogue, ``(name, settings)``, a function of a :class:`View`, or an
            :class:`Agent`.
        instance: of n sources.
        steps: epochs; None for all of a recording.
        seed: of the world and the policy's draws.
        rows: rows of the curve.
        evaluation: epochs for which what was learned is run; None for as many as it learned.
        world: keywords that name the world; :class:`ephemera.CrawlEnv` explains them.
    """
    players, guests = _players([(None, policy)])
    job = _Job(
        {
            **spec(instance, **world), "policies": players, "steps": operator.index(steps or 0),
            "evaluation": operator.index(evaluation or 0), "seed": operator.index(seed), "rows": operator.index(rows),
        },
        guests,
    )  # fmt: skip
    a = job.result()

    def outcome(o: Mapping[str, Any]) -> Outcome:
        return Outcome(**o)

    curve = np.array(a["curve"], np.float64).reshape(-1, 3)
    return Run(outcome(a["learning"]), outcome(a["learned"]) if a["learns"] else None, curve)


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
        workers: runs at a time; None for one per processor. With policies in Python it is 1.
        world: keywords that name the world; :class:`ephemera.CrawlEnv` explains them.
    """
    if isinstance(policies, Mapping):
        pairs: list[tuple[str | None, PolicyLike]] = list(policies.items())
    else:
        pairs = [(None, p) for p in policies]
    players, guests = _players(pairs)
    job = _Job(
        {
            **spec(instance, **world), "compare": True, "policies": players, "steps": operator.index(steps or 0),
            "seed": operator.index(seed), "seeds": operator.index(seeds), "workers": operator.index(workers or 0),
        },
        guests,
    )  # fmt: skip
    a = job.result()
    return Comparison(a["report"], a["table"], a["runs"])


def whittle(
    instance: InstanceLike = "paper", steps: int | None = 10_000, seed: int = 1, **world: Unpack[World]
) -> float:
    """Return what the exact Whittle index policy earns, interest per epoch."""
    return run("whittle", instance, steps, seed, rows=0, **world).outcome.reward
