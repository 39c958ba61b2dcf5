"""What the commands wrote into a directory, as pandas frames."""

from __future__ import annotations

import io
import json
import os
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from . import _library

if TYPE_CHECKING:
    import pandas as pd


_TEXTS = ("cell", "figure", "instance", "policy", "source")
"""Columns of names, which are texts though they look like figures."""


@dataclass(frozen=True)
class Results:
    """The results of ``train``, ``bench`` or ``sweep``."""

    directory: Path
    kind: str
    """``train``, ``bench`` or ``sweep``."""
    config: dict[str, Any]
    """What ``train`` ran; otherwise empty."""
    report: dict[str, Any]
    """``result.json`` of ``train`` and ``bench``, ``summary.json`` of ``sweep``."""
    table: pd.DataFrame
    """A row for each policy, or for each cell and figure."""
    runs: pd.DataFrame | None
    """A row for each run of ``bench``, ``sweep`` and :func:`ephemera.compare`."""
    curves: pd.DataFrame | None
    """Figures along the epochs of ``train``, ``sweep`` and :func:`ephemera.compare`."""
    learned: pd.DataFrame | None
    """What was learned, source by source, next to the exact values."""

    def __repr__(self) -> str:
        return f"{self.kind} in {self.directory}\n{self.table}"

    def to_rliable(self, figure: str | None = None, task: str | None = None) -> dict[str, NDArray[np.float64]]:
        """Return the score dictionary of rliable: by algorithm an array of shape (runs, tasks).

        Args:
            figure: column of :attr:`runs`. The default is each policy's share of exact Whittle in the same
                epochs for ``train`` and ``bench``, and ``learned_ratio`` for ``sweep``.
            task: column of :attr:`runs` whose values are the tasks. The default is the instance for
                ``bench``, or one task where each seed draws an instance of its own; each cell of a sweep
                has one task.
        """
        if self.kind == "train":
            rows = self.report["results"]
            key = figure or ("of_whittle" if rows[0].get("of_whittle") is not None else "reward")
            return {r["policy"]: np.array([[r[key]]], np.float64) for r in rows}
        runs = self.runs
        assert runs is not None
        if self.kind == "bench":
            runs, task = runs.copy(), task or "instance"
            if figure is None:
                figure = "of_whittle"
            who = runs["policy"]
            if task == "instance" and not runs.duplicated(["policy", "seed"]).any():
                task = "task"  # each seed has one instance, its own or the one of all
                runs[task] = 1
        else:
            figure = figure or "learned_ratio"
            if task is None:
                who, task = runs["cell"], "cell"
            else:
                axes = [c for c in self.report["axes"] if c != task and c in runs]
                who = runs[axes].astype(str).agg(" ".join, axis=1) if axes else runs["cell"]
        for column in (figure, task):
            if column not in runs:
                raise ValueError(f"there is no column {column!r}; there are {', '.join(runs)}")
        scores = {}
        for name, part in runs.groupby(who, sort=False):
            scores[str(name)] = part.pivot(index="seed", columns=task, values=figure).to_numpy(np.float64)
        return scores


def load(directory: str | os.PathLike[str]) -> Results:
    """Read what ``train``, ``bench`` or ``sweep`` wrote into a directory. It needs pandas."""
    frames = _library.extra("pandas")
    d = Path(directory)
    if not d.is_dir():
        raise FileNotFoundError(f"{d} is no directory; needed is one that train, bench or sweep wrote")

    def read(name: str, parse: Callable[[str], Any]) -> Any:
        if not (d / name).exists():
            return None
        if not (d / name).is_file():
            raise ValueError(f"{d / name} is no regular file")
        try:
            return parse((d / name).read_text(encoding="utf-8"))
        except ValueError as e:
            raise ValueError(f"{d / name} is damaged: {e}") from e

    def table(name: str) -> pd.DataFrame | None:
        def parse(text: str) -> Any:
            figures = [c for c in frames.read_csv(io.StringIO(text), nrows=0) if c not in _TEXTS]
            # A figure that is missing is empty, or NaN as Go writes it; a source may be called NaN, or 007.
            frame = frames.read_csv(
                io.StringIO(text), dtype=dict.fromkeys(_TEXTS, str), keep_default_na=False,
                na_values={c: ["", "NaN"] for c in figures},
            )  # fmt: skip
            if name == "thresholds.csv":
                frame[figures] = frame[figures].replace("never", "inf").apply(frames.to_numeric)
            return frame

        return cast("pd.DataFrame | None", read(name, parse))

    summary = read("summary.json", json.loads)
    report = summary or read("result.json", json.loads)
    if report is None:
        raise FileNotFoundError(
            f"{d} has neither result.json nor summary.json; needed is what train, bench or sweep wrote"
        )
    runs, curves = table("runs.csv"), table("curves.csv")
    if summary:
        return Results(
            d, "sweep", {}, report, cast("pd.DataFrame", table("summary.csv")), runs, curves, table("learned.csv")
        )
    try:
        rows = frames.DataFrame(report["results"]).set_index("policy")
    except (KeyError, TypeError, ValueError) as e:
        raise ValueError(f"{d / 'result.json'} has no results with a policy each") from e
    if runs is not None:
        return Results(d, "bench", {}, report, rows, runs, curves, None)
    config = read("config.toml", tomllib.loads) or {}
    return Results(d, "train", config, report, rows, None, table("metrics.csv"), table("thresholds.csv"))
