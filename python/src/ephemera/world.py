"""The keywords that name a world, for runs and comparisons as for environments."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Iterable
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .instance import InstanceLike, named


def array(values: ArrayLike, name: str, needed: str) -> NDArray[Any]:
    """Return values as an array, or raise where lists in them differ in length."""
    try:
        return np.asarray(values)
    except ValueError as e:
        raise ValueError(f"{name} has parts of unequal length; needed is {needed}") from e


class World(TypedDict, total=False):
    """Keywords that name a world; :class:`ephemera.CrawlEnv` explains them."""

    budget: float | None
    objective: str | None
    world: str | None
    knowledge: str | None
    marks: str | None
    trace: str | os.PathLike[str] | None
    epoch: float | None
    decay: float | None
    split: float | None
    window: int | None


TEST_SEEDS = range(1 << 40, (1 << 40) + 1000)
"""Seeds of the worlds in which policies are tested. They are the same in all releases of version 1 of the tasks; seeds
that people train under, from 1 on, are none of them."""


def known(keywords: Iterable[str], *of: type) -> None:
    """Refuse keywords that are none of those classes; the error lists all."""
    names = [name for c in of for name in c.__annotations__]
    for name in keywords:
        if name not in names:
            raise TypeError(f"unknown keyword {name!r}; allowed are {', '.join(dict.fromkeys(names))}")


def whole(value: Any, name: str) -> int:
    """Return a whole number, or raise."""
    try:
        return operator.index(value)
    except TypeError:  # such as 1e4
        raise TypeError(f"{name} is {value!r}; needed is a whole number, an int") from None


def seed_of(seed: int) -> int:
    """Return a seed, which an int64 holds, or raise."""
    if not 0 <= whole(seed, "seed") < 2**63:
        raise ValueError(f"seed is {seed}; allowed are 0 to {2**63 - 1}")
    return operator.index(seed)


def positive(value: float, name: str = "budget") -> float:
    """Return a finite number above 0, or raise."""
    try:
        number = float(value)
    except (TypeError, ValueError):  # such as '1h', which the commands take
        number = math.nan
    if not 0 < number < math.inf:
        what = "number of seconds" if name == "epoch" else "number"
        raise ValueError(f"{name} is {value!r}; allowed is a finite {what} above 0")
    return number


def spec(instance: InstanceLike, **keywords: Unpack[World]) -> dict[str, Any]:
    """Return the run that names a world to the Go code: one of exact Whittle, of one epoch."""
    known(keywords, World)
    given: dict[str, Any] = {k: v for k, v in keywords.items() if v is not None}
    world = {"kind": given.get("world", "poisson")} | {k: given[k] for k in ("marks", "trace") if k in given}
    if "trace" in given and instance != "paper":
        raise ValueError(f"instance is {instance!r}; a recording brings sources of its own, leave it out")
    given |= {k: positive(given[k], k) for k in ("budget", "epoch", "decay", "split") if k in given}
    if world["kind"] == "replay":
        world |= {"epoch": "1h", "decay": 0.175, "split": 0.5, "trace": os.fsdecode(given.get("trace", ""))}
    elif given.get("window"):
        raise ValueError("a window is one of a recording, in world 'replay'")
    if "epoch" in given:
        world["epoch"] = f"{given['epoch']}s"
    world |= {k: given[k] for k in ("decay", "split") if k in given}
    if given.get("window"):
        world["part"] = "fitting"
    return {
        "steps": 1, "world": world, "learner": {"algorithm": f"whittle@{given.get('knowledge', 'model')}"},
        "instance": {
            "name": "" if "trace" in given else named(instance), "budget": given.get("budget", 0.0),
            "objective": given.get("objective", ""),
        },
    }  # fmt: skip
