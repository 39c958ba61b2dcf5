"""The benchmark: a policy in all tasks of a track, under seeds that nobody trains under."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import multiprocessing
import os
import pickle
import re
import secrets
import signal
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _library, document, identity
from ..batch import perform, steps_or_all
from ..loop import RAW, Gym, Stage
from ..policies import get
from ..runs import Comparison, Player, PolicyLike, compared, player
from ..tasks import EPOCHS, RECORDINGS, TASKS, TRACKS, played, task
from ..world import TEST_SEEDS, seed_of, spec, whole

FORMAT = 1  # of what is kept
_SHORT = 20  # epochs that tell one policy from another


def _version() -> str:
    from .. import __version__

    return __version__


def _tasks(track: str, names: Sequence[str] | None, trace: str | os.PathLike[str] | None) -> dict[str, dict[str, Any]]:
    """Return the worlds of a track by the names of their tasks."""
    if track not in TRACKS:
        raise ValueError(f"track is {track!r}; allowed are {', '.join(TRACKS)}")
    of = [n for n in TASKS if played(n, track)]
    room = None if trace is None else Path(trace)
    if room is not None and not any((room / file).is_file() for file in RECORDINGS.values()):
        raise ValueError(
            f"trace is {os.fspath(room)!r}; needed is the directory of the recordings, with a file "
            f"{' or '.join(dict.fromkeys(RECORDINGS.values()))}"
        )
    files = {n: room / RECORDINGS[n] for n in of if n in RECORDINGS and room is not None}
    if names is None:
        there = [n for n in of if n not in RECORDINGS or (n in files and files[n].exists())]
        newest = max(n.rpartition("-v")[2] for n in there)
        names = [n for n in there if n.endswith(f"-v{newest}")]
    elif isinstance(names, str) or not names:
        raise ValueError(f"tasks is {names!r}; needed is a list of names, or None for all of the newest version")
    worlds = {}
    for name in (n.removeprefix("ephemera/") for n in names):
        worlds[name] = task(name) | {"knowledge": TRACKS[track]}
        if name not in of:
            raise ValueError(f"{name} is no task of track {track!r}; these are {', '.join(of)}")
        if name in RECORDINGS:
            if name not in files or not files[name].exists():
                where = "no trace is given" if room is None else f"trace is {os.fspath(room)!r}"
                raise ValueError(
                    f"{name} plays {RECORDINGS[name]}, and {where}; needed is the directory with that file"
                )
            worlds[name] |= {"trace": os.fspath(files[name]), "window": None}
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
        world: keywords as :func:`ephemera.task` returns them; the track says what knowledge there is.
        seed: of the world.
        track: what the policy sees; one of :data:`ephemera.TRACKS`.
        steps: epochs; None for all of a recording.
        name: of the policy in the record.
    """
    p = player(name, policy)
    _check(p, track)
    if not isinstance(world, dict):
        raise TypeError(f"world is {world!r}; needed are keywords, as ephemera.task returns them")
    seed, level = seed_of(seed), TRACKS[track]
    world = world | {"knowledge": level}
    instance = world.pop("instance", "paper")
    epochs = steps_or_all(steps)
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
    own = list(dict.fromkeys(p.entry.tracks.values()))
    if not {"items", "bit", "age"}.isdisjoint(own) and "change" not in own:  # of pages they see the bit
        own.append("change")
    if track not in own:
        are = "are" if own[1:] else "is"
        raise ValueError(f"track is {track!r}; allowed for {p.settings['name']} {are} {', '.join(own)}")


def _identity(p: Player, policy: PolicyLike) -> Any:
    """Return what tells one version of a policy from another, and of what it makes for a run."""
    if p.make is None:
        saved = str(p.settings["name"])
        return p.settings, get(saved.removeprefix("file:")) if saved.startswith("file:") else None
    try:
        own: list[Any] = [identity.digest(policy)]
        if not p.reason:
            one, other = (_parts(p.make()) for _ in range(2))
            own.append({k: v for k, v in one.items() if other.get(k) == v})  # others draw by chance when they are made
        return own
    except identity.Unknown as e:
        warnings.warn(
            f"{p.row} holds {e}, of which nothing says whether it is the same in another call: what is kept is not "
            "played again only by one that holds plain values, arrays, functions and objects of these",
            stacklevel=3,
        )
        return secrets.token_hex()


def _parts(agent: Any) -> dict[str, str]:
    """Return digests of an agent, and of each of its attributes."""
    return {"": identity.digest(agent), **{k: identity.digest(v) for k, v in getattr(agent, "__dict__", {}).items()}}


def _key(*of: Any) -> str:
    """Return a name for what was played, and how."""
    how = json.dumps(of, sort_keys=True, default=str)
    return hashlib.sha256(how.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Benchmark:
    """What a policy earns in the tasks of a track, as shares of exact Whittle in the same epochs."""

    row: dict[str, Any]
    """One row of a leaderboard, as JSON can hold it: version, track, seeds, epochs, ``steps`` where they were given,
    and by task the mean share with its interval of 95 %, null below five seeds. A task in which exact Whittle earned
    nothing under one of the seeds has no share, null, and the means of the tasks have none then."""
    shares: NDArray[np.float64]
    """(seeds, tasks): as rliable takes them."""
    comparisons: dict[str, Comparison]
    """Of each task what :func:`ephemera.compare` returns."""
    directory: Path | None = None
    """Where the runs of this policy are kept, and this row as ``benchmark.json``; None without ``out``."""

    def _cells(self) -> list[list[str]]:
        def share(e: dict[str, Any]) -> list[str]:
            return [document.percent(e["share"]), document.interval(e["lo"], e["hi"])]

        of = self.row
        tasks = [[t, *share(e), document.plain(e["regret"])(e["regret"])] for t, e in of["tasks"].items()]
        whole = ["mean of the tasks", *share(of["mean"]), ""]
        return [*tasks, whole, ["interquartile mean", document.percent(of["iqm"]), "", ""]]

    def _about(self) -> str:
        r = self.row
        return (
            f"{r['policy']}, track {r['track']}, ephemera {r['version']}, "
            f"{r['seeds']} test {'seed' if r['seeds'] == 1 else 'seeds'}, "
            f"{r['epochs']} epochs in all; shares of exact Whittle, from five seeds on with 95 % intervals"
        )

    _head = ("task", "% of Whittle", "95 % interval", "regret per epoch")

    def __str__(self) -> str:
        return document.text(self._head, self._cells(), self._about())

    __repr__ = __str__

    def to_markdown(self) -> str:
        """Return the table as Markdown."""
        return document.markdown(self._head, self._cells(), self._about())

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
            if e["share"] is not None:
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
        seeds: how many of :data:`ephemera.TEST_SEEDS`. A recording is played once, under the first, and has no
            interval; in :attr:`Benchmark.shares` and in the mean of the tasks that run stands in each row.
        steps: epochs of a run; by default those of :data:`ephemera.EPOCHS`, and 10 000 in tasks that it does not
            name. A recording is played whole, whatever this says.
        out: directory that keeps each run as a file, in a directory of the policy, :attr:`Benchmark.directory`. The
            same call goes on with what is missing there, also after Ctrl-C. What was played otherwise is played again:
            by another build of this package, another policy, another number of steps, or in another recording. Of a
            policy of Python count its code, without comments; all that this uses, such as arguments, what is closed
            over, constants, functions and classes of its module; the modules of one's own that it names; and what its
            constructor makes, such as weights from a file. Then 20 epochs of each task are played, and what they bring
            counts too. A file that is read while a policy plays may make a difference that shows later: give another
            ``out`` then. The command ``report`` takes a policy's directory, and :func:`ephemera.load` that of
            a task in it.
        processes: that play runs at a time; the policy has to be one that can be pickled.
        trace: the directory of the recordings, in which they have the names that :data:`ephemera.tasks.RECORDINGS`
            has; without ``tasks`` those whose recordings are not there are left out.
        name: of the policy.
        progress: called with the numbers of runs that are done, and of all.
    """
    p = player(name, policy)
    first = None if p.make is None else p.make()
    if track is None:
        track = p.entry.tracks[p.entry.levels[0]] if p.entry else "harvest" if isinstance(first, Gym) else "items"
    _check(p, track)
    if not 1 <= whole(seeds, "seeds") <= len(TEST_SEEDS):
        raise ValueError(f"seeds is {seeds}; allowed are 1 to {len(TEST_SEEDS)}")
    if whole(processes, "processes") < 1:
        raise ValueError(f"processes is {processes}; allowed is 1 or more")
    steps = steps_or_all(steps) or None
    if out is not None and Path(out).exists() and not Path(out).is_dir():
        raise ValueError(f"out is {os.fspath(out)!r}, a file; allowed is a directory, which need not be there yet")
    worlds = _tasks(track, tasks, trace)
    how: dict[str, dict[str, Any]] = {}
    for t, w in worlds.items():
        epochs = None if _once(w) else steps or EPOCHS.get(t, 10_000)
        how[t] = {"task": t, "policy": policy, "world": w, "track": track, "name": p.row, "steps": epochs}
    under = {t: TEST_SEEDS[: 1 if _once(w) else seeds] for t, w in worlds.items()}
    in_all = sum(map(len, under.values()))
    if p.reason and in_all > 1:
        raise ValueError(p.reason)
    kept = None if out is None else _Kept(Path(out), policy, p, track, steps)
    if kept is not None:
        kept.find(how)
    records: dict[tuple[str, int], dict[str, Any]] = {}
    for t, of in under.items():
        for seed in of:
            if kept is not None and (record := kept.read(t, seed)) is not None:
                records[t, seed] = record
    todo = [(t, seed) for t, of in under.items() for seed in of if (t, seed) not in records]

    def keep(t: str, seed: int, record: dict[str, Any]) -> None:
        records[t, seed] = record
        if kept is not None:
            kept.write(t, seed, record)
        if progress is not None:
            progress(len(records), in_all)

    if kept is not None:
        kept.room.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=kept.room):  # an error now, not when the first run is done
            pass
    _play([{**how[t], "seed": seed} for t, seed in todo], processes, keep)
    comparisons = {}
    for t in worlds:
        found = [records[t, seed] for seed in under[t]]
        learns = p.entry.learns if p.entry else bool(found[0].get("learns"))
        found = [{k: v for k, v in r.items() if k != "learns"} for r in found]
        comparisons[t] = compared([(p.row, learns, found)], TRACKS[track], len(found), TEST_SEEDS[0])
        if kept is not None:
            comparisons[t].save(kept.room / t, {p.row: [kept.file(t, seed).stem for seed in under[t]]})
    rows = max(map(len, under.values()))  # one where only recordings are played
    learning = [
        [records[t, seed if seed in of else of[0]]["learning"] for t, of in under.items()] for seed in TEST_SEEDS[:rows]
    ]
    shares = np.array([[f.get("of_whittle", math.nan) for f in of] for of in learning])
    by_task, mean = _estimates(
        [*(shares[: len(of), k].tolist() for k, of in enumerate(under.values())), shares.mean(axis=1).tolist()]
    )
    lost = np.array([[f["whittle"] - f["reward"] for f in of] for of in learning]).mean(axis=0)
    row = {
        "format": FORMAT, "version": _version(), "policy": p.row, "track": track, "seeds": rows,
        "epochs": sum(r["learning"]["epochs"] for r in records.values()),
        "tasks": {t: {**e, "regret": float(r)} for t, e, r in zip(worlds, by_task, lost, strict=True)},
        "mean": mean[0], "iqm": _iqm(shares),
    }  # fmt: skip
    if steps:
        row["steps"] = steps
    if kept is not None:
        document.put(kept.room / "benchmark.json", json.dumps(row, indent=1) + "\n")
    return Benchmark(row, shares, comparisons, None if kept is None else kept.room)


def _once(world: dict[str, Any]) -> bool:
    """Return whether a world is the same under all seeds."""
    return world.get("world") == "replay"


class _Kept:
    """Runs of one policy that are kept in a directory of its own."""

    def __init__(self, out: Path, policy: PolicyLike, p: Player, track: str, steps: int | None) -> None:
        self.policy, self.p = policy, p
        self.identity = _identity(p, policy)
        self.made = _key(FORMAT, identity.package(), track, p.row, self.identity, steps)
        self.room = out / f"{re.sub('[^A-Za-z0-9_-]+', '-', p.row)[:40].lstrip('-')}-{self.made[:8]}"
        self.keys: dict[str, str] = {}

    def find(self, how: dict[str, dict[str, Any]]) -> None:
        """Tell what is kept of each task from what was played otherwise."""
        acts = isinstance(self.identity, list) and not self.p.reason  # a policy of Python that each run begins anew
        for t, of in how.items():
            world = dict(of["world"])
            if file := world.pop("trace", None):
                world["recording"] = hashlib.sha256(Path(file).read_bytes()).hexdigest()
            behaviour = _short(of) if acts else ""
            if acts and not self.keys and _short(of) != behaviour:
                acts, behaviour = False, ""  # it acts by chance: a short run tells nothing
            self.keys[t] = _key(self.made, world, of["steps"], behaviour)

    def file(self, t: str, seed: int) -> Path:
        """Return the file of a run."""
        return self.room / t / "runs" / f"{self.keys[t]}-{seed}.json"

    def read(self, t: str, seed: int) -> dict[str, Any] | None:
        """Return the record of a run that is kept; what a machine that went down left half written is none."""
        try:
            return dict(json.loads(self.file(t, seed).read_text("utf-8")))
        except (FileNotFoundError, ValueError):
            return None

    def write(self, t: str, seed: int, record: dict[str, Any]) -> None:
        """Keep a record."""
        file = self.file(t, seed)
        file.parent.mkdir(parents=True, exist_ok=True)
        document.put(file, json.dumps(record) + "\n")


def _short(how: dict[str, Any]) -> str:
    """Return a digest of what a policy brings in the first epochs of a task, under the first seed."""
    steps = min(how["steps"] or _SHORT, _SHORT)
    _, _, record = _perform(how | {"seed": TEST_SEEDS[0], "steps": steps})
    return _key({k: v for k, v in record.items() if k != "run"})


def _perform(run: dict[str, Any]) -> tuple[str, int, dict[str, Any]]:
    """Perform a run of a task; its record."""
    run = dict(run)
    t = run.pop("task")
    try:
        return t, run["seed"], benchmark_run(**run)
    except _library.Error as e:
        if hasattr(e, "__notes__"):
            e.add_note(f"task {t}")
            raise
        raise _library.Error(f"task {t}: {e}") from None
    except Exception as e:
        if hasattr(e, "__notes__"):  # of the policy
            e.add_note(f"task {t}")
        raise


def _play(runs: list[dict[str, Any]], processes: int, keep: Callable[[str, int, dict[str, Any]], None]) -> None:
    """Perform runs, so many at a time, and keep each record as it comes. Ctrl-C ends all at once."""
    if processes == 1 or not runs:
        for run in runs:
            keep(*_perform(run))
        return
    try:
        pickle.dumps(runs[0]["policy"])
    except Exception as e:
        raise ValueError(
            f"processes is {processes}, and {runs[0]['name']} cannot be pickled: {e}; allowed are classes and "
            "functions of a module, and processes=1"
        ) from e
    ended = multiprocessing.RawValue("b", 0)  # without a lock, which a process that is killed may hold
    with ProcessPoolExecutor(min(processes, len(runs)), initializer=_obedient, initargs=(ended,)) as pool:
        left = {pool.submit(_elsewhere, run) for run in runs}
        try:
            for done in as_completed(list(left)):
                keep(*done.result())
                left.remove(done)
        except BaseException as e:
            finished = [f for f in left if f.done() and not f.cancelled() and f.exception() is None]
            ended.value = 1
            pool.shutdown(wait=False, cancel_futures=True)
            for f in finished:
                keep(*f.result())
            if isinstance(e, BrokenProcessPool):
                raise ChildProcessError(
                    f"a process that played {runs[0]['name']} ended before its run did: the policy ended it, or the "
                    "system did, as for want of memory"
                ) from None
            raise


def _elsewhere(run: dict[str, Any]) -> tuple[str, int, dict[str, Any]]:
    """Perform a run in a process of its own, and raise what can go to the one that asked."""
    try:
        return _perform(run)
    except Exception as e:
        try:
            pickle.loads(pickle.dumps(e))
        except Exception:
            raise RuntimeError("".join(traceback.format_exception(e))) from None
        raise


def _obedient(ended: Any) -> None:
    """Have a process ignore Ctrl-C, which its parent takes, and end when that says so, or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def end() -> None:
        while not ended.value and parent is not None and parent.is_alive():
            time.sleep(0.1)
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()


def _estimates(samples: list[list[float]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return means with their intervals: of all samples but the last, and of the last."""
    known = [s if np.isfinite(s).all() else [] for s in samples]
    found = [{"share": e["value"], "lo": e["lo"], "hi": e["hi"]} for e in _library.ask(0, "means", known)]
    return found[:-1], found[-1:]


def _iqm(shares: NDArray[np.float64]) -> float | None:
    """Return the interquartile mean of all shares: that of what is left without a quarter at each end."""
    if not np.isfinite(shares).all():
        return None
    values = np.sort(shares.reshape(-1))
    cut = len(values) // 4
    return float(values[cut : len(values) - cut].mean())
