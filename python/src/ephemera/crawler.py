"""A learner for a program that crawls: sources come and go, and time is that of a clock."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from . import _library
from .policies import amounts, get, put
from .world import seed_of

_OUTCOMES = ("found", "unchanged", "failed")
_LATER = -1  # a worth that is given later

Item = tuple[float, float | None]
"""When an item was published, Unix time in seconds, and its worth when it was new; None for what is given later."""


@dataclass(frozen=True)
class Belief:
    """What a crawler thinks of a source; NaN where it does not know."""

    items: float
    """Per hour."""
    interest: float
    """Published per hour."""
    last: float
    """Unix time of the epoch of its last crawl."""
    due: float
    """Unix time at which a crawl is worth its price."""
    price: float
    """Of a crawl: interest that it has to bring beyond what waiting would."""
    changes: float = 0.0
    """Per hour, of a page; under ``freshness``, where items and interest are 0."""
    fresh: float = 0.0
    """Probability that the copy of a page is as the page is, by the latest time."""


class Crawler(_library.Handle):
    """Says which sources to crawl when there is room, and learns from each crawl that is reported to it.

    All times are Unix times in seconds, and handed in. Crawls may be reported in any order, also of
    sources that were not asked for. It knows nothing of the sources beforehand.
    """

    _kind = "crawler"

    def __init__(
        self,
        start: float,
        *,
        epoch: float = 3600.0,
        budget: float = 1.0,
        objective: str | None = None,
        per_group: int = 0,
        learner: str = "forecast",
        settings: Mapping[str, Any] | None = None,
        seed: int = 1,
    ) -> None:
        """Begin without sources.

        Args:
            start: when the first epoch begins.
            epoch: seconds; how exact times are. Some crawls should fit into each.
            budget: what the crawls of an epoch may cost together; one costs 1 unless its source says otherwise.
            objective: what crawls are to bring about: ``delay`` (the default), ``delay:2``, ``interest:4h``
                or ``deadline:24h``; for ``lspe`` ``interest:4h`` is the default. Under ``freshness`` sources
                are pages, and a crawl tells whether its page has changed.
            per_group: crawls of one group of sources in an epoch, at most; 0 for any number.
            learner: ``forecast`` or ``lspe``.
            settings: those of the learner.
            seed: of a learner that draws.
        """
        options = {
            "epoch": _span(epoch, "epoch"), "budget": float(budget),
            "objective": objective or ("interest:4h" if learner == "lspe" else "delay"),
            "perGroup": operator.index(per_group), "learner": learner, "seed": seed_of(seed),
        }  # fmt: skip
        self._handle = _library.ask(0, "feeds", _date(start, "start"), options, dict(settings or {}))

    def _ask(self, what: str, *arguments: Any) -> Any:
        with self._turn():
            return _library.ask(self._alive(), what, *arguments)

    def add(
        self,
        name: str,
        *,
        cost: float = 1.0,
        group: str = "",
        shortest: float = 0.0,
        longest: float = 0.0,
        importance: float = 0.0,
    ) -> None:
        """Add a source, of which nothing is known; it takes the same time however many there are.

        Args:
            name: another than all others have.
            cost: of a crawl, budget units.
            group: of sources whose crawls are limited together, such as a host.
            shortest: seconds between two crawls, at least.
            longest: seconds between two crawls, as far as the budget goes; 0 leaves it open.
            importance: under ``freshness``, what it is worth per time that the copy is fresh; 0 stands for 1.
        """
        times = {"shortest": _span(shortest, "shortest"), "longest": _span(longest, "longest")}
        self._ask("add", name, {"cost": float(cost), "group": group, **times, "importance": float(importance)})

    def remove(self, name: str) -> None:
        """Forget a source."""
        self._ask("remove", name)

    def set_budget(self, budget: float) -> None:
        """Change the budget from the next epoch on."""
        self._ask("budget", float(budget))

    def __len__(self) -> int:
        return int(self._ask("length"))

    def select(self, now: float, n: int) -> list[str]:
        """Return at most n sources to crawl now. A crawl that is never reported counts as failed."""
        return self._ask("select", _date(now, "now"), operator.index(n)) or []

    def update(
        self,
        name: str,
        now: float,
        items: Iterable[Item] = (),
        *,
        changed: bool = False,
        outcome: str = "found",
        truncated: bool = False,
        not_before: float = 0.0,
    ) -> None:
        """Tell of a crawl.

        Args:
            name: of the source.
            now: when it was crawled.
            items: that were not seen before.
            changed: under ``freshness``, whether the page is another than at the crawl before.
            outcome: ``found``, ``unchanged`` or ``failed``.
            truncated: whether all that the source shows was new, so that older items may be missed.
            not_before: when the source may be crawled again, from Retry-After or max-age; 0 for any time.
        """
        if outcome not in _OUTCOMES:
            raise ValueError(f"outcome is {outcome!r}; allowed are {', '.join(_OUTCOMES)}")
        later = {"notBefore": _date(not_before, "not_before")} if not_before else {}
        crawl = {"source": name, "at": _date(now, "now"), "items": _named(items), "outcome": _OUTCOMES.index(outcome)}
        self._ask("update", {**crawl, "changed": bool(changed), "truncated": bool(truncated), **later})

    def ping(self, name: str, now: float) -> None:
        """Tell that a page may have changed, as a sitemap or a hub says, right or wrong; for ``freshness``."""
        self._ask("ping", name, _date(now, "now"))

    def report(self, name: str, found: float, items: Iterable[Item]) -> None:
        """Tell what items are worth, by now, that a crawl at that time found without worth."""
        self._ask("report", name, _date(found, "found"), _named(items))

    def belief(self, name: str) -> Belief:
        """Return what it thinks of a source."""
        b = self._ask("belief", name)
        of_page = b["Changes"], b["Fresh"]
        return Belief(b["Items"], b["Interest"], _unix(b["Last"]), _unix(b["Due"]), b["Price"], *of_page)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all of it into a file, or as ``state.json`` into a directory; it appears whole or not at all."""
        put(path, str(self._ask("save")))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Crawler:
        """Take up a crawler that was saved; it goes on as if it had not been interrupted."""
        crawler = cls.__new__(cls)
        crawler._handle = _library.ask(0, "load feeds", get(path))
        return crawler


_LONGEST = 2**63 // 10**9  # seconds; Go counts nanoseconds


def _span(seconds: float, name: str) -> int:
    if not _between(-_LONGEST, seconds, _LONGEST):
        raise ValueError(f"{name} is {seconds!r}; allowed are seconds, up to {_LONGEST}")
    return round(seconds * 1e9)


_FIRST, _LAST = -62_135_596_800, 253_402_300_799  # of the years 1 to 9999


def _date(unix: float, name: str) -> str:
    if not _between(_FIRST, unix, _LAST):
        raise ValueError(f"{name} is {unix!r}; allowed are Unix times in seconds, up to {_LAST}")
    return datetime.fromtimestamp(unix, UTC).isoformat()


def _between(low: int, value: float, high: int) -> bool:
    try:
        return low <= value <= high
    except TypeError:  # such as a datetime, or '1h', which the commands take
        return False


def _unix(date: str) -> float:
    at = datetime.fromisoformat(date)
    return math.nan if at.year == 1 else at.timestamp()  # the zero time of Go


def _named(items: Iterable[Item]) -> list[dict[str, Any]]:
    rows = [(_date(at, "published"), worth) for at, worth in items]
    worths = iter(amounts([worth for _, worth in rows if worth is not None], "worth"))
    return [{"published": at, "worth": _LATER if worth is None else next(worths)} for at, worth in rows]
