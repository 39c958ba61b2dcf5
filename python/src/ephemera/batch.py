"""Runs in the Go code, which signals of Python end."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

from . import _library
from .world import whole

ENDLESS = 1 << 53
"""Epochs, more than any recording has."""


def patiently(stop: Callable[[], Any], handle: int, what: str, *arguments: Any) -> Any:
    """Call a function of a handle that may take long; a signal has it stopped."""
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(_library.ask, handle, what, *arguments)
        try:
            while not done.done():  # between the waits Python takes up signals
                wait([done], 0.1)
        except BaseException:
            stop()  # it ends after the epochs under way
            raise
        return done.result()


def perform(
    world: dict[str, Any], level: str | None, runs: Sequence[tuple[dict[str, Any], dict[str, Any]]], workers: int = 0
) -> list[dict[str, Any]]:
    """Perform runs of policies of the catalogue, each with its settings, in a world; their records.

    They are played at the level of knowledge, None standing for the first of each.
    """
    if not runs:
        return []
    all_of_them = []
    for policy, of in runs:
        at = "" if level is None or policy["name"].startswith("file:") else f"@{level}"
        learner = {"algorithm": policy["name"] + at, **policy.get("settings", {})}
        all_of_them.append({**world, **of, "steps": steps_of(world, of["steps"]), "learner": learner})
    handle = _library.ask(0, "runs", all_of_them, workers)
    close = contextlib.ExitStack()
    close.callback(_library.ask, handle, "close")
    with close:
        return list(patiently(close.close, handle, "perform"))


def steps_or_all(steps: int | None) -> int:
    """Return epochs that are asked for, 0 standing for None, or raise."""
    if steps is not None and whole(steps, "steps") < 1:
        raise ValueError(f"steps is {steps}; allowed is 1 or more")
    return steps or 0


def steps_of(world: dict[str, Any], steps: int) -> int:
    """Return the epochs of a run, 0 standing for all of a recording."""
    if not steps and "trace" not in world["world"]:
        raise ValueError("steps is None, which is all of a recording, and this world does not end; needed is a number")
    return steps or ENDLESS


def earned(name: str, world: dict[str, Any], level: str, steps: int) -> float:
    """Return what a policy of the catalogue earns in a run under seed 1, interest per epoch."""
    (record,) = perform(world, level, [({"name": name}, {"steps": steps, "evaluation": 0, "seed": 1})])
    return float(record["learning"]["reward"])
