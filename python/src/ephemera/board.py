"""Rows of the benchmark next to each other: those that are published, and one's own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import document
from .benchmark import Benchmark
from .tasks import EPOCHS, RECORDINGS, TRACKS


@dataclass(frozen=True)
class Leaderboard:
    """Policies of one track, best first, by the mean of the tasks that are shown."""

    track: str
    tasks: Sequence[str]
    """Columns of the table."""
    rows: Sequence[Mapping[str, Any]]
    """As :attr:`ephemera.Benchmark.row` is, those that are published with settings, commit and the epochs of their
    training."""

    def _head(self) -> list[str]:
        return ["policy", *self.tasks, "mean", *["trained for"] * self._trained(), "seeds"]

    def _trained(self) -> bool:
        return any(r.get("training_epochs") for r in self.rows)

    def _cells(self) -> list[list[str]]:
        def share(e: Mapping[str, Any] | None) -> str:
            if e is None or e["lo"] is None:
                return document.percent(None if e is None else e["share"])
            return f"{document.percent(e['share'])} ± {document.percent((e['hi'] - e['lo']) / 2)}"

        def cells(r: Mapping[str, Any]) -> list[str]:
            of = earned(r)
            trained = [f"{r['training_epochs']:,}" if r.get("training_epochs") else "–"] * self._trained()
            shares = [share(of.get(t)) for t in self.tasks]
            return [r["policy"], *shares, document.percent(mean(r, self.tasks)), *trained, str(r["seeds"])]

        return [cells(r) for r in self.rows]

    def _about(self) -> str:
        return (
            f"track {self.track}; % of exact Whittle in the same epochs, ± half of the 95 % interval"
            f"{'; epochs that a policy was trained for before' if self._trained() else ''}; test seeds"
        )

    def __str__(self) -> str:
        return document.text(self._head(), self._cells(), self._about())

    __repr__ = __str__

    def to_markdown(self) -> str:
        """Return the table as Markdown."""
        return document.markdown(self._head(), self._cells(), self._about())

    def to_latex(self) -> str:
        """Return the table as LaTeX, with the rules of the package booktabs."""
        return document.latex(self._head(), self._cells())

    def _repr_html_(self) -> str:
        return document.table(self._head(), self._cells(), self._about())


def earned(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a row has of each task, recordings too, which published rows keep apart."""
    return {**row["tasks"], **row.get("recordings", {})}


def mean(row: Mapping[str, Any], tasks: Sequence[str]) -> float | None:
    """Return the mean share of tasks, or None for a row that lacks one of them, or its share."""
    of = earned(row)
    shares = [of[t]["share"] for t in tasks if t in of]
    return None if None in shares or len(shares) < len(tasks) else float(sum(shares) / len(shares))


def leaderboard(
    *own: Benchmark | Mapping[str, Any],
    track: str | None = None,
    policies: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
) -> Leaderboard:
    """Put methods of one's own next to the published rows of their track.

    Args:
        own: what :func:`ephemera.benchmark` returned, or its rows, as ``benchmark.json`` in ``out`` has them. They are
            refused where ``steps`` was given: shares in fewer or more epochs are other figures.
        track: one of :data:`ephemera.TRACKS`; by default that of ``own``.
        policies: names of the published rows that are shown; None for all, ``[]`` for none.
        tasks: that are shown; by default those of ``own``, and without these all that published rows have.
    """
    for k, of in {"policies": policies, "tasks": tasks}.items():
        if isinstance(of, str):
            raise ValueError(f"{k} is {of!r}; needed is a list of names, or None")
    mine = [b.row if isinstance(b, Benchmark) else b for b in own]
    for r in mine:
        if not isinstance(r, Mapping) or "track" not in r:
            raise TypeError(f"own is {r!r}; needed is what ephemera.benchmark returned, or its row")
    tracks = list(dict.fromkeys(r["track"] for r in mine)) if track is None else [track]
    if len(tracks) != 1 or tracks[0] not in TRACKS:
        raise ValueError(f"track is {', '.join(tracks) or None}; allowed is one of {', '.join(TRACKS)}")
    for r in mine:
        if r["track"] != tracks[0]:
            raise ValueError(f"{r['policy']} is of track {r['track']}; allowed is {tracks[0]!r}, as of the other rows")
        need = r["seeds"] * sum(EPOCHS.get(t, 0) for t in r["tasks"])
        recorded = any(t in RECORDINGS for t in r["tasks"])  # whose epochs nobody knows here
        if recorded and "steps" in r:
            raise ValueError(f"{r['policy']} was played with steps={r['steps']}; needed is a row without, as published")
        if not recorded and r["epochs"] != need:
            raise ValueError(
                f"{r['policy']} was played for {r['epochs']} epochs in all; needed are {need}, as of the published "
                "rows: play tasks of version 2, without steps"
            )
    file = Path(__file__).parent / "leaderboard.json"
    if not file.exists():  # as after pip install -e, which uses the checkout
        file = Path(__file__).parents[2] / "benchmark" / "leaderboard.json"
    published = [r for r in json.loads(file.read_text("utf-8"))["rows"] if r["track"] == tracks[0]]
    if unknown := [p for p in policies or () if p not in (r["policy"] for r in published)]:
        raise ValueError(
            f"track {tracks[0]} has no published row of {', '.join(unknown)}; there are "
            f"{', '.join(r['policy'] for r in published)}"
        )
    rows = [*mine, *(r for r in published if policies is None or r["policy"] in policies)]
    known = list(dict.fromkeys(t for r in rows for t in earned(r)))
    shown = list(tasks or dict.fromkeys(t for r in mine or rows for t in r["tasks"]))
    if unknown := [t for t in shown if t not in known]:
        raise ValueError(f"no row has {', '.join(unknown)}; there are {', '.join(known)}")
    return Leaderboard(tracks[0], shown, sorted(rows, key=lambda r: -(mean(r, shown) or 0)))
