"""What policies, learners and agents of Stable-Baselines3 earn in the tasks.

    python python/peers/measure.py --trace trace_hn.csv.gz

measures what tasks.json lacks, and makes the tables and the picture of README.md anew. What was measured
in another way than today's, with other settings, epochs, worlds or other behaviour of a
learner, is measured again. Several processes may work on one file. It runs on Linux and macOS, by whose
locks they take turns, and not on Windows.
"""

from __future__ import annotations

import argparse
import fcntl
import io
import json
import os
import time
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

import ephemera
from ephemera import _library

try:
    import stable_baselines3
    import torch
    from stable_baselines3 import A2C, DQN, PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.policies import ActorCriticPolicy
    from stable_baselines3.common.vec_env import VecEnv
    from torch import nn
except ImportError:  # learners can be measured without
    nn = None
    ActorCriticPolicy = BaseCallback = VecEnv = object

HERE = Path(__file__).parent
FIRST = 100_000  # trainings whose worlds are apart take theirs, as many as they have, from this seed on
TEST, LEARN = 1001, 10_000  # first seed of the worlds of the test, epochs of the learners
EPISODE, TRAIN = 1000, 200  # epochs of an episode of the test and of training
EPOCHS = 200_000  # for which the deep agents are trained where all seeds have one instance
LONG = {  # where another instance is drawn at each reset, and on the recording
    "Lognormal10-v1": {"PPO": 1_000_000, "shared PPO": 1_000_000, "A2C": 1_000_000, "DQN": 1_000_000},
    "Lognormal50-v1": {"PPO": 1_000_000, "DQN": 300_000},
    "Mixed20-v1": {"PPO": 1_000_000, "shared PPO": 500_000, "A2C": 1_000_000},
    "PowerLaw-v1": {"PPO": 1_000_000, "A2C": 1_000_000, "DQN": 600_000},
    "Drift-v1": {"PPO": 1_000_000, "A2C": 1_000_000, "DQN": 1_000_000},
    "Recording-hn-v1": {"PPO": 1_000_000, "DQN": 1_000_000},
}
TENTHS = 10  # parts of a training curve
HELD, WORLDS = 3001, 50  # first seed and number of the worlds that show whether the last tenths brought anything
FLAT = 1.0  # points of the bound: a training is flat when each of its last two tenths brought less, with 95 %
GAINS = 0.01, 1.0  # of the first weights of shared PPO's last layers, as in Stable-Baselines3's own policies
CHECK = 300  # epochs of a run that shows whether a world and a learner are those of the file
REGRET = {"instance": "wide:10", "budget": 1, "knowledge": "online"}
TASKS = [name for name in ephemera.TASKS if name.endswith("-v1")]  # benchmark/ has the others
PLAY = ["share", "drawn"]  # of an agent's rows: the likeliest action is taken, or one is drawn as in training
AGENTS = ("lspe", "certainty", "PPO", "shared PPO", "A2C", "DQN")


def shared() -> Any:
    """Return a policy that looks at all sources with one network, and at their mean."""

    class Network(nn.Module):
        def __init__(self, sources: int, width: int, hidden: int = 64) -> None:
            super().__init__()
            self.sources, self.hidden = sources, hidden
            self.source = nn.Sequential(nn.Linear(width // sources, hidden), nn.Tanh())
            self.both = nn.Linear(2 * hidden, hidden)  # of a source, and of the mean over all
            self.actor = nn.Sequential(nn.Tanh(), nn.Linear(hidden, 1))
            self.critic = nn.Sequential(nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, 1))
            self.latent_dim_pi, self.latent_dim_vf = sources, 1

        def forward(self, seen: Any) -> Any:
            each = self.each(seen)
            return self.scores(each), self.critic(each.mean(1))

        def each(self, seen: Any) -> Any:
            return self.source(seen.unflatten(1, (-1, self.sources)).transpose(1, 2).contiguous())

        def scores(self, each: Any) -> Any:
            own, mean = self.both.weight.split(self.hidden, 1)  # the part of the mean is computed once for all sources
            part = nn.functional.linear(each.mean(1, keepdim=True), mean, self.both.bias)
            return self.actor(nn.functional.linear(each, own) + part).squeeze(2)

        def forward_actor(self, seen: Any) -> Any:
            return self.scores(self.each(seen))

        def forward_critic(self, seen: Any) -> Any:
            return self.critic(self.each(seen).mean(1))

    class Policy(ActorCriticPolicy):
        def __init__(self, *args: Any, gains: tuple[float, float] | None = None, **kwargs: Any) -> None:
            self.gains = gains  # None for that of hidden layers
            super().__init__(*args, **kwargs)

        def _build_mlp_extractor(self) -> None:
            space = self.action_space
            self.mlp_extractor = Network(int(getattr(space, "n", 0) or space.shape[0]), self.features_dim)

        def _build(self, rate: Any) -> None:
            super()._build(rate)
            self.action_net = self.value_net = nn.Identity()  # the network's last layers stand for them
            if self.gains is not None:
                for layers, gain in zip((self.mlp_extractor.actor, self.mlp_extractor.critic), self.gains, strict=True):
                    nn.init.orthogonal_(layers[-1].weight, gain)
            self.optimizer = self.optimizer_class(self.parameters(), lr=rate(1), **self.optimizer_kwargs)

    return Policy


def linear(start: float) -> Any:
    return lambda left: start * left


def settings(task: dict[str, Any]) -> dict[str, tuple[Any, int, dict[str, Any]]]:
    """Return of each agent the algorithm, the number of worlds and the settings in a task.

    They were tuned by hand, on Table I, and for random instances and the recording on Lognormal10-v1 and
    Recording-hn-v1, with seeds of training and worlds that no row has, but for what README.md says.
    """
    net = {"policy_kwargs": {"net_arch": [64, 64]}}
    critic = {"gamma": 0.95, "gae_lambda": 0.9, "ent_coef": 0.003, "learning_rate": linear(2e-3)}
    short = critic | {"n_steps": 16, "batch_size": 512, "n_epochs": 6}
    long = critic | {"n_steps": 64, "batch_size": 512, "n_epochs": 10}
    scores = task.get("budget", 1) != 1  # which are cut at 1: of one crawl the mean of all makes no difference
    if redrawn(task) or recorded(task):  # with a memory of the latest epochs alone DQN gets worse again
        replay = {"learning_rate": linear(3e-4), "batch_size": 512, "buffer_size": 1_000_000}
    else:
        replay = {"learning_rate": linear(1e-3), "batch_size": 256, "buffer_size": 100_000}
    return {
        "PPO": (PPO, 128, (long if redrawn(task) else short) | net),
        "shared PPO": (PPO, 128, short | {"policy_kwargs": {"gains": GAINS} if scores else {}}),
        "A2C": (A2C, 32, {"n_steps": 8} | critic | net),
        "DQN": (
            DQN,
            64,
            {"train_freq": 1, "gradient_steps": 2, "target_update_interval": 6400, "learning_starts": 5000}
            | {"exploration_fraction": 0.3, "exploration_final_eps": 0.02, "gamma": 0.95}
            | replay
            | net,
        ),
    }


class Worlds(VecEnv):
    """Worlds of a task as Stable-Baselines3 wants them; rewards are centred, as average reward wants it."""

    def __init__(self, worlds: int, episode: int, keywords: dict[str, Any], apart: bool = False) -> None:
        self.apart = apart  # from the worlds of all other seeds
        self.env = ephemera.CrawlVectorEnv(worlds, max_episode_steps=episode, autoreset_mode="SameStep", **keywords)
        self.episode = episode
        self.earned: list[float] = []  # mean over the worlds by step, as a share of the bound
        super().__init__(worlds, self.env.single_observation_space, self.env.single_action_space)

    def reset(self) -> Any:
        seed = next((s for s in self._seeds if s is not None), None)
        seen, _ = self.env.reset(seed=FIRST + seed * self.num_envs if self.apart and seed is not None else seed)
        if seed is not None:
            self.env.action_space.seed(seed)
        self._reset_seeds()
        for k in range(8 if self.num_envs > 1 else 0):  # worlds are at eight epochs of their episodes
            for _ in range(self.episode // 8):
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


def recorded(task: dict[str, Any]) -> bool:
    return task.get("world") == "replay"


def redrawn(task: dict[str, Any]) -> bool:
    """Whether a reset draws the sources anew, and an agent sees its crawls alone."""
    return "instance" in task and task["instance"] != "paper" and task["knowledge"] == "online"


def apart(name: str, task: dict[str, Any]) -> bool:
    """Whether the trainings of an agent's seeds share no world; the others were made before any did."""
    return name == "shared PPO" and action(task) == "scores"


def tested(task: dict[str, Any]) -> tuple[dict[str, Any], int, int | None]:
    """Return the world of the test, on how many seeds and for how many epochs."""
    if recorded(task):
        return {**task, "window": None}, 1, None  # the part that is held out
    return {**task}, 10, LEARN if "drift" in task["instance"] else EPISODE


def played(model: Any, env: Any, seed: int, likeliest: bool) -> Any:
    """Return what an agent earns per epoch in each of some worlds, as a share of the bound, and that unit.

    It takes the action that it finds likeliest, or draws one, as in training.
    """
    seen, info = env.reset(seed=seed)
    total, epochs, over = np.zeros(env.num_envs), 0, False
    while not over:
        seen, reward, _, ends, _ = env.step(model.predict(seen, deterministic=likeliest)[0])
        total, epochs, over = total + reward, epochs + 1, ends.any()
    return total / epochs, info["unit"]


def measured(model: Any, task: dict[str, Any], whittle: list[float], likeliest: bool) -> float:
    """Return the share of exact Whittle that an agent earns in the worlds of the test."""
    world, seeds, steps = tested(task)
    env = ephemera.CrawlVectorEnv(seeds, max_episode_steps=steps, action=action(task), **world)
    earned, unit = played(model, env, TEST, likeliest)
    env.close()
    return round(float((earned * unit / whittle).mean()), 6)


class Held(BaseCallback):
    """What an agent earns in worlds outside of training and test, after all but the last two tenths, and each of these.

    They are the same each time, so that their differences do not count, and as long as those of a
    training. Of recordings they are windows of the part that it is trained on.
    """

    def __init__(self, task: dict[str, Any], epochs: int, plays: list[str]) -> None:
        super().__init__()
        self.env = ephemera.CrawlVectorEnv(WORLDS, max_episode_steps=TRAIN, action=action(task), **task)
        self.at = [epochs * part // TENTHS for part in (TENTHS - 2, TENTHS - 1)]
        self.earned: dict[str, list[float]] = {play: [] for play in plays}

    def _on_step(self) -> bool:
        if self.at and self.num_timesteps >= self.at[0]:
            self.at.pop(0)
            self.look()
        return True

    def _on_training_end(self) -> None:
        self.look()
        self.env.close()

    def look(self) -> None:
        for play, earned in self.earned.items():
            shares, _ = played(self.model, self.env, HELD, likeliest=play == "share")
            earned.append(round(float(shares.mean()), 4))


def deep(name: str, task: dict[str, Any], seed: int, epochs: int, whittle: list[float]) -> dict[str, Any]:
    """Train an agent and measure it."""
    kind, worlds, how = settings(task)[name]
    env = Worlds(worlds, TRAIN, {**task, "action": action(task)}, apart(name, task))
    began = time.process_time()
    policy = shared() if name == "shared PPO" else "MlpPolicy"
    plays = PLAY[:1] if kind is DQN else PLAY  # DQN draws to explore alone
    held = Held(task, epochs, plays)
    model = kind(policy, env, seed=seed, device="cpu", **how).learn(epochs, callback=held)
    seconds = time.process_time() - began
    env.close()
    curve = [round(float(part.mean()), 4) for part in np.array_split(env.earned, TENTHS)]
    shares = {play: measured(model, task, whittle, likeliest=play == "share") for play in plays}
    return {**shares, "curve": curve, "held": held.earned, "seconds": round(seconds, 1)}


def regret(seed: int, epochs: int) -> dict[str, Any]:
    """Have PPO learn in one world: its share of Whittle, and the power of the epochs with which its loss grows."""
    table = ephemera.compare(["whittle"], **REGRET, steps=epochs, seeds=1, seed=seed)
    (whittle,) = table.runs
    env = Worlds(1, epochs, {**REGRET, "action": "one"})
    kind, worlds, how = settings({})["PPO"]
    kind("MlpPolicy", env, seed=seed, device="cpu", **how | {"n_steps": worlds * how["n_steps"]}).learn(epochs)
    earned = np.array(env.earned[:epochs])
    ends = np.array([c["epoch"] for c in table.curves if 100 * c["epoch"] >= epochs])
    lost = np.cumsum(1 - earned)[ends - 1]
    power = float(np.polyfit(np.log(ends), np.log(lost), 1)[0])
    return {"seed": seed, "share": float(earned.mean() / whittle["of_bound"]), "power": power}


def shown(world: dict[str, Any]) -> list[float]:
    """Return what a short episode of a world brings and shows, which tells worlds apart."""
    env = ephemera.CrawlEnv(max_episode_steps=CHECK, **world)
    seen, _ = env.reset(seed=TEST)
    n, earned, over = len(env.names), 0.0, False
    while not over:
        seen, reward, _, over, _ = env.step(seen[-2 * n : -n])  # the ages
        earned += reward
    env.close()
    return [float(f"{x:.6g}") for x in (earned, seen.sum())]


def made(epochs: int, how: dict[str, Any], check: list[float]) -> dict[str, Any]:
    """Return how rows are made: those of a file that say otherwise are stale."""
    return {"version": ephemera.__version__, "epochs": epochs, "settings": how, "check": check}


def deep_made(name: str, world: dict[str, Any], epochs: int) -> dict[str, Any]:
    """Return how the rows of an agent of Stable-Baselines3 are made."""
    kind, worlds, how = settings(world)[name]
    how = {k: f"linear({v(1)})" if callable(v) else v for k, v in how.items()}
    versions = {"stable_baselines3": stable_baselines3.__version__, "torch": torch.__version__.split("+")[0]}
    how = {"algorithm": kind.__name__, "worlds": worlds, "episode": TRAIN, "play": PLAY, **how, **versions}
    if apart(name, world):
        how["first"] = f"{FIRST} + {worlds} seed"  # of the worlds of a training
    return made(epochs, how, shown(world))


def learners_made(names: list[str], world: dict[str, Any], steps: int | None) -> dict[str, dict[str, Any]]:
    """Return how the rows of policies of the catalogue are made."""
    short = ephemera.compare(names, **world, steps=CHECK, seeds=1, seed=TEST)
    how = {}
    for name in names:
        (r,) = short.records[name]
        check = [float(f"{r[part]['reward']:.6g}") for part in ("learning", "learned")]
        how[name] = made(steps or 0, r["run"]["learner"], check)
    return how


def learned(name: str, world: dict[str, Any], steps: int | None, seeds: int) -> list[dict[str, Any]]:
    """Return what a policy earns as a share of exact Whittle: of a learner as it has learned."""
    table = ephemera.compare([name], **world, steps=steps, seeds=seeds)
    rows = [r for r in table.runs if r["policy"] in (name, f"{name}/learned")]
    figures = ("whittle", "of_bound") if name == "whittle" else ()
    return [
        {"seed": r["seed"], "share": round(r["of_whittle"], 6), **{k: round(r[k], 6) for k in figures if k in r}}
        for r in rows
    ]


def table(found: dict[str, Any]) -> str:
    """Return the table of the page: means over the seeds, with the least and the greatest."""
    agents = [a for a in AGENTS if any(a in found.get(t, {}) for t in TASKS)]
    lines = ["| task | Whittle, % of the bound | " + " | ".join(agents) + " |", "|---|--:|" + "--:|" * len(agents)]
    for name in TASKS:
        if name not in found:
            continue
        of = found[name]
        cells = []
        for agent in agents:
            rows = of.get(agent, {}).get("rows", [])
            shares = [100 * r[better(rows)] for r in rows] if rows else []
            few = f", {len(shares)} seed{'s' * (len(shares) > 1)}" if len(shares) < 10 else ""
            old = "" if of.get(agent, {}).get("made", True) else " °"
            drawn = " *" if rows and better(rows) == "drawn" else ""
            marks = few + ")" + drawn + old
            cells.append(f"{mean(shares):.1f} ({min(shares):.1f}–{max(shares):.1f}{marks}" if shares else "–")
        bounds = [100 * r["of_bound"] for r in of["whittle"]["rows"] if "of_bound" in r]
        lines.append(f"| {name} | {f'{mean(bounds):.2f}' if bounds else '–'} | " + " | ".join(cells) + " |")
    epochs = sorted({of[a]["made"]["epochs"] for of in found.values() for a in AGENTS[2:] if of.get(a, {}).get("made")})
    ends = sorted({*epochs[:1], *epochs[-1:]})
    how_long = " to ".join(f"{e:,}" for e in ends)
    trained = f" Agents of Stable-Baselines3 are trained for {how_long} epochs." if epochs else ""
    drawn = " \\*: actions are drawn, as in training." if any(" *" in line for line in lines) else ""
    old = " Rows with ° are of before and stale." if any("°" in line for line in lines) else ""
    return "\n".join([*lines, "", f"Made with version {ephemera.__version__}.{trained}{drawn}{old}"])


def better(rows: list[dict[str, Any]]) -> str:
    """Return the way of playing with which an agent earns more."""
    return max((p for p in PLAY if all(p in r for r in rows)), key=lambda p: sum(r[p] for r in rows))


def curves(found: dict[str, Any]) -> str:
    """Return the table of what each of the last two tenths of a training brought.

    It is flat where even the upper end of the interval is below a point.
    """
    lines = [
        "| task | agent | seeds | epochs | last three tenths of training | each of the last two brought | flat |",
        "|---|---|--:|--:|--:|--:|---|",
    ]
    for name in TASKS:
        for agent in AGENTS[2:]:
            of = found.get(name, {}).get(agent, {"rows": []})
            rows = of["rows"]
            held = bool(rows) and all("held" in r for r in rows)
            if len(rows) < 5 or (not held and not all("curve" in r for r in rows)):  # of fewer there is no interval
                continue
            tenths = 100 * np.array([r["held"][better(rows)] if held else r["curve"] for r in rows])
            (gain,) = _library.ask(0, "means", [((tenths[:, -1] - tenths[:, -3]) / 2).tolist()])
            ends = ", ".join(f"{x:.1f}" for x in tenths[:, -3:].mean(axis=0)) + ("" if held else " †")
            last = f"{gain['value']:+.1f} ({gain['lo']:+.1f} to {gain['hi']:+.1f})"
            flat = "yes" if gain["hi"] < FLAT else "no"
            epochs = of["made"].get("epochs", EPOCHS)
            lines.append(f"| {name} | {agent} | {len(rows)} | {epochs:,} | {ends} | {last} | {flat} |")
    return "\n".join(lines)


NIGHT = """<style>
@media (prefers-color-scheme: dark) {
svg { fill: #e6edf3 }
[style*="fill: #ffffff"] { fill: #0d1117 !important }
[style*="fill: #000000"] { fill: #e6edf3 !important }
[style*="stroke: #000000"] { stroke: #e6edf3 !important }
}
</style>
"""
"""Makes an SVG file dark where its reader prefers that. Text has no colour of its own."""


def draw(found: dict[str, Any], file: Path) -> None:
    """Draw what the agents earn along their training, exploration included: a panel for each task.

    Lines are means over the seeds, bands go from the least to the greatest.
    """
    from matplotlib import pyplot

    styles = {
        "PPO": ("#000000", "-"),
        "shared PPO": ("#d55e00", (0, (5, 1.5))),
        "A2C": ("#0072b2", (0, (1.5, 1.2))),
        "DQN": ("#009e73", (0, (6, 1.5, 1.5, 1.5))),
    }
    figure, panels = pyplot.subplots((len(TASKS) + 1) // 2, 2, figsize=(4.2, 8.4), layout="constrained")
    for name, axes in zip(TASKS, panels.flat, strict=False):
        for agent, (colour, dashes) in styles.items():
            of = found.get(name, {}).get(agent, {"rows": []})
            tenths = 100 * np.array([r["curve"] for r in of["rows"] if "curve" in r])
            if len(tenths) > 0:
                at = of["made"].get("epochs", EPOCHS) / 1000 * (np.arange(TENTHS) + 0.5) / TENTHS
                axes.fill_between(at, tenths.min(axis=0), tenths.max(axis=0), color=colour, alpha=0.15, linewidth=0)
                axes.plot(at, tenths.mean(axis=0), color=colour, linestyle=dashes, linewidth=1.3)
        axes.set_title(name.removesuffix("-v1"), fontsize=9, loc="left")
        axes.set_ylim(0, max(105, axes.get_ylim()[1]))
        axes.set_xlim(left=0)
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    lines = [pyplot.Line2D([], [], color=c, linestyle=d, linewidth=1.3, label=a) for a, (c, d) in styles.items()]
    figure.legend(handles=lines, loc="outside upper center", ncols=len(styles), frameon=False, fontsize=9)
    figure.supxlabel("thousand epochs of training", fontsize=9)
    figure.supylabel("% of the bound", fontsize=9)
    svg = io.StringIO()
    with pyplot.rc_context({"svg.hashsalt": "equal figures have equal names of their parts"}):
        figure.savefig(svg, format="svg", metadata={"Date": None})
    pyplot.close(figure)
    file.write_text(svg.getvalue().replace("<defs>", NIGHT + "<defs>", 1), "utf-8")


def written(text: str, found: dict[str, Any]) -> str:
    """Return the page with its tables made anew."""
    for begin, of in (("<!-- table -->\n", table), ("<!-- table of curves -->\n", curves)):
        head, rest = text.split(begin)
        text = head + begin + of(found) + "\n" + rest[rest.index("<!-- end of table -->") :]
    return text


class Kept:
    """The rows of a file, by task and agent. Several processes may work on one file."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.found = self.read()

    def read(self) -> dict[str, Any]:
        """Return what the file holds now."""
        found: dict[str, Any] = json.loads(self.file.read_text()) if self.file.exists() else {}
        for of in found.values():
            for agent, rows in of.items():
                if isinstance(rows, list):  # of a file that does not say how its rows were made: stale
                    of[agent] = {"made": {}, "rows": rows}
        return found

    def rows(self, task: str, agent: str, how: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the rows that were made in that way; others go.

        Rows of another version are of today where settings, epochs and what is earned and seen in a short run are.
        """
        of = self.found.setdefault(task, {})
        how = json.loads(json.dumps(how))
        if agent not in of or of[agent]["made"] | {"version": how["version"]} != how:
            if agent in of:
                print(f"{task}: what {agent} earns is stale, and measured again", flush=True)
            of[agent] = {"made": how, "rows": []}
        return list(of[agent]["rows"])

    def put(self, task: str, agent: str, rows: list[dict[str, Any]]) -> None:
        """Keep rows in the file, next to those that other processes have put there."""
        directory = os.open(self.file.parent, os.O_RDONLY)
        fcntl.flock(directory, fcntl.LOCK_EX)
        try:
            made, self.found = self.found[task][agent]["made"], self.read()
            of = self.found.setdefault(task, {})
            seeds = {r["seed"] for r in rows}
            others = of[agent]["rows"] if agent in of and of[agent]["made"] == made else []
            rows = [*rows, *(r for r in others if r["seed"] not in seeds)]
            of[agent] = {"made": made, "rows": sorted(rows, key=lambda r: int(r["seed"]))}
            self.write()
        finally:
            os.close(directory)

    def write(self) -> None:
        """Write the file."""
        lines = []
        for t, of in self.found.items():
            agents = []
            for a, x in of.items():
                rows = ",\n    ".join(map(json.dumps, x["rows"]))
                agents.append(f'  "{a}": {{\n   "made": {json.dumps(x["made"])},\n   "rows": [\n    {rows}\n   ]\n  }}')
            lines.append(f' "{t}": {{\n' + ",\n".join(agents) + "\n }")
        part = self.file.with_suffix(".part")
        part.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        part.replace(self.file)


def trained(task: str, agent: str) -> int:
    """Return the epochs for which an agent is trained."""
    return LONG.get(task, {}).get(agent, EPOCHS)


def measure(name: str, task: dict[str, Any], kept: Kept, agents: list[str], seeds: int, epochs: int | None) -> None:
    """Measure what a file lacks of a task."""
    world, tests, steps = tested(task)
    learners = {"online": ["lspe", "certainty"], "observed": ["lspe"], "model": []}[task["knowledge"]]
    names = ["whittle", *(learner for learner in learners if learner in agents)]
    long = LEARN if steps else None
    for policy, how in learners_made(names, world, long).items():
        rows = kept.rows(name, policy, how)
        if len(rows) < seeds:
            kept.put(name, policy, learned(policy, world, long, seeds))
            print(name, policy, f"{seeds} seeds", flush=True)
    deep_agents = [a for a in agents if a in AGENTS[2:] and (a != "DQN" or task["budget"] == 1)]
    if not deep_agents:
        return
    torch.set_num_threads(1)
    runs = ephemera.compare(["whittle"], **world, steps=steps, seeds=tests, seed=TEST).runs
    whole = [r for r in runs if r["policy"] == "whittle/learning"]  # of all epochs, where worlds change
    whittle = [r["reward"] for r in whole or runs]
    for agent in deep_agents:
        length = epochs or trained(name, agent)
        rows = kept.rows(name, agent, deep_made(agent, task, length))
        for seed in range(len(rows) + 1, seeds + 1):
            rows.append({"seed": seed, **deep(agent, task, seed, length, whittle)})
            kept.put(name, agent, rows)
            print(name, agent, rows[-1], flush=True)


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out", type=Path, nargs="?", default=HERE / "tasks.json", help="default: tasks.json of the page")
    p.add_argument("--trace", help="the recording of Recording-hn-v1; without, the task is left out")
    p.add_argument("--epochs", type=int, help="for which the deep agents are trained, in place of those of each task")
    p.add_argument("--seeds", type=int, default=10)
    p.add_argument("--tasks", nargs="*", default=TASKS, choices=TASKS, metavar="TASK")
    p.add_argument("--agents", nargs="*", default=AGENTS, choices=AGENTS, metavar="AGENT")
    p.add_argument("--table", action="store_true", help="only make tables and picture of the page, of what there is")
    p.add_argument("--regret", action="store_true", help="only run PPO in the world of experiments/configs/regret.toml")
    a = p.parse_args()
    deep_agents = ["PPO"] if a.regret else [agent for agent in a.agents if agent in AGENTS[2:]]
    if nn is None and deep_agents and not a.table:
        p.error(
            f"Stable-Baselines3 is missing, which {', '.join(deep_agents)} need: pip install './python[sb3]'; without, "
            f"allowed are --agents {' '.join(AGENTS[:2])}"
        )
    kept = Kept(a.out)
    if a.regret:
        epochs = a.epochs or EPOCHS
        rows = kept.rows("regret", "PPO", deep_made("PPO", REGRET, epochs))
        for seed in range(len(rows) + 1, a.seeds + 1):
            rows.append(regret(seed, epochs))
            kept.put("regret", "PPO", rows)
            print("regret", rows[-1], flush=True)
        return
    for name in a.tasks if not a.table else []:
        task = ephemera.task(name)
        if recorded(task):
            if a.trace is None:
                continue
            task["trace"] = a.trace
        measure(name, task, kept, a.agents, a.seeds, a.epochs)
    whole = a.table or (a.tasks == TASKS and a.agents == AGENTS and a.trace)
    if whole and a.out.resolve() == HERE / "tasks.json":  # rows were found to be of today, or the table marks them
        page = HERE / "README.md"
        page.write_text(written(page.read_text("utf-8"), kept.found), "utf-8")
        draw(kept.found, HERE / "training.svg")


if __name__ == "__main__":
    main()
