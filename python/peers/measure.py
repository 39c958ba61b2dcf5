"""What policies, learners and agents of Stable-Baselines3 earn in the tasks.

    python peers/measure.py results.json --trace trace_hn.csv.gz

goes on with what is not in the file yet, and writes the table of README.md anew.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

import ephemera

try:
    import torch
    from stable_baselines3 import A2C, DQN, PPO
    from stable_baselines3.common.policies import ActorCriticPolicy
    from stable_baselines3.common.vec_env import VecEnv
    from torch import nn
except ImportError:  # the page can be written without
    nn = None
    ActorCriticPolicy = VecEnv = object

HERE = Path(__file__).parent
TEST, LEARN = 1001, 10_000  # first seed of the worlds of the test, epochs of the learners
EPISODE, TRAIN = 1000, 200  # epochs of an episode of the test and of training
AGENTS = ("lspe", "certainty", "PPO", "shared PPO", "A2C", "DQN")


def shared() -> Any:
    """Return a policy that looks at all sources with one network, and at their mean."""

    class Network(nn.Module):
        def __init__(self, sources: int, width: int, hidden: int = 64) -> None:
            super().__init__()
            self.sources = sources
            self.source = nn.Sequential(nn.Linear(width // sources, hidden), nn.Tanh())
            self.actor = nn.Sequential(nn.Linear(2 * hidden, hidden), nn.Tanh(), nn.Linear(hidden, 1))
            self.critic = nn.Sequential(nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, 1))
            self.latent_dim_pi, self.latent_dim_vf = sources, 1

        def forward(self, seen: Any) -> Any:
            return self.forward_actor(seen), self.forward_critic(seen)

        def each(self, seen: Any) -> Any:
            return self.source(seen.unflatten(1, (-1, self.sources)).transpose(1, 2))

        def forward_actor(self, seen: Any) -> Any:
            each = self.each(seen)
            return self.actor(torch.cat([each, each.mean(1, keepdim=True).expand_as(each)], 2)).squeeze(2)

        def forward_critic(self, seen: Any) -> Any:
            return self.critic(self.each(seen).mean(1))

    class Policy(ActorCriticPolicy):
        def _build_mlp_extractor(self) -> None:
            space = self.action_space
            self.mlp_extractor = Network(int(getattr(space, "n", 0) or space.shape[0]), self.features_dim)

        def _build(self, rate: Any) -> None:
            super()._build(rate)
            self.action_net = self.value_net = nn.Identity()  # the network's last layers stand for them
            self.optimizer = self.optimizer_class(self.parameters(), lr=rate(1), **self.optimizer_kwargs)

    return Policy


def linear(start: float) -> Any:
    return lambda left: start * left


def settings() -> dict[str, tuple[Any, int, dict[str, Any]]]:
    """Return of each agent the algorithm, the number of worlds and the settings, tuned by hand on Table I."""
    net = {"policy_kwargs": {"net_arch": [64, 64]}}
    critic = {"gamma": 0.95, "gae_lambda": 0.9, "ent_coef": 0.003, "learning_rate": linear(2e-3)} | net
    replay = {"learning_rate": linear(1e-3), "gamma": 0.95, "buffer_size": 100_000, "learning_starts": 5000} | net
    return {
        "PPO": (PPO, 128, {"n_steps": 16, "batch_size": 512, "n_epochs": 6} | critic),
        "shared PPO": (PPO, 128, {"n_steps": 16, "batch_size": 512, "n_epochs": 6} | critic | {"policy_kwargs": {}}),
        "A2C": (A2C, 32, {"n_steps": 8} | critic),
        "DQN": (
            DQN,
            64,
            {"batch_size": 256, "train_freq": 1, "gradient_steps": 2, "target_update_interval": 6400}
            | {"exploration_fraction": 0.3, "exploration_final_eps": 0.02}
            | replay,
        ),
    }


class Worlds(VecEnv):
    """Worlds of a task as Stable-Baselines3 wants them; rewards are centred, as average reward wants it."""

    def __init__(self, worlds: int, episode: int, keywords: dict[str, Any]) -> None:
        self.env = ephemera.CrawlVectorEnv(worlds, max_episode_steps=episode, autoreset_mode="SameStep", **keywords)
        self.episode = episode
        self.earned: list[float] = []  # mean over the worlds by step, as a share of the bound
        super().__init__(worlds, self.env.single_observation_space, self.env.single_action_space)

    def reset(self) -> Any:
        seeds = [s for s in self._seeds if s is not None]
        seen, _ = self.env.reset(seed=seeds[0] if seeds else None)
        self._reset_seeds()
        if self.episode == TRAIN:  # worlds are at eight epochs of their episodes
            for k in range(8):
                for _ in range(TRAIN // 8):
                    self.env.step(self.env.action_space.sample())
                seen, _ = self.env.reset(options={"reset_mask": np.arange(self.num_envs) % 8 == k})
        return seen

    def step_async(self, actions: Any) -> None:
        self.actions = actions

    def step_wait(self) -> Any:
        seen, reward, _, over, info = self.env.step(self.actions)
        self.earned.append(float(reward.mean()))
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for k in np.flatnonzero(over):
            infos[k] = {"terminal_observation": info["final_obs"][k], "TimeLimit.truncated": True}
        return seen, reward - 1, over, infos

    def close(self) -> None:
        self.env.close()

    def get_attr(self, name: str, indices: Any = None) -> list[Any]:
        return [getattr(self.env, name)] * self.num_envs

    def set_attr(self, name: str, value: Any, indices: Any = None) -> None:
        raise NotImplementedError

    def env_method(self, name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs


def action(task: dict[str, Any]) -> str:
    """Return the form of actions: the number of a source where one crawl is made."""
    return "one" if task["budget"] == 1 else "scores"


def tested(task: dict[str, Any]) -> tuple[dict[str, Any], int, int | None]:
    """Return the world of the test, on how many seeds and for how many epochs."""
    if task.get("world") == "replay":
        return {**task, "window": None}, 1, None  # the part that is held out
    return {**task}, 10, LEARN if "drift" in task["instance"] else EPISODE


def measured(model: Any, task: dict[str, Any], whittle: list[float]) -> float:
    """Return the share of exact Whittle that an agent earns in worlds that it was not trained on."""
    world, seeds, steps = tested(task)
    env = ephemera.CrawlVectorEnv(seeds, max_episode_steps=steps, action=action(task), **world)
    seen, info = env.reset(seed=TEST)
    total, epochs, over = np.zeros(seeds), 0, False
    while not over:
        seen, reward, _, ends, _ = env.step(model.predict(seen, deterministic=True)[0])
        total, epochs, over = total + reward * info["unit"], epochs + 1, ends.any()
    env.close()
    return float((total / epochs / whittle).mean())


def deep(name: str, task: dict[str, Any], seed: int, epochs: int, whittle: list[float]) -> dict[str, Any]:
    """Train an agent and measure it."""
    kind, worlds, how = settings()[name]
    env = Worlds(worlds, TRAIN if name == "shared PPO" else EPISODE, {**task, "action": action(task)})
    began = time.process_time()
    policy = shared() if name == "shared PPO" else "MlpPolicy"
    model = kind(policy, env, seed=seed, device="cpu", **how).learn(epochs)
    seconds = time.process_time() - began
    env.close()
    return {"share": measured(model, task, whittle), "seconds": round(seconds, 1), "epochs": epochs}


def regret(seed: int, epochs: int) -> dict[str, Any]:
    """Have PPO learn in one world: its share of Whittle, and the power of the epochs with which its loss grows."""
    world = {"instance": "wide:10", "budget": 1, "knowledge": "online"}
    table = ephemera.compare(["whittle"], **world, steps=epochs, seeds=1, seed=seed)
    (whittle,) = table.runs
    env = Worlds(1, epochs, {**world, "action": "one"})
    kind, worlds, how = settings()["PPO"]
    kind("MlpPolicy", env, seed=seed, device="cpu", **how | {"n_steps": worlds * how["n_steps"]}).learn(epochs)
    earned = np.array(env.earned[:epochs])
    ends = np.array([c["epoch"] for c in table.curves if 100 * c["epoch"] >= epochs])
    lost = np.cumsum(1 - earned)[ends - 1]
    power = float(np.polyfit(np.log(ends), np.log(lost), 1)[0])
    return {"seed": seed, "epochs": epochs, "share": float(earned.mean() / whittle["of_bound"]), "power": power}


def learners(task: dict[str, Any], seeds: int) -> dict[str, list[dict[str, Any]]]:
    """Return what the learners have learned, and what `certainty` earns as it goes, as shares of exact Whittle."""
    world, _, steps = tested(task)
    names = {"online": ["lspe", "certainty"], "observed": ["lspe"], "model": []}[task["knowledge"]]
    table = ephemera.compare(["whittle", *names], **world, steps=LEARN if steps else None, seeds=seeds)
    by_name = {n: [r for r in table.runs if r["policy"] in (n, f"{n}/learned")] for n in ("whittle", *names)}
    return {
        n: [
            {"seed": r["seed"], "epochs": r["epochs"], "share": r["reward"] / w["reward"]}
            | (
                {"bound": w["reward"] / w["of_bound"], "whittle": w["reward"]}
                if n == "whittle" and "of_bound" in w
                else {}
            )
            for r, w in zip(rows, by_name["whittle"], strict=True)
        ]
        for n, rows in by_name.items()
    }


def table(found: dict[str, Any]) -> str:
    """Return the table of the page: means over the seeds, with the least and the greatest."""
    agents = [a for a in AGENTS if any(a in found.get(t, {}) for t in ephemera.TASKS)]
    lines = ["| task | Whittle, % of the bound | " + " | ".join(agents) + " |", "|---|--:|" + "--:|" * len(agents)]
    for name in ephemera.TASKS:
        if name not in found:
            continue
        of = found[name]
        cells = []
        for agent in agents:
            shares = [100 * r["share"] for r in of.get(agent, [])]
            few = f", {len(shares)} seed{'s' * (len(shares) > 1)}" if len(shares) < 10 else ""
            cells.append(f"{mean(shares):.1f} ({min(shares):.1f}–{max(shares):.1f}{few})" if shares else "–")
        bounds = [100 * r["whittle"] / r["bound"] for r in of["whittle"] if "bound" in r]
        lines.append(f"| {name} | {f'{mean(bounds):.2f}' if bounds else '–'} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out", type=Path)
    p.add_argument("--trace", help="the recording of Recording-hn-v1; without, the task is left out")
    p.add_argument("--epochs", type=int, default=200_000, help="for which the deep agents are trained")
    p.add_argument("--seeds", type=int, default=10)
    p.add_argument("--tasks", nargs="*", default=list(ephemera.TASKS))
    p.add_argument("--agents", nargs="*", default=AGENTS)
    p.add_argument("--regret", action="store_true", help="only run PPO in the world of experiments/configs/regret.toml")
    p.add_argument("--page", action="store_true", help="only write the table")
    a = p.parse_args()
    found: dict[str, Any] = json.loads(a.out.read_text()) if a.out.exists() else {}

    def keep() -> None:
        tasks = (
            f' "{t}": {{\n' + ",\n".join(f'  "{a}": {json.dumps(r)}' for a, r in of.items()) + "\n }"
            for t, of in found.items()
        )
        a.out.write_text("{\n" + ",\n".join(tasks) + "\n}\n")

    if a.regret:
        rows = found.setdefault("regret", {}).setdefault("PPO", [])
        for seed in range(len(rows) + 1, a.seeds + 1):
            rows.append(regret(seed, a.epochs))
            keep()
            print("regret", rows[-1], flush=True)
    for name in [] if a.page or a.regret else a.tasks:
        task = ephemera.task(name)
        if task.get("world") == "replay":
            if a.trace is None:
                continue
            task["trace"] = a.trace
        of = found.setdefault(name, {})
        if "whittle" not in of:
            of |= learners(task, a.seeds)
            keep()
        world, seeds, steps = tested(task)
        whittle = [
            r["reward"] for r in ephemera.compare(["whittle"], **world, steps=steps, seeds=seeds, seed=TEST).runs
        ]
        for agent in [x for x in a.agents if x in AGENTS[2:] and (x != "DQN" or task["budget"] == 1)]:
            torch.set_num_threads(1)
            rows = of.setdefault(agent, [])
            for seed in range(len(rows) + 1, a.seeds + 1):
                rows.append({"seed": seed, **deep(agent, task, seed, a.epochs, whittle)})
                keep()
                print(name, agent, rows[-1], flush=True)
    if set(found) >= set(ephemera.TASKS) - {"Recording-hn-v1"}:
        page = HERE / "README.md"
        begin, end = "<!-- table -->\n", "<!-- end of table -->"
        head, rest = page.read_text().split(begin)
        page.write_text(head + begin + table(found) + "\n" + rest[rest.index(end) :])


if __name__ == "__main__":
    main()
