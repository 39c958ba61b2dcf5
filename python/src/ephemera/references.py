"""Exact references: Whittle's index and its inverse, the relaxed optimum and its bound."""

from __future__ import annotations

import sys
import tomllib
from dataclasses import dataclass
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _library
from .instance import Instance, InstanceLike, from_table
from .world import World, array, spec


def load_instance(
    instance: InstanceLike = "paper", budget: float | None = None, *, objective: str | None = None
) -> Instance:
    """Return an instance of that name, or of a .toml file, as data.

    Args:
        instance: as in :class:`ephemera.CrawlEnv`, but none that each reset draws.
        budget: budget units per epoch; None for the instance's own.
        objective: what crawls are to bring about, as in :class:`ephemera.CrawlEnv`: the sources have its law.
    """
    text = _library.ask(0, "instance", spec(instance, budget=budget, objective=objective))
    return from_table(tomllib.loads(text))


@dataclass(frozen=True)
class Relaxed:
    """The optimum when the budget has to be kept on average only.

    Source i spends the share ``share[i]`` of its epochs in cycles of ``short[i]`` epochs that end
    with a crawl, and the rest in cycles of ``long[i]``; inf stands for never.
    """

    bound: float
    """What no policy that keeps the budget exceeds, interest per epoch."""
    reward: float
    """What the plan earns, interest per epoch."""
    price: float
    """λ*, interest per budget unit."""
    cost: float
    """What the plan costs, budget units per epoch."""
    short: NDArray[np.float64]
    long: NDArray[np.float64]
    share: NDArray[np.float64]
    frequency: NDArray[np.float64]
    """Crawls per epoch."""


def relax(instance: InstanceLike = "paper", budget: float | None = None, *, objective: str | None = None) -> Relaxed:
    """Solve the relaxed problem (TCNS, section VII) exactly, under the mean dynamics."""
    a = _library.ask(0, "relax", spec(instance, budget=budget, world="mean", objective=objective))
    a = {k.lower(): np.array(v, np.float64) if isinstance(v, list) else v for k, v in a.items()}
    for k in ("short", "long"):
        a[k][a[k] >= sys.maxsize] = np.inf
    return Relaxed(**a)


def bound(instance: InstanceLike = "paper", budget: float | None = None, *, objective: str | None = None) -> float:
    """Return what no policy that keeps the budget exceeds under the mean dynamics, interest per epoch."""
    return relax(instance, budget, objective=objective).bound


def _curve(what: str, instance: InstanceLike, values: ArrayLike, **world: Unpack[World]) -> NDArray[np.float64]:
    v = array(values, "the argument", "a value for each source, in each row")
    if v.dtype.kind not in "biuf":
        raise TypeError(f"the values have dtype {v.dtype}; needed are real numbers")
    v = np.array(v, np.float64, order="C", ndmin=1)
    wrong = ~(v >= 0)
    if what.endswith("_at_age"):
        wrong |= (v != np.trunc(v)) | (v > 2**53)
    for *_, i in np.argwhere(wrong)[:1]:
        allowed = "0 or more, and of ages whole numbers up to 2^53"
        raise ValueError(f"source {i}: {what} at {v[wrong][0]}; allowed is {allowed}")
    _library.ask(0, "curve", what, v.shape[-1], spec(instance, **world), numbers=v.reshape(-1))
    return v


def _number_of_sources(instance: InstanceLike) -> int:
    if isinstance(instance, Instance):
        return len(instance.sources)
    return len(load_instance(instance).sources)


def index(instance: InstanceLike, state: ArrayLike, *, objective: str | None = None) -> NDArray[np.float64]:
    """Return the exact Whittle index γ(x) of each source (TCNS, Theorem 1).

    Args:
        instance: of n sources.
        state: x ≥ 0, interest; shape (…, n).
        objective: as in :func:`load_instance`.

    Returns:
        γ, interest per budget unit; same shape.
    """
    return _curve("index", instance, state, objective=objective)


def index_at_age(
    instance: InstanceLike, age: ArrayLike, *, world: str | None = None, objective: str | None = None
) -> NDArray[np.float64]:
    """Return what the policy ``whittle`` ranks by in a world: the exact Whittle index of each source at an age.

    Args:
        instance: of n sources.
        age: whole epochs, 0 or more; shape (…, n).
        world: as in :class:`ephemera.CrawlEnv`. What a crawl brings, and so the index, differs between ``poisson``,
            the default, and ``mean`` where sources have windows.
        objective: as in :func:`load_instance`.

    Returns:
        γ, interest per budget unit; same shape. −inf where it is below 0: not even a crawl that is free is worth while.
    """
    return _curve("index_at_age", instance, age, world=world, objective=objective)


def state_at_age(instance: InstanceLike, age: ArrayLike, *, objective: str | None = None) -> NDArray[np.float64]:
    """Return the state x of the mean dynamics, interest, at whole ages; shapes as in :func:`index`.

    For the exponential law it is u*(1 − α^age).
    """
    return _curve("state_at_age", instance, age, objective=objective)


def threshold(instance: InstanceLike, price: float, *, objective: str | None = None) -> NDArray[np.float64]:
    """Return γ⁻¹(λ) of each source, shape (n,): the state, in interest, whose index is the price λ."""
    n = _number_of_sources(instance)
    return _curve("inverse", instance, np.full(n, float(price)), objective=objective)


def curves(
    instance: InstanceLike = "paper", ages: int = 50, *, objective: str | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return states and indices of the mean dynamics at the ages 1, 2, …, of all sources; both of shape (ages, n)."""
    n = _number_of_sources(instance)
    age = np.repeat(np.arange(1.0, ages + 1)[:, None], n, axis=1)
    return (
        state_at_age(instance, age, objective=objective),
        index_at_age(instance, age, world="mean", objective=objective),
    )


@dataclass(frozen=True)
class Entry:
    """A learner or policy of the catalogue."""

    name: str
    about: str
    learns: bool
    levels: list[str]
    """Levels of knowledge at which it differs."""
    tracks: dict[str, str]
    """What it sees at each of them, as :data:`ephemera.TRACKS` has it."""


def catalogue() -> list[Entry]:
    """Return the learners and policies that :func:`run`, :func:`compare` and :class:`Policy` know by name."""
    return [Entry(**{**e, "levels": e["levels"] or ["model"]}) for e in _library.ask(0, "catalogue")]
