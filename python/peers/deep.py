"""PPO, A2C and DQN of Stable-Baselines3 on the cells.

    python peers/deep.py results.jsonl            # all that is not in the file yet, seed by seed
    python peers/deep.py results.jsonl --steps 20000 --seeds 1 --cells paper/1/model --algorithms PPO

Settings were tuned by hand on Table I with budget 1. All agents choose one set of sources of those
that the budget allows, by number, as DQN must. They see scaled observations and are paid r/w − 1 for
the reward r, where w is what exact Whittle earns: centred, as average reward wants it.
"""

from __future__ import annotations

import argparse
import itertools
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from cells import CELLS, CHECKPOINTS, EPISODE, STEPS, Cell, add, rows
from gymnasium import spaces
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv

import ephemera

NET = {"net_arch": [64, 64]}


def linear(start: float) -> Any:
    return lambda left: start * left


SETTINGS: dict[str, tuple[Any, int, dict[str, Any]]] = {
    # algorithm, worlds, settings
    "PPO": (
        PPO,
        128,
        {"n_steps": 16, "batch_size": 512, "n_epochs": 6, "gamma": 0.95, "gae_lambda": 0.9, "ent_coef": 0.003}
        | {"learning_rate": linear(2e-3), "policy_kwargs": NET},
    ),
    "A2C": (
        A2C,
        32,
        {"n_steps": 8, "gamma": 0.95, "gae_lambda": 0.9, "ent_coef": 0.003, "learning_rate": linear(2e-3)}
        | {"policy_kwargs": NET},
    ),
    "DQN": (
        DQN,
        64,
        {"learning_rate": linear(1e-3), "buffer_size": 100_000, "learning_starts": 5000, "batch_size": 256}
        | {"gamma": 0.95, "train_freq": 1, "gradient_steps": 2, "target_update_interval": 6400}
        | {"exploration_fraction": 0.3, "exploration_final_eps": 0.02, "policy_kwargs": NET},
    ),
}


class Worlds(VecEnv):
    """The native vector environment as Stable-Baselines3 wants one; an action is the number of a set."""

    def __init__(self, cell: Cell, worlds: int) -> None:
        self.env = ephemera.CrawlVectorEnv(
            worlds, max_episode_steps=EPISODE, action="set", scaled=True, autoreset_mode="SameStep", **cell.arguments()
        )
        n = self.env.single_action_space.n
        sets = list(itertools.combinations(range(n), cell.budget))
        self.sets = np.zeros((len(sets), n), np.int8)
        for k, s in enumerate(sets):
            self.sets[k, list(s)] = 1
        super().__init__(worlds, self.env.single_observation_space, spaces.Discrete(len(sets)))

    def reset(self) -> Any:
        seeds = [s for s in self._seeds if s is not None]
        seen, info = self.env.reset(seed=seeds[0] if seeds else None)
        self._reset_seeds()
        self.whittle, self.unit = info["whittle"][0], info["unit"][0]
        return seen

    def step_async(self, actions: Any) -> None:
        self.actions = actions

    def step_wait(self) -> Any:
        seen, reward, _, over, info = self.env.step(self.sets[self.actions])
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for k in np.flatnonzero(over):
            infos[k] = {"terminal_observation": info["final_obs"][k], "TimeLimit.truncated": True}
        return seen, reward * self.unit / self.whittle - 1, over, infos

    def close(self) -> None:
        self.env.close()

    def get_attr(self, name: str, indices: Any = None) -> list[Any]:
        return [getattr(self.env, name)] * len(self._indices(indices))

    def set_attr(self, name: str, value: Any, indices: Any = None) -> None:
        raise NotImplementedError

    def env_method(self, name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * len(self._indices(indices))

    def _indices(self, indices: Any) -> list[int]:
        return list(range(self.num_envs)) if indices is None else list(np.atleast_1d(indices))


class Curve(BaseCallback):
    """Measures the deterministic policy at the checkpoints, in worlds that are not trained on."""

    def __init__(self, cell: Cell, checkpoints: list[int]) -> None:
        super().__init__()
        self.checkpoints = list(checkpoints)
        self.worlds = Worlds(cell, 1 if cell.knowledge == "model" else 16)
        self.points: list[tuple[int, float]] = []
        self.seconds = 0.0  # spent here

    def _on_step(self) -> bool:
        while self.checkpoints and self.num_timesteps >= self.checkpoints[0]:
            self.points.append((self.checkpoints.pop(0), self.measure()))
        return True

    def measure(self) -> float:
        began = time.process_time()
        self.worlds.seed(10**6)
        seen = self.worlds.reset()
        total = 0.0
        for _ in range(EPISODE):
            action, _ = self.model.predict(seen, deterministic=True)
            seen, reward, _, _ = self.worlds.step(action)
            total += reward.mean() + 1
        self.seconds += time.process_time() - began
        return total / EPISODE


def train(cell: Cell, algorithm: str, seed: int, steps: int) -> dict[str, Any]:
    kind, worlds, settings = SETTINGS[algorithm]
    env = Worlds(cell, worlds)
    curve = Curve(cell, [c for c in CHECKPOINTS if c <= steps])
    model = kind("MlpPolicy", env, seed=seed, device="cpu", **settings)
    began = time.process_time()
    model.learn(steps, callback=curve)
    seconds = time.process_time() - began - curve.seconds
    end = curve.measure()
    return {
        "cell": cell.name, "agent": algorithm, "seed": seed, "steps": steps,
        "curve": curve.points, "end": end, "seconds": seconds,
    }  # fmt: skip


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out", type=Path)
    p.add_argument("--steps", type=int, default=STEPS)
    p.add_argument("--seeds", type=int, default=5)
    p.add_argument("--cells", nargs="*", default=[c.name for c in CELLS])
    p.add_argument("--algorithms", nargs="*", default=list(SETTINGS))
    a = p.parse_args()
    torch.set_num_threads(1)
    done = {(r["cell"], r["agent"], r["seed"], r["steps"]) for r in rows(a.out)}
    for seed in range(1, a.seeds + 1):
        for cell in CELLS:
            for algorithm in a.algorithms:
                if cell.name in a.cells and (cell.name, algorithm, seed, a.steps) not in done:
                    row = train(cell, algorithm, seed, a.steps)
                    add(a.out, row)
                    print(row["cell"], algorithm, seed, f"{row['end']:.4f}", f"{row['seconds']:.0f} s", flush=True)


if __name__ == "__main__":
    main()
