"""Writes README.md and curves.svg beside it from what deep.py and plain.py measured.

python peers/page.py results.jsonl
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from statistics import mean, median
from typing import Any

import matplotlib
import numpy as np
from cells import CELLS, reached, rows

matplotlib.use("svg")
import matplotlib.pyplot as plt

HERE = Path(__file__).parent
DEEP = ("PPO", "A2C", "DQN")


def number(v: float) -> str:
    """Return a number of epochs, or a dash for never."""
    return "–" if v == float("inf") else f"{v:,.0f}".replace(",", " ")


def interval(ends: list[float]) -> str:
    """Return the 95 % interval of a mean by the bootstrap, which is no more than the range for few seeds."""
    draws = np.random.default_rng(1).choice(ends, (10_000, len(ends))).mean(axis=1)
    return "–" if len(ends) == 1 else "{:.2f} – {:.2f}".format(*np.quantile(draws, (0.025, 0.975)))


def ordered(agents: Any) -> list[str]:
    return sorted(agents, key=lambda a: (a in DEEP, DEEP.index(a) if a in DEEP else 0, a != "lspe", a))


Runs = dict[tuple[str, str, int], list[dict[str, Any]]]  # of each cell, agent and number of epochs


def table(runs: Runs) -> str:
    lines = [
        "| instance, budget, knowledge | agent | epochs | % of Whittle | 95 % interval | epochs to 99 % | CPU s |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for cell in CELLS:
        for agent in ordered({a for c, a, _ in runs if c == cell.name}):
            for steps in sorted(n for c, a, n in runs if (c, a) == (cell.name, agent)):
                part = runs[cell.name, agent, steps]
                ends = [100 * r["end"] for r in part]
                to = number(median(reached(r["curve"], 0.99) for r in part))
                seconds = mean(r["seconds"] for r in part)
                lines.append(
                    f"| {cell.instance} / {cell.budget} / {cell.knowledge} | {agent} | {number(steps)} "
                    f"| {mean(ends):.2f} | {interval(ends)} | {to} | {seconds:.1f} |"
                )
    return "\n".join(lines)


def picture(runs: Runs) -> None:
    fig, axes = plt.subplots(2, 4, figsize=(13, 6), layout="constrained", sharey=True, sharex=True)
    names = ordered({a for _, a, _ in runs})
    for ax, cell in zip(axes.flat, CELLS, strict=True):
        for k, agent in enumerate(names):
            longest = max((n for c, a, n in runs if (c, a) == (cell.name, agent)), default=0)
            curves = [dict(map(tuple, r["curve"])) for r in runs.get((cell.name, agent, longest), [])]
            if curves:
                epochs = sorted(set.intersection(*(set(c) for c in curves)))
                ax.plot(
                    epochs, [100 * median(c[e] for c in curves) for e in epochs],
                    color=f"C{k}", ls="--" if agent in DEEP else "-", label=agent,
                )  # fmt: skip
        ax.axhline(100, color="grey", lw=0.8)
        ax.set(xscale="log", ylim=(40, 103), title=f"{cell.instance}, budget {cell.budget}, {cell.knowledge}")
        ax.spines[["top", "right"]].set_visible(False)
    fig.supxlabel("epochs")
    fig.supylabel("reward, % of exact Whittle (median of the seeds)")
    lines = {line.get_label(): line for ax in axes.flat for line in ax.get_lines() if line.get_label()[0] != "_"}
    fig.legend([lines[n] for n in names], names, loc="outside right center", frameon=False)
    matplotlib.rcParams["svg.hashsalt"] = "peers"
    fig.savefig(HERE / "curves.svg", metadata={"Date": None}, facecolor="white")


def main(path: str) -> None:
    runs: Runs = defaultdict(list)
    for row in rows(Path(path)):
        runs[row["cell"], row["agent"], row["steps"]].append(row)
    picture(runs)
    page = HERE / "README.md"
    text = page.read_text()
    begin, end = "<!-- table -->\n", "<!-- end of table -->"
    head, rest = text.split(begin)
    page.write_text(head + begin + table(runs) + "\n" + end + rest.split(end)[1])


if __name__ == "__main__":
    main(sys.argv[1])
