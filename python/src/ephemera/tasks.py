"""Tasks: worlds by name, to measure on; peers/README.md has what policies earn in them."""

from __future__ import annotations

from typing import Any

from gymnasium.envs import registration

TASKS: dict[str, dict[str, Any]] = {
    "TableI-v1": {"instance": "paper", "budget": 1},
    "TableIMean-v1": {"instance": "paper", "budget": 1, "world": "mean", "knowledge": "model"},
    "TableITwo-v1": {"instance": "paper", "budget": 2},
    "Lognormal10-v1": {"instance": "lognormal:10:*", "budget": 1},
    "Lognormal50-v1": {"instance": "lognormal:50:*", "budget": 1},
    "Mixed20-v1": {"instance": "mixed:20:*", "budget": 5},
    "PowerLaw-v1": {"instance": "lognormal:10:*:power", "budget": 1},
    "Drift-v1": {"instance": "drift:10:*", "budget": 1},
    "Observed-v1": {"instance": "lognormal:10:*", "budget": 1, "knowledge": "observed", "marks": "per-epoch"},
    "Recording-hn-v1": {"world": "replay", "budget": 1, "window": 1000},
    "Quiet50-v2": {"instance": "quiet:50:*", "budget": 5, "marks": "per-item"},
    "Spare20-v2": {"instance": "quiet:20:*", "budget": 10, "marks": "per-item"},
    "Tight20-v2": {"instance": "mixed:20:*", "budget": 3, "marks": "per-item"},
    "Mixture50-v2": {"instance": "lognormal:50:*:mixture", "budget": 5},
    "Hump50-v2": {"instance": "lognormal:50:*:hump", "budget": 5},
    "Large500-v2": {"instance": "lognormal:500:*", "budget": 10},
    "Drift50-v2": {"instance": "drift:50:*", "budget": 5},
    "Hosts50-v2": {"instance": "hosts:50:*", "budget": 5},
    "StateDrift20-v2": {"instance": "drift:20:*", "budget": 2, "knowledge": "observed"},
    "Pages200-v2": {"instance": "pages:200:*", "budget": 5, "world": "pages"},
    "PagesCorrelated200-v2": {"instance": "pages-correlated:200:*", "budget": 5, "world": "pages"},
    "PagesPinged200-v2": {"instance": "pages-pinged:200:*", "budget": 5, "world": "pages"},
    "Recording-hn-v2": {"world": "replay", "budget": 5, "window": 1000},
    "Recording-fbmedia2016-v2": {"world": "replay", "budget": 5, "window": 1000},
}
"""Keywords of :class:`ephemera.CrawlEnv` by task. ``*`` has each seed draw an instance. The file of a recording is
given as ``trace``; ``window=None`` plays the part that is held out. Tasks of version 1 are solved by estimation where
single items are seen; those of version 2 leave room below what full knowledge earns."""

EPOCHS: dict[str, int] = {
    "Quiet50-v2": 500, "Spare20-v2": 60, "Tight20-v2": 200, "Mixture50-v2": 1000, "Hump50-v2": 1000,
    "Large500-v2": 1000, "Drift50-v2": 10_000, "Hosts50-v2": 1000, "StateDrift20-v2": 10_000,
    "Pages200-v2": 1000, "PagesCorrelated200-v2": 1000, "PagesPinged200-v2": 1000,
}  # fmt: skip
"""Epochs that a policy has from nothing in a task of version 2, when the benchmark plays it."""
for _world in TASKS.values():
    _world.setdefault("knowledge", "online")


TRACKS: dict[str, str] = {
    "parameters": "model",
    "state": "observed",
    "items": "online",
    "harvest": "online",
    "bit": "online",
    "change": "online",
    "age": "online",
}
"""Tracks, by what a policy sees, with the level of knowledge of their tasks: the parameters of the sources; the true
state; the items that crawls bring back; what each crawl brings in all; whether it brings anything; of pages whether
they have changed, with their importance and pings; ages alone. Figures of policies are compared within a track."""

RECORDINGS: dict[str, str] = {
    "Recording-hn-v1": "trace_hn.csv.gz",
    "Recording-hn-v2": "trace_hn.csv.gz",
    "Recording-fbmedia2016-v2": "trace_fbmedia2016.csv.gz",
}
"""Names of the files of the tasks that play a recording. They are not in the package."""


def played(name: str, track: str) -> bool:
    """Return whether a task is one of a track.

    Those of pages are of ``change``, and of ``parameters``; so are all others but recordings and those whose true state
    is seen.
    """
    world, level = TASKS[name].get("world"), TASKS[name]["knowledge"]
    if world == "pages":
        return track in ("change", "parameters")
    if world != "replay" and track == "parameters" and level == "online":
        return True
    return track != "change" and level == TRACKS[track]


def task(name: str, **changes: Any) -> dict[str, Any]:
    """Return the keywords of a task, for :func:`ephemera.compare` and :func:`ephemera.run`."""
    try:
        return {**TASKS[name.removeprefix("ephemera/")], **changes}
    except KeyError:
        raise ValueError(f"there is no task {name!r}; there are {', '.join(TASKS)}") from None


def register() -> None:
    """Register the environments with Gymnasium."""
    for name, keywords in {"Crawl-v0": {}, **TASKS}.items():
        if f"ephemera/{name}" not in registration.registry:
            registration.register(
                id=f"ephemera/{name}",
                entry_point="ephemera.envs:CrawlEnv",
                vector_entry_point="ephemera.envs:CrawlVectorEnv",
                max_episode_steps=10_000 if "Drift" in name else 1000,  # until its last change
                kwargs=keywords,
            )
    if "ephemera/Arm-v0" not in registration.registry:
        registration.register(id="ephemera/Arm-v0", entry_point="ephemera.arm:ArmEnv", max_episode_steps=1000)
