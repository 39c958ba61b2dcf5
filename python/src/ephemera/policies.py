"""Policies and learners of the Go code, asked by a crawler in Python."""

from __future__ import annotations

import operator
import os
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _library
from .instance import Instance, InstanceLike, Source
from .world import array, seed_of, spec

Items = tuple[ArrayLike, ArrayLike]
"""Ages (epochs) and present interest of the items of a crawl, oldest first."""


@dataclass(frozen=True)
class View:
    """What is seen before a decision."""

    epoch: int
    age: NDArray[np.int64]
    """(n,) epochs since each source's last crawl, as integers. A score is a float: ``age * 1.0``."""
    mean: NDArray[np.float64] | None = None
    """(n,) mean state, interest; None with knowledge ``online``."""
    state: NDArray[np.float64] | None = None
    """(n,) true state, interest; with knowledge ``observed``."""
    pings: NDArray[np.int64] | None = None
    """(n,) how many pings came from each page since the decision before, in world ``pages``."""


@dataclass(frozen=True)
class Crawls:
    """What the m crawls of an epoch brought back."""

    source: NDArray[np.int64]
    """(m,)"""
    interest: NDArray[np.float64]
    """(m,) present interest of all that was found; in world ``pages`` 1 where the page has changed, otherwise 0."""
    age: NDArray[np.int64] | None = None
    """(m,) epochs since the source's crawl before."""
    items: Sequence[Items] | None = None
    """Items of each crawl, where they are known."""


def _array(values: ArrayLike, dtype: Any, name: str) -> NDArray[Any]:
    a = array(values, name, "one dimension")
    if a.size and (a.dtype.kind not in "iuf" or (dtype == np.int64 and a.dtype.kind == "f")):
        raise TypeError(f"{name} has dtype {a.dtype}; needed is {np.dtype(dtype)}")
    if a.ndim != 1:
        raise ValueError(f"{name} has shape {a.shape}; needed is one dimension")
    return np.ascontiguousarray(a, dtype)


_MOST = 1e100  # so that interest can be added up and squared


def amounts(values: ArrayLike, name: str, most: float = _MOST, least: float = 0) -> list[float]:
    """Return numbers between these, or raise."""
    a = _array(values, np.float64, name)
    if not ((a >= least) & (a <= most)).all():
        raise ValueError(f"{name} is {a[~((a >= least) & (a <= most))][0]}; allowed is {least:g} to {most:g}")
    return list(a.tolist())


def _state_file(path: str | os.PathLike[str]) -> Path:
    target = Path(path)
    if target.is_dir():
        target = target / "state.json"
    if target.exists() and not target.is_file():
        raise ValueError(f"{target} is no regular file")
    return target


def get(path: str | os.PathLike[str]) -> str:
    """Return the contents of a state file, or of that in a directory."""
    return _state_file(path).read_text("utf-8", errors="replace")


def put(path: str | os.PathLike[str], text: str) -> None:
    """Write a state file, which appears whole or not at all."""
    target = _state_file(path)
    if target.is_symlink():
        raise ValueError(f"{target} is no regular file but a link")
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f"{target.name}.") as room:
        part = Path(room, "part")
        with part.open("w", encoding="utf-8") as f:
            f.write(text)
            f.flush()
            os.fsync(f.fileno())
        os.replace(part, target)


class Policy(_library.Handle):
    """A policy of the catalogue by its name, which picks sources to crawl.

    It keeps account of the crawls that it is given, so that ``select()`` needs no argument. With
    knowledge ``observed`` it needs the states, (n,) interest. Where sources come and go, and time is
    that of a clock, a :class:`Crawler` is asked.

    It is safe with threads, whose calls take turns. It cannot be pickled; a :class:`Learner` is
    saved and loaded instead.
    """

    _kind = "policy"

    def __init__(
        self,
        name: str,
        instance: InstanceLike = "paper",
        budget: float | None = None,
        knowledge: str | None = None,
        seed: int = 1,
        marks: str | None = None,
        objective: str | None = None,
        **settings: float | int | str | bool,
    ) -> None:
        """Build the policy.

        Args:
            name: see :func:`ephemera.catalogue`.
            instance: the sources with their parameters, of which only names and costs are used with
                knowledge ``online``; see :func:`ephemera.sources` for crawlers that know no more.
            budget: budget units per epoch; None is the instance's own.
            knowledge: ``model``, ``observed`` or ``online``; None is the first at which it works.
            seed: of its draws.
            marks: law of the items' initial interest, for policies that need to know it.
            objective: what crawls are to bring about, as in :class:`ephemera.CrawlEnv`; ``forecast`` and ``certainty``
                learn for it.
            settings: those of the learner, as ``-set`` of the commands takes them.
        """
        run = spec(
            instance, budget=budget, objective=objective, world="poisson" if marks else "", knowledge=knowledge,
            marks=marks,
        )  # fmt: skip
        run["learner"] = {"algorithm": name if knowledge is None else f"{name}@{knowledge}", **settings}
        self._take(_library.ask(0, "crawler", run | {"seed": seed_of(seed)}))

    def _take(self, handle: int) -> None:
        self._handle = handle
        self._about = self._describe()

    @property
    def name(self) -> str:
        """Its name in the catalogue."""
        return str(self._about["name"])

    @property
    def knowledge(self) -> str:
        """Its level of knowledge."""
        return str(self._about["knowledge"])

    @property
    def names(self) -> list[str]:
        """Names of its n sources."""
        return list(self._about["names"])

    @property
    def costs(self) -> NDArray[np.float64]:
        """C of each source, budget units per crawl."""
        return np.array(self._about["costs"])

    @property
    def budget(self) -> float:
        """Budget units that the crawls of one epoch may cost."""
        return float(self._about["budget"])

    @property
    def epoch(self) -> int:
        """Number of the next decision, from 0."""
        return int(self._describe()["epoch"])

    def _describe(self) -> dict[str, Any]:
        about: dict[str, Any] = self._ask("describe")
        return about

    def _ask(self, what: str, *arguments: Any) -> Any:
        with self._turn():
            return _library.ask(self._alive(), what, *arguments)

    def _interest(self, values: ArrayLike, name: str) -> list[float]:
        """Return interest, which may be below 0 where waiting costs, or raise."""
        return amounts(values, name, least=-_MOST if self._about["costly"] else 0)

    def _states(self, state: ArrayLike | None) -> list[float] | None:
        return None if state is None else self._interest(state, "a state")

    def select(self, state: ArrayLike | None = None) -> NDArray[np.int64]:
        """Return the numbers of the sources to crawl now, shape (m,).

        They are within the budget, but for ``paper`` and ``relaxed``, which keep it on average only.
        """
        return np.array(self._ask("select", self._states(state)) or [], np.int64)

    def update(
        self,
        crawls: Crawls | Iterable[tuple[int, float] | tuple[int, float, Items]],
        state: ArrayLike | None = None,
    ) -> None:
        """Tell what the crawls brought back that did not fail, and go on to the next epoch.

        Args:
            crawls: a :class:`Crawls`, or ``(source, interest)`` or ``(source, interest, (ages,
                interests))`` of each crawl; the last form names its items, oldest first, which
                learners with knowledge ``online`` learn from.
            state: what waits at the next epoch, with knowledge ``observed``.
        """
        if isinstance(crawls, Crawls):
            columns = [_array(crawls.source, np.int64, "source"), _array(crawls.interest, np.float64, "interest")]
            items = [] if crawls.items is None else [crawls.items]
            rows: Iterable[Any] = zip(*columns, *items, strict=True)
        else:
            rows = crawls
        brought: list[dict[str, Any]] = []
        for source, interest, *named in rows:
            (amount,) = self._interest([interest], "the interest of a crawl")
            brought.append({"source": operator.index(source), "interest": amount})
            for found in named:
                ages = amounts(found[0], "the age of an item", sys.float_info.max)
                interests = amounts(found[1], "the interest of an item")
                if len(ages) != len(interests):
                    raise ValueError(f"a crawl has {len(ages)} ages and {len(interests)} interests of items")
                brought[-1]["items"] = [{"age": x, "interest": y} for x, y in zip(ages, interests, strict=True)]
        self._ask("update", brought, self._states(state))


class Learner(Policy):
    """A learner of the catalogue by its name, such as ``lspe``: it learns by :meth:`update`."""

    def __init__(self, name: str, *args: Any, **keywords: Any) -> None:
        """Build the learner; the arguments are those of :class:`Policy`."""
        super().__init__(name, *args, **keywords)
        if not self._about["learns"]:
            self.close()
            raise _library.Error(f"{name!r} does not learn; build it as a Policy")

    @property
    def metrics(self) -> dict[str, float]:
        """Figures of what was learned, such as the ``price`` of a budget unit, in interest."""
        return {k: v for k, v in self._describe()["metrics"].items() if v is not None}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the whole learner into a file, or as ``state.json`` into a directory.

        The file appears whole or not at all, and replaces a regular file only. It is the one that the
        commands write and read.
        """
        put(path, str(self._ask("save")))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Learner:
        """Take up a learner that was saved, here or by the command ``train``."""
        learner = cls.__new__(cls)
        learner._take(_library.ask(0, "load", get(path)))
        return learner


def sources(names: Iterable[str], costs: Iterable[float] | None = None, budget: float = 1.0) -> Instance:
    """Return an instance for a crawler that knows no more than names and costs (knowledge ``online``)."""
    named = list(names)
    prices = [1.0] * len(named) if costs is None else list(costs)
    if len(prices) != len(named):
        raise ValueError(f"there are {len(named)} names and {len(prices)} costs; needed is one of each source")
    return Instance([Source(n, 0, 1, 0, cost=c) for n, c in zip(named, prices, strict=True)], budget, "own")
