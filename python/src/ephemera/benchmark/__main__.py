"""Plays a policy in all tasks of a track: ``python -m ephemera.benchmark mymodule:Policy``."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import sysconfig
import traceback
from pathlib import Path
from typing import Any

from ..references import catalogue
from ..tasks import TRACKS
from . import benchmark


def policy(text: str) -> Any:
    """Return the policy of a name: ``MODULE:NAME``, with modules of this directory too, a file's or the catalogue's."""
    module, _, name = text.rpartition(":")  # the last: a file of Windows has one of its own
    if not module or not name:
        if text not in (names := [e.name for e in catalogue()]):
            raise ValueError(f"there is no policy {text!r}; allowed are MODULE:NAME, FILE.py:NAME, {', '.join(names)}")
        return text
    room = Path.cwd()
    if module.endswith(".py"):
        file = Path(module).resolve()
        if not file.is_file():
            raise ValueError(f"{text}: there is no file {module}")
        room, module = file.parent, file.stem
    sys.path.insert(0, str(room))
    try:
        of = importlib.import_module(module)
    except ModuleNotFoundError as e:
        if e.name is None or not f"{module}.".startswith(f"{e.name}."):  # the module is there, and asks for another
            raise
        raise ValueError(f"{text}: there is no module {e.name!r} in this directory or installed") from e
    if not hasattr(of, name):
        raise ValueError(f"{text}: module {module!r} has no {name!r}; {of.__file__} is what was found")
    return getattr(of, name)


def own(e: BaseException) -> bool:
    """Return whether an exception comes from the user's code: raised there or under it, or in another process."""
    if hasattr(e, "__notes__") and e.__cause__ is not None:  # with the traceback of that process
        return True
    files = [Path(f.filename) for f in traceback.extract_tb(e.__traceback__)]
    package, standard = Path(__file__).parents[1], Path(sysconfig.get_paths()["stdlib"])
    return any(not f.is_relative_to(package) and not f.is_relative_to(standard) and f.is_absolute() for f in files)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; its exit status."""
    p = argparse.ArgumentParser(
        prog="python -m ephemera.benchmark", description="Plays a policy in all tasks of a track."
    )
    p.add_argument("policy", help="MODULE:NAME or FILE.py:NAME of a function or a class, or a name of the catalogue")
    p.add_argument("--track", choices=TRACKS, help="what the policy sees; default: items, or that of the catalogue")
    p.add_argument("--tasks", nargs="+", help="default: all of the newest version in the track")
    p.add_argument("--seeds", type=int, default=10, help="how many of the test seeds; default: 10")
    p.add_argument("--steps", type=int, help="epochs of a run, but of a recording; default: those of each task")
    p.add_argument("--out", type=Path, help="directory that keeps each run; the same command goes on with it")
    p.add_argument("--name", help="what its row is called; default: the policy's own name")
    p.add_argument("--processes", type=int, default=1, help="runs at a time; default: 1")
    p.add_argument("--trace", type=Path, help="the directory of the recordings; without, their tasks are left out")
    p.add_argument("--format", choices=("table", "markdown", "latex", "json"), default="table")
    a = p.parse_args(arguments)

    def show(done: int, of: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{done} of {of} runs", end="" if done < of else "\n", file=sys.stderr, flush=True)

    try:
        found = benchmark(
            policy(a.policy), a.track, tasks=a.tasks, seeds=a.seeds, steps=a.steps, out=a.out, processes=a.processes,
            trace=a.trace, name=a.name, progress=show,
        )  # fmt: skip
    except (OSError, TypeError, ValueError) as e:
        if own(e):
            raise
        where = getattr(e, "__notes__", [])
        print(f"{p.prog}: {'; '.join([str(e), *where])}", file=sys.stderr)
        return 1 if where or isinstance(e, OSError) else 2
    except KeyboardInterrupt:
        again = f"; the same command goes on with {a.out}" if a.out else ""
        print(f"\n{p.prog}: interrupted{again}", file=sys.stderr)
        return 130  # as a shell says of a program that Ctrl-C has ended
    match a.format:
        case "markdown":
            print(found.to_markdown(), end="")
        case "latex":
            print(found.to_latex(), end="")
        case "json":
            print(json.dumps(found.row, indent=1))
        case _:
            print(found)
    if found.directory:
        print(f"the runs are kept in {found.directory}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
