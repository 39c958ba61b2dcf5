"""The learners of this project on the cells, beside those of deep.py.

    python peers/plain.py results.jsonl

A learner is trained afresh up to each checkpoint, and what it has learned is run for an episode in
the same world. What has no policy to freeze (certainty, q-whittle) is measured as it goes, over the
second half of the epochs up to the checkpoint.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from cells import CELLS, EPISODE, Cell, add, rows

import ephemera

CHECKPOINTS = [b * 10**d for d in (1, 2, 3, 4) for b in (1, 2, 5)]  # epochs
LEARNS = {e.name for e in ephemera.catalogue() if e.learns}


def agents(cell: Cell) -> dict[str, Any]:
    """Return the agents of a cell by name."""
    found: dict[str, Any] = {}
    for e in ephemera.catalogue():
        if e.learns and cell.knowledge in e.levels and e.name != "paper":
            found[e.name] = (e.name, {})
    if cell.knowledge == "online":
        found["certainty"] = "certainty"  # it learns from items
    return found | {"q-whittle": "q-whittle"}


def second_half(run: ephemera.Run) -> float:
    """Return the mean reward over the rows of the curve that end in the second half of the epochs."""
    epoch, reward, _ = run.curve.T
    span = np.diff(epoch, prepend=0) * (epoch > epoch[-1] / 2)
    return float(reward @ span / span.sum())


def share(cell: Cell, agent: Any, seed: int, epochs: int) -> tuple[float, float]:
    """Return the share of Whittle after so many epochs, and the seconds that it took."""
    world = cell.arguments()
    began = time.process_time()
    learns = isinstance(agent, tuple) and agent[0] in LEARNS
    run = ephemera.run(agent, steps=epochs, seed=seed, evaluation=EPISODE if learns else None, **world)
    seconds = time.process_time() - began
    steps = EPISODE if learns else epochs
    whittle = ephemera.run("whittle", steps=steps, seed=seed, **world)
    if learns:
        return run.learned.reward / whittle.outcome.reward, seconds
    return second_half(run) / second_half(whittle), seconds


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out", type=Path)
    p.add_argument("--seeds", type=int, default=5)
    p.add_argument("--cells", nargs="*", default=[c.name for c in CELLS])
    p.add_argument("--agents", nargs="*")
    p.add_argument("--most", type=int, default=CHECKPOINTS[-1], help="the last checkpoint")
    a = p.parse_args()
    done = {(r["cell"], r["agent"], r["seed"]) for r in rows(a.out)}
    for cell in CELLS:
        for name, agent in agents(cell).items():
            for seed in range(1, a.seeds + 1):
                if cell.name not in a.cells or (a.agents and name not in a.agents) or (cell.name, name, seed) in done:
                    continue
                curve, seconds = [], 0.0
                for epochs in (c for c in CHECKPOINTS if c <= a.most):
                    reached, seconds = share(cell, agent, seed, epochs)
                    curve.append((epochs, reached))
                row = {
                    "cell": cell.name, "agent": name, "seed": seed, "steps": curve[-1][0],
                    "curve": curve, "end": curve[-1][1], "seconds": seconds,
                }  # fmt: skip
                add(a.out, row)
                print(cell.name, name, seed, f"{row['end']:.4f}", f"{seconds:.1f} s", flush=True)


if __name__ == "__main__":
    main()
