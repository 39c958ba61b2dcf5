"""Writes results as TensorBoard event files: ``python -m ephemera.tensorboard DIR``."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from . import _library
from .results import Results, load

if TYPE_CHECKING:
    import pandas as pd


def write(results: Results, out: Path) -> list[Path]:
    """Write one run of events for each run of the results; return their directories.

    Curves are written along the epochs: those of ``train`` and of each cell and seed of ``sweep``.
    What each policy of ``bench`` earned in a run is one point at the run's last epoch.
    """
    written = []
    if results.kind == "bench":
        assert results.runs is not None
        for (policy, instance, seed), rows in results.runs.groupby(["policy", "instance", "seed"], sort=False):
            written.append(
                _scalars(
                    _below(out, policy, instance, f"seed-{seed}"),
                    rows.drop(columns=["policy", "instance", "seed"]),
                    "epochs",
                )
            )
    elif results.curves is None:
        raise FileNotFoundError(f"{results.directory} holds no curves")
    elif results.kind == "train":
        written.append(_scalars(out / "learning", results.curves, "epoch"))
    else:
        for (cell, seed), rows in results.curves.groupby(["cell", "seed"], sort=False):
            written.append(_scalars(_below(out, cell, f"seed-{seed}"), rows.drop(columns=["cell", "seed"]), "epoch"))
    return written


def _below(out: Path, *names: object) -> Path:
    """Return a directory of those names, of which none leads out of another."""
    parts = [part for name in names for part in str(name).split("/")]
    return out.joinpath(*(re.sub(r"[^\w.,=@+-]|^\.+$", "_", part) or "_" for part in parts))


def _scalars(directory: Path, rows: pd.DataFrame, along: str) -> Path:
    with _library.extra("tensorboardX").SummaryWriter(str(directory), write_to_disk=True) as events:
        for row in rows.to_dict("records"):
            for name, value in row.items():
                if name != along and value == value:
                    events.add_scalar(str(name), value, int(row[along]))
    return directory


def main(arguments: list[str] | None = None) -> int:
    """Run the command; its exit status."""
    p = argparse.ArgumentParser(prog="python -m ephemera.tensorboard", description=__doc__)
    p.add_argument("directory", type=Path, help="what train, bench or sweep wrote with -out")
    p.add_argument("--out", type=Path, help="where the event files go; default: DIR/tensorboard")
    a = p.parse_args(arguments)
    out: Path = a.out or a.directory / "tensorboard"
    if out.exists():
        print(f"{p.prog}: {out} is there already; name another directory with --out", file=sys.stderr)
        return 2
    try:
        written = write(load(a.directory), out)
    except (OSError, ValueError, ImportError) as e:
        print(f"{p.prog}: {e}", file=sys.stderr)
        return 1
    runs = "1 run" if len(written) == 1 else f"{len(written)} runs"
    print(f"{runs} in {out}; to see them: tensorboard --logdir {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
