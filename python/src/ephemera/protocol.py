"""The benchmark: a policy in all tasks of a track, under seeds that nobody trains under."""

from __future__ import annotations

import hashlib
import inspect
import itertools
import json
import math
import operator
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _library, document
from .batch import perform
from .loop import RAW, Gym, Stage
from .runs import Comparison, Player, PolicyLike, compared, player
from .tasks import EPOCHS, RECORDINGS, TASKS, TRACKS, played, task
from .world import TEST_SEEDS, spec

FORMAT = 1  # of what is kept


def _version() -> str:
    from . import __version__

    return __version__


def _tasks(track: str, names: Sequence[str] | None, trace: str | os.PathLike[str] | None) -> dict[str, dict[str, Any]]:
    """Return the worlds of a track by the names of their tasks."""
    if track not in TRACKS:
        raise ValueError(f"track is {track!r}; allowed are {', '.join(TRACKS)}")
    of = [n for n in TASKS if played(n, track)]
    room = trace is not None and Path(trace).is_dir()

    def recording(name: str) -> Path | None:
        return Path(trace, RECORDINGS[name]) if room and trace is not None else None if trace is None else Path(trace)

    if names is None:
        files = {n: recording(n) for n in of if n in RECORDINGS}
        there = [n for n in of if n not in files or ((f := files[n]) and f.name == RECORDINGS[n] and f.exists())]
        newest = max(n.rpartition("-v")[2] for n in there)
        names = [n for n in there if n.endswith(f"-v{newest}")]
    worlds = {}
    for name in names:
        worlds[name] = task(name) | {"knowledge": TRACKS[track]}
        if name not in of:
            raise ValueError(f"{name} is no task of track {track!r}; these are {', '.join(of)}")
        if name in RECORDINGS:
            if (file := recording(name)) is None:
                raise ValueError(f"{name} needs its recording, {RECORDINGS[name]} or its directory, as trace=")
            worlds[name] |= {"trace": os.fspath(file), "window": None}
    return worlds


def benchmark_run(
    policy: PolicyLike,
    world: dict[str, Any],
    seed: int,
    *,
    track: str,
    steps: int | None = 10_000,
    name: str | None = None,
) -> dict[str, Any]:
    """Play one policy in one world under one seed; the record of the run.

    What goes in and out can be pickled where the policy can, for Joblib, Ray and others that spread work.

    Args:
        policy: as in :func:`ephemera.run`.
        world: keywords as :func:`ephemera.task` returns them.
        seed: of the world.
        track: what the policy sees; one of :data:`ephemera.TRACKS`.
        steps: epochs; None for all of a recording.
        name: of the policy in the record.
    """
    p = player(name, policy)
    _check(p, track)
    world = dict(world)
    instance = world.pop("instance", "paper")
    level = TRACKS[track]
    epochs = operator.index(steps or 0)
    if p.make is None:
        run = spec(instance, **world)
        (record,) = perform(run, level, [(p.settings, {"steps": epochs, "evaluation": 0, "seed": seed})], 1)
        return record
    first = p.make()
    if isinstance(first, Gym):
        if track in ("bit", "change", "age"):
            raise ValueError(f"environments show what crawls bring, which is more than track {track!r} sees")
        form = first.form
    else:
        form = RAW | ({"items": True} if track == "items" else {})
    stage = Stage(instance, epochs, 0, track, **world, **form)
    made = itertools.chain([first], (p.make() for _ in itertools.count()))
    try:
        return stage.record(lambda: next(made), p.row, seed, level)[0] | {"learns": hasattr(first, "frozen")}
    finally:
        stage.close()


def _check(p: Player, track: str) -> None:
    if track not in TRACKS:
        raise ValueError(f"track is {track!r}; allowed are {', '.join(TRACKS)}")
    if p.make is not None or p.entry is None:
        return
    own = set(p.entry.tracks.values())
    if track not in own and not (track == "change" and own & {"items", "bit", "age"}):  # of pages they see the bit
        raise ValueError(
            f"{p.settings['name']} is of track {' and '.join(dict.fromkeys(p.entry.tracks.values()))}, not {track!r}"
        )


def _settings(p: Player, policy: PolicyLike) -> Any:
    """Return what tells one version of a policy from another."""
    if p.make is None:
        return p.settings
    try:
        kind = policy if inspect.isroutine(policy) or inspect.isclass(policy) else type(policy)
        return hashlib.sha256(inspect.getsource(kind).encode()).hexdigest()
    except (OSError, TypeError):
        return p.row


@dataclass(frozen=True)
class Benchmark:
    """What a policy earns in the tasks of a track, as shares of exact Whittle in the same epochs."""

    row: dict[str, Any]
    """One row of a leaderboard, as JSON can hold it: version, track, seeds, epochs, and by task the mean share with its
    interval of 95 %, NaN as null."""
    shares: NDArray[np.float64] = field(repr=False)
    """(seeds, tasks): as rliable takes them."""
    comparisons: dict[str, Comparison] = field(repr=False)
    """Of each task what :func:`ephemera.compare` returns."""

    def _cells(self) -> list[list[str]]:
        def share(e: dict[str, Any]) -> list[str]:
            return [document.percent(e["share"]), document.interval(e["lo"], e["hi"])]

        of = self.row
        tasks = [[t, *share(e), f"{e['regret']:.4g}"] for t, e in of["tasks"].items()]
        whole = ["mean of the tasks", *share(of["mean"]), ""]
        return [*tasks, whole, ["interquartile mean", document.percent(of["iqm"]), "", ""]]

    def _about(self) -> str:
        r = self.row
        return (
            f"{r['policy']}, track {r['track']}, ephemera {r['version']}, {r['seeds']} test seeds, "
            f"{r['epochs']} epochs in all; shares of exact Whittle, with 95 % intervals"
        )

    _head = ("task", "% of Whittle", "95 % interval", "regret per epoch")

    def __str__(self) -> str:
        rows = [list(self._head), *self._cells()]
        wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join([first.ljust(wide[0]), *(c.rjust(w) for c, w in zip(rest, wide[1:], strict=True))]).rstrip()
            for first, *rest in rows
        ]
        return "\n".join([*lines, "", self._about()])

    def to_markdown(self) -> str:
        """Return the table as Markdown."""
        rows = [[*self._head], ["---", "--:", "--:", "--:"], *self._cells()]
        lines = ["| " + " | ".join(cells) + " |" for cells in rows]
        return "\n".join([*lines, "", self._about() + ".", ""])

    def to_latex(self) -> str:
        """Return the table as LaTeX, with the rules of the package booktabs."""
        cells = self._cells()
        return document.latex(self._head, cells[:-2], cells[-2:])

    def _repr_html_(self) -> str:
        return document.table(self._head, self._cells(), self._about())

    def plot(self) -> Any:
        """Return a matplotlib figure: a point for each task, with its interval, and exact Whittle as a line."""
        tasks = list(self.row["tasks"])[::-1]
        figure, axes = document.column(0.6 + 0.3 * len(tasks))
        for y, name in enumerate(tasks):
            e = self.row["tasks"][name]
            if e["lo"] is not None:
                axes.plot([100 * e["lo"], 100 * e["hi"]], [y, y], color="0.5", linewidth=3, solid_capstyle="butt")
            axes.plot(100 * e["share"], y, "o", color="black", markersize=4)
        axes.axvline(100, color="0.7", linewidth=1, zorder=0)
        axes.set_yticks(range(len(tasks)), tasks)
        axes.set_xlabel("% of what exact Whittle earns")
        return figure


def benchmark(
    policy: PolicyLike,
    track: str | None = None,
    *,
    tasks: Sequence[str] | None = None,
    seeds: int = 10,
    steps: int | None = None,
    out: str | os.PathLike[str] | None = None,
    processes: int = 1,
    trace: str | os.PathLike[str] | None = None,
    name: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Benchmark:
    """Play a policy in all tasks of a track, under the test seeds.

    Args:
        policy: as in :func:`ephemera.run`. One that learns is scored while it learns, over all epochs.
        track: what it sees, one of :data:`ephemera.TRACKS`; by default ``items`` for policies of Python,
            ``harvest`` for those of environments, and its own for one of the catalogue.
        tasks: names of some tasks of the track; None for all of the newest version.
        seeds: how many of :data:`ephemera.TEST_SEEDS`.
        steps: epochs of a run; by default those of :data:`ephemera.EPOCHS`, and 10 000 in tasks that it does not
            name. A recording ends by itself.
        out: directory that keeps each run as a file. The same call goes on with what is missing there, also
            after Ctrl-C; what was played with another version, policy or number of steps is played again.
            Each task's directory there is one for :func:`ephemera.load` and the command ``report``.
        processes: that play runs at a time; the policy has to be one that can be pickled.
        trace: the directory of the recordings, whose names :data:`ephemera.tasks.RECORDINGS` has, or one of them;
            tasks whose recordings are not there are left out.
        name: of the policy.
        progress: called with the numbers of runs that are done, and of all.
    """
    p = player(name, policy)
    if p.reason and seeds > 1:
        raise ValueError(p.reason)
    if track is None:
        own = "harvest" if p.make is not None and isinstance(p.make(), Gym) else "items"
        track = p.entry.tracks[p.entry.levels[0]] if p.entry else own
    _check(p, track)
    if not 1 <= operator.index(seeds) <= len(TEST_SEEDS):
        raise ValueError(f"seeds is {seeds}; allowed are 1 to {len(TEST_SEEDS)}")
    worlds = _tasks(track, tasks, trace)

    def epochs(t: str) -> int | None:
        return None if worlds[t].get("world") == "replay" else steps or EPOCHS.get(t, 10_000)

    made = {"format": FORMAT, "version": _version(), "track": track, "policy": [p.row, _settings(p, policy)]}
    files: dict[tuple[str, int], Path | None] = {}
    records: dict[tuple[str, int], dict[str, Any]] = {}
    for t in worlds:
        how = json.dumps([made, worlds[t], epochs(t)], sort_keys=True, default=str)
        key = hashlib.sha256(how.encode()).hexdigest()[:16]
        for seed in TEST_SEEDS[:seeds]:
            file = None if out is None else Path(out, t, "runs", f"{key}-{seed}.json")
            files[t, seed] = file
            if file is not None and file.exists():
                records[t, seed] = json.loads(file.read_text("utf-8"))

    def keep(which: tuple[str, int], record: dict[str, Any]) -> None:
        records[which] = record
        if file := files[which]:
            file.parent.mkdir(parents=True, exist_ok=True)
            part = file.with_suffix(f".{os.getpid()}.part")
            part.write_text(json.dumps(record) + "\n", "utf-8")
            part.replace(file)
        if progress is not None:
            progress(len(records), len(files))

    named: dict[str, Any] = {"track": track, "name": p.row}
    todo = [(t, seed) for t, seed in files if (t, seed) not in records]

    if processes == 1:
        for t, seed in todo:
            keep((t, seed), benchmark_run(policy, worlds[t], seed, steps=epochs(t), **named))
    else:
        with ProcessPoolExecutor(processes) as pool:
            started = {
                pool.submit(benchmark_run, policy, worlds[t], seed, steps=epochs(t), **named): (t, seed)
                for t, seed in todo
            }
            try:
                for done in as_completed(started):
                    keep(started[done], done.result())
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    comparisons = {}
    for t in worlds:
        of = [records[t, seed] for seed in TEST_SEEDS[:seeds]]
        learns = p.entry.learns if p.entry else bool(of[0].get("learns"))
        of = [{k: v for k, v in r.items() if k != "learns"} for r in of]
        comparisons[t] = compared([(p.row, learns, of)], TRACKS[track], seeds, TEST_SEEDS[0])
        if out is not None:
            names = [file.stem for seed in TEST_SEEDS[:seeds] if (file := files[t, seed])]
            comparisons[t].save(Path(out, t), {p.row: names})
    learning = [[records[t, seed]["learning"] for t in worlds] for seed in TEST_SEEDS[:seeds]]
    shares = np.array([[f.get("of_whittle", math.nan) for f in of] for of in learning])
    by_task, whole = _estimates([*shares.T.tolist(), shares.mean(axis=1).tolist()])
    lost = np.array([[f["whittle"] - f["reward"] for f in of] for of in learning]).mean(axis=0)
    row = {
        "format": FORMAT, "version": _version(), "policy": p.row, "track": track, "seeds": seeds,
        "epochs": sum(f["epochs"] for of in learning for f in of),
        "tasks": {t: {**e, "regret": float(r)} for t, e, r in zip(worlds, by_task, lost, strict=True)},
        "mean": whole[0], "iqm": _iqm(shares),
    }  # fmt: skip
    if out is not None:
        Path(out, "benchmark.json").write_text(json.dumps(row, indent=1) + "\n", "utf-8")
    return Benchmark(row, shares, comparisons)


def _estimates(samples: list[list[float]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return means with their intervals: of all samples but the last, and of the last."""
    found = [{"share": e["value"], "lo": e["lo"], "hi": e["hi"]} for e in _library.ask(0, "means", samples)]
    return found[:-1], found[-1:]


def _iqm(shares: NDArray[np.float64]) -> float:
    """Return the interquartile mean of all shares: that of what is left without a quarter at each end."""
    values = np.sort(shares.reshape(-1))
    cut = len(values) // 4
    return float(values[cut : len(values) - cut].mean())
