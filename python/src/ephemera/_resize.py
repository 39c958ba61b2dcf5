"""Sources come and go while a learner runs: its state as data, moved to other sources."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from . import _library
from .instance import Instance, Source, from_table


def resized(
    state: str, keep: Sequence[int], added: Sequence[Source], begin: Callable[..., str]
) -> tuple[int, dict[str, Any]]:
    """Return the handle and the description of a learner with other sources.

    Args:
        state: contents of the state file of a learner.
        keep: numbers of its sources that stay. What was learned of these is kept, with the price.
        added: sources behind them, which begin as in a new learner.
        begin: returns the contents of the state file of a new learner, from an instance and keywords.
    """
    old = json.loads(state)["body"]
    config = tomllib.loads(old["config"])
    before = from_table(config["instance"])
    after = Instance([*(before.sources[i] for i in keep), *added], before.budget, before.id)
    # The states of new learners, one of them with one more source, tell what is whose.
    more = replace(before, sources=[*before.sources, replace(before.sources[0], name="one more of them")])
    keywords = {"start": old.get("start", 0), "length": old.get("length", 0.0), "settings": config["settings"]}
    first, second, new = (json.loads(begin(i, **keywords))["body"] for i in (before, more, after))
    new["learner"] = _moved("state", old["learner"], first["learner"], second["learner"], new["learner"], keep)
    books = new["run"]  # when each source was crawled, and its mean state
    books["Epoch"] = old["run"]["Epoch"]
    books["Last"] = [books["Epoch"] - 1] * len(after.sources)
    for to, source in enumerate(keep):
        for of in ("Last", "Mean"):
            books[of][to] = old["run"][of][source]
    try:
        return _library.build("load", {"saved": new})
    except _library.Error:
        # A threshold is at most so many times as long as crawling each source once takes, which
        # may be less now.
        _lower(new["learner"], math.log(_round(after) / _round(before)))
        return _library.build("load", {"saved": new})


def _moved(name: str, now: Any, before: Any, more: Any, after: Any, keep: Sequence[int]) -> Any:
    """Move a part of a state to other sources.

    A list that grows with one more source has as many entries for each; one that is as long in all
    new learners belongs to all sources; what is random may begin anew.
    """
    if isinstance(now, dict):
        return {key: _moved(f"{name}.{key}", v, before[key], more[key], after[key], keep) for key, v in now.items()}
    if not isinstance(now, list):
        return now
    each = len(more) - len(before)
    if each > 0 and len(now) == len(before) and len(before) % each == 0:
        moved = list(after)
        for to, source in enumerate(keep):
            moved[to * each : (to + 1) * each] = now[source * each : (source + 1) * each]
        return moved
    if len(now) == len(before) == len(more) == len(after):
        return now
    if name.endswith(".rand"):
        return after
    raise _library.Error(
        f"{name} has {len(now)} entries, and {len(before)} in a new learner; this learner cannot change its sources"
    )


def _lower(state: dict[str, Any], by: float) -> None:
    """Have no logarithm of a threshold be nearer to the greatest than by."""
    for key, v in state.items():
        if isinstance(v, dict):
            _lower(v, by)
        elif key == "threshold" and isinstance(v, list):
            most = max(v) + by
            state[key] = [min(t, most) for t in v]


def _round(instance: Instance) -> float:
    """Return how many epochs it takes to crawl once each source that can be afforded."""
    return sum(s.cost for s in instance.sources if s.cost <= instance.budget * (1 + 1e-9)) / instance.budget
