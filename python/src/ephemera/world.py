"""The keywords that name a world, for runs and comparisons as for environments."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, TypedDict

from .instance import InstanceLike, named


class World(TypedDict, total=False):
    """Keywords that name a world; :class:`ephemera.CrawlEnv` explains them."""

    budget: float | None
    world: str
    knowledge: str
    marks: str | None
    sigma: float
    unobserved: Sequence[str] | None
    trace: str | os.PathLike[str] | None
    epoch: float
    decay: float
    split: float


def spec(
    instance: InstanceLike,
    budget: float | None = None,
    world: str = "mean",
    knowledge: str = "model",
    marks: str | None = None,
    sigma: float = 1.0,
    unobserved: Sequence[str] | None = None,
    trace: str | os.PathLike[str] | None = None,
    epoch: float = 3600.0,
    decay: float = 0.175,
    split: float = 0.5,
) -> dict[str, Any]:
    """Return the settings that name a world to the Go code."""
    return {
        **named(instance),
        "budget": float(budget or 0),
        "world": world,
        "knowledge": knowledge,
        "marks": marks or "",
        "sigma": float(sigma),
        "unobserved": list(unobserved) if unobserved is not None else None,
        "trace": os.fspath(trace or ""),
        "epoch": float(epoch),
        "decay": float(decay),
        "split": float(split),
    }
