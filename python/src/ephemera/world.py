"""The keywords that name a world, for runs and comparisons as for environments."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Iterable
from typing import Any, TypedDict, Unpack

from .instance import InstanceLike, named


class World(TypedDict, total=False):
    """Keywords that name a world; :class:`ephemera.CrawlEnv` explains them."""

    budget: float | None
    world: str | None
    knowledge: str | None
    marks: str | None
    trace: str | os.PathLike[str] | None
    epoch: float | None
    decay: float | None
    split: float | None
    window: int | None


_OF = {"poisson": ("marks",), "replay": ("trace", "epoch", "decay", "split", "window")}


def known(keywords: Iterable[str], *of: type) -> None:
    """Refuse keywords that are none of those classes; the error lists all."""
    names = [name for c in of for name in c.__annotations__]
    for name in keywords:
        if name not in names:
            raise TypeError(f"unknown keyword {name!r}; allowed are {', '.join(dict.fromkeys(names))}")


def seed_of(seed: int) -> int:
    """Return a seed, or raise."""
    if not 0 <= operator.index(seed) < 2**64:
        raise ValueError(f"seed is {seed}; allowed are 0 to {2**64 - 1}")
    return operator.index(seed)


def spec(instance: InstanceLike, **world: Unpack[World]) -> dict[str, Any]:
    """Return the settings that name a world to the Go code: those that are given."""
    known(world, World)
    given: dict[str, Any] = {k: v for k, v in world.items() if v is not None}
    kind = given.get("world", "poisson")
    for of, names in _OF.items():
        for name in names:
            if kind != of and name in given:
                raise ValueError(f"{name} belongs to world {of!r}, not to {kind!r}")
    if kind == "replay" and "trace" not in given:
        raise ValueError("world 'replay' takes the path of a recording as trace")
    given["kind"] = given.pop("world", "poisson")
    for name in ("budget", "epoch", "decay", "split"):
        if name in given:
            given[name] = float(given[name])
            if not 0 < given[name] < math.inf:
                raise ValueError(f"{name} is {given[name]}; allowed is a finite number above 0")
    if "epoch" in given:
        given["epoch"] = f"{given['epoch']}s"
    if "trace" in given:
        given["trace"] = os.fsdecode(given["trace"])
    return {**named(instance), **given}
