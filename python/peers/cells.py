"""What the comparison runs on, and how every agent in it is measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

STEPS = 1_000_000  # epochs that every agent of Stable-Baselines3 may act
EPISODE = 500  # epochs
CHECKPOINTS = [*(b * 10**d for d in (3, 4, 5) for b in (1, 2, 5)), STEPS]  # epochs


class Cell(NamedTuple):
    """One column of the table."""

    instance: str
    budget: int
    knowledge: str

    @property
    def name(self) -> str:
        """Return the cell's name."""
        return f"{self.instance}/{self.budget}/{self.knowledge}"

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the environment."""
        world = "mean" if self.knowledge == "model" else "poisson"
        return {"instance": self.instance, "budget": self.budget, "knowledge": self.knowledge, "world": world}


CELLS = [
    Cell(instance, budget, knowledge)
    for knowledge in ("model", "online")
    for instance, budget in (("paper", 1), ("paper", 2), ("lognormal:10", 1), ("lognormal:50", 1))
]


def add(path: Path, row: dict[str, Any]) -> None:
    """Append a row of results."""
    with path.open("a") as f:
        f.write(json.dumps(row) + "\n")


def rows(path: Path) -> list[dict[str, Any]]:
    """Read the rows of results."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def reached(curve: list[tuple[int, float]], share: float) -> float:
    """Return the first checkpoint from which on the share of Whittle is reached, in epochs; inf for none."""
    below = [epochs for epochs, s in curve if s < share]
    rest = [epochs for epochs, s in curve if s >= share and epochs > max(below, default=0)]
    return min(rest, default=np.inf)
