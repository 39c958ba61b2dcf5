"""Tables for papers and notebooks, their files, and pictures as wide as one column that are read in grey too."""

from __future__ import annotations

import contextlib
import html
import math
import os
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _library

MOST = 6
"""Curves of a picture: more cannot be told apart."""
_STYLES = (
    ("#000000", "-"),
    ("#d55e00", (0, (5, 1.5))),
    ("#0072b2", (0, (1.5, 1.2))),
    ("#009e73", (0, (6, 1.5, 1.5, 1.5))),
    ("#cc79a7", "-"),
    ("#999999", (0, (3, 1, 1, 1, 1, 1))),
)
"""Colours of Okabe and Ito, which the colour-blind tell apart, each with dashes of its own for print in grey."""
_LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--", "±": r"$\pm$",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",  # in the font that is the default
    "[": "{[}", "*": "{*}",  # which \\ and \midrule before them would take for their own
    **{c: "\\" + c for c in "&%$#_{}"},
}  # fmt: skip


def put(file: Path, text: str) -> None:
    """Write a file, which appears whole or not at all; an error names it."""
    part = file.with_name(f"{file.name}.{secrets.token_hex(8)}.part")  # processes of other machines may have our number
    try:
        part.write_text(text, "utf-8", newline="")
        part.replace(file)
    except OSError as e:  # one of a full disk has no name
        raise OSError(e.errno, e.strerror, os.fspath(file)) from None
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def shown(text: str) -> str:
    """Return a text in which what does not print is written out, such as marks that turn the direction of writing."""
    return "".join(c if c.isprintable() or c == "\xa0" else ascii(c)[1:-1] for c in text)


def latex(head: Sequence[str], *parts: Sequence[Sequence[str]]) -> str:
    """Return a table in LaTeX, with the rules of the package booktabs; each part of the rows begins with a rule."""

    def line(cells: Sequence[str]) -> str:
        row = " & ".join("".join(_LATEX.get(c, c) for c in shown(cell)) for cell in cells)
        return re.sub(r"(?<![\w-])-(?=\d)", "$-$", row) + r" \\"  # a minus, in place of a hyphen

    lines = [r"\begin{tabular}{l" + "r" * (len(head) - 1) + "}", r"\toprule", line(head)]
    for rows in parts:
        lines += [r"\midrule", *map(line, rows)]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def text(head: Sequence[str], rows: Sequence[Sequence[str]], about: str) -> str:
    """Return a table for a terminal, with a line about it."""
    whole = [[shown(c) for c in cells] for cells in [head, *rows]]
    wide = [max(map(len, column)) for column in zip(*whole, strict=True)]
    lines = [
        "  ".join([first.ljust(wide[0]), *(c.rjust(w) for c, w in zip(rest, wide[1:], strict=True))]).rstrip()
        for first, *rest in whole
    ]
    return "\n".join([*lines, "", shown(about)])


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]], about: str) -> str:
    """Return a table in Markdown, with a line about it."""

    def words(text: str) -> str:
        return re.sub(r"[|<]", r"\\\g<0>", shown(text))

    whole = [head, ["---", *["--:"] * (len(head) - 1)], *rows]
    lines = ["| " + " | ".join(map(words, cells)) + " |" for cells in whole]
    return "\n".join([*lines, "", words(about) + ".", ""])


def table(head: Sequence[str], rows: Sequence[Sequence[str]], about: str) -> str:
    """Return a table in HTML, with a caption."""

    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(shown(c))}</{tag}>" for c in cells) + "</tr>"

    body = "".join(line(cells, "td") for cells in rows)
    return f"<table><caption>{html.escape(shown(about))}</caption>{line(head, 'th')}{body}</table>"


def percent(share: float | None) -> str:
    """Return a share in percent."""
    return "–" if share is None else f"{100 * share:.1f}"


def plain(*column: float) -> Callable[[float], str]:
    """Return what writes the numbers of a column, all with as many decimals as give the greatest four digits.

    There are six decimals at most, and all digits before the point.
    """
    most = max(map(abs, column))
    decimals = min(6, max(0, 3 - math.floor(math.log10(most)))) if most > 0 else 3
    return lambda x: f"{x:.{decimals}f}"


def interval(low: float | None, high: float | None, form: Callable[[float], str] = percent) -> str:
    """Return an interval, or a dash where one run has none."""
    return "–" if low is None or high is None else f"{form(low)} to {form(high)}"


def means(samples: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    """Return (rows, 3): the mean of each sample and its interval of 95 %, Student's; that of one value is NaN."""
    found = _library.ask(0, "means", [list(s) for s in samples])
    return np.array([[e["value"], e["lo"], e["hi"]] for e in found], np.float64).reshape(-1, 3)


def column(height: float = 2.4) -> tuple[Any, Any]:
    """Return a matplotlib figure as wide as one column of a paper, 3.5 inches, and its axes."""
    plt = _library.extra("matplotlib.pyplot")
    # Publishers refuse fonts of type 3, which are the default. It counts when a figure is saved.
    plt.rcParams["pdf.fonttype"] = plt.rcParams["ps.fonttype"] = 42
    figure, axes = plt.subplots(figsize=(3.5, height), layout="constrained")
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=7)
    axes.xaxis.label.set_fontsize(8)
    axes.yaxis.label.set_fontsize(8)
    return figure, axes


def lines(axes: Any, curves: Mapping[str, tuple[NDArray[np.float64], NDArray[np.float64]]]) -> None:
    """Draw curves with their names at their ends, and intervals as bands.

    Args:
        axes: of matplotlib, with their limits of y as they shall be.
        curves: of each name x, (rows,), and y, (rows, 3): the value and its interval, or (rows, 1).
    """
    if len(curves) > MOST:
        raise ValueError(f"there are {len(curves)} curves; allowed are {MOST}: name some")
    low, high = axes.get_ylim()
    ends = []
    for (name, (x, y)), (colour, dashes) in zip(curves.items(), _STYLES, strict=False):
        axes.plot(x, y[:, 0], color=colour, linestyle=dashes, linewidth=1.2)
        if y.shape[1] == 3 and np.isfinite(y[:, 1:]).all(axis=1).any():
            axes.fill_between(x, y[:, 1], y[:, 2], color=colour, alpha=0.15, linewidth=0)
        ends.append((float(np.clip(y[-1, 0], low, high)), float(x[-1]), name, colour, dashes))
    axes.set_ylim(low, high)
    axes.set_xlim(min(x[0] for x, _ in curves.values()), max(x[-1] for x, _ in curves.values()))
    apart = 0.075 * (high - low)
    places = spread([e[0] for e in ends], apart, low, high)
    right = axes.get_yaxis_transform()  # x as a share of the axes, y as data
    for (y_end, _, name, colour, dashes), place in zip(ends, places, strict=True):
        axes.plot(
            [1, 1.05], [y_end, place], color=colour, linestyle=dashes, linewidth=1.2, transform=right, clip_on=False
        )
        axes.text(1.06, place, name, color="black", fontsize=7, va="center", transform=right)


def spread(at: Sequence[float], apart: float, low: float, high: float) -> list[float]:
    """Return places for labels next to these, in their order, that far apart and within the limits."""
    order = sorted(range(len(at)), key=lambda k: at[k])
    places = [0.0] * len(at)
    floor = low
    for k in order:
        places[k] = floor = max(at[k], floor)
        floor += apart
    ceiling = high
    for k in reversed(order):
        places[k] = ceiling = min(places[k], ceiling)
        ceiling -= apart
    return places
