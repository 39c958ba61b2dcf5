"""NeurWIN and DeepTOP: networks that learn the Whittle index of each source from its simulator.

    python python/peers/arms.py

trains them for the tasks of track ``state`` under the first test seeds, has them play there, and writes their row of
the leaderboard, with training curves. What was trained is kept in a directory, so that the same command goes on.

They learn in simulators of single sources, as :class:`ephemera.ArmEnv` is one, under many prices of a crawl, and see
the true state. Each source has a network of its own, as in the paper and in what its authors published, whose settings
are those below. States, rewards and prices have the units that these settings were made for.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

import ephemera
from ephemera import _library

HERE = Path(__file__).parent
TASKS = ("StateDrift20-v2", "Observed-v1")
SEEDS = 5
HIDDEN_SEEDS = {seed % 1_000_003: seed for seed in ephemera.TEST_SEEDS}  # what begin() is given for each of them
FIRST = 20_000  # of the seeds of worlds that are trained in
CHECKS = 16  # points of a training curve

NEURWIN: dict[str, Any] = {
    "hidden": (16, 32), "rate": 1e-3, "batch": 5, "horizon": 300, "discount": 0.99, "episodes": 7500, "slope": 5.0,
    "states": 20.0, "rewards": 10.0,
}  # fmt: skip
"""Of the recovering bandits of the paper, whose states are 1 to 20 and whose greatest reward is 10: here u*. The
authors train for 30 000 episodes; the training curve says what fewer bring."""

DEEPTOP: dict[str, Any] = {
    "hidden": (128, 128), "critic": 1e-3, "actor": 1e-4, "batch": 64, "memory": 60_000, "warm": 1000, "epochs": 13_000,
    "discount": 0.99, "follow": 1e-3, "explore": 0.05, "horizon": 300, "states": 20.0, "rewards": 10.0,
}  # fmt: skip
"""Of the recovering bandits that the authors published, but for the horizon, after which a price is drawn anew: their
bandits are played together, under a budget. States and rewards have the units of NeurWIN's."""

Index = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""From states to indices, both (…, n), as shares of the ceilings u*."""


class Arms:
    """All sources of an instance as arms that know nothing of each other, in several worlds at once.

    It is :class:`ephemera.ArmEnv` for each source, in one call: with a budget for all. Sources stay as they are at
    first. Episodes end before they change, and where no change is to come, states take a third of the time.
    """

    def __init__(self, name: str, worlds: int, **world: Any) -> None:
        instance = ephemera.load_instance(name).after(0)
        sources = instance.sources
        self.costs = np.array([s.cost for s in sources])
        self.ceilings = ephemera.state_at_age(instance, np.full(len(sources), 2.0**53))
        how = {**world, "budget": float(self.costs.sum())}
        self.env = ephemera.CrawlVectorEnv(
            worlds, instance=instance, action="set", scaled=False, max_episode_steps=-1, **how
        )

    def reset(self, seed: int) -> NDArray[np.float64]:
        """Begin episodes; the states, (worlds, n), as shares of u*."""
        seen, _ = self.env.reset(seed=seed)
        return self._states(seen)

    def step(self, crawl: NDArray[np.bool_], price: NDArray[np.float64] | float) -> tuple[Any, NDArray[np.float64]]:
        """Crawl where it says so at that price, λC/u*; states and rewards, (worlds, n)."""
        seen, _, _, _, info = self.env.step(crawl.astype(np.int8))
        return self._states(seen), info["interest"] / self.ceilings - price * crawl

    def _states(self, seen: NDArray[Any]) -> NDArray[np.float64]:
        return np.asarray(seen[:, : len(self.costs)] / self.ceilings, np.float64)


class Networks(nn.Module):
    """A network of each of n sources, with the first weights that PyTorch gives linear layers."""

    def __init__(self, n: int, inputs: int, hidden: tuple[int, ...]) -> None:
        super().__init__()
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        sizes = (inputs, *hidden, 1)
        for a, b in itertools.pairwise(sizes):
            self.weights.append(nn.Parameter((2 * torch.rand(n, a, b) - 1) / a**0.5))
            self.biases.append(nn.Parameter((2 * torch.rand(n, 1, b) - 1) / a**0.5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """From (n, rows, inputs) to (n, rows)."""
        last = len(self.weights) - 1
        for k, (w, b) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = torch.baddbmm(b, x, w)
            x = x if k == last else torch.relu(x)
        return x[..., 0]

    def index(self, states: float, rewards: float) -> Index:
        """Return the networks as they are now as a function of states."""
        layers = [
            (w.detach().numpy().copy(), b.detach().numpy().copy())
            for w, b in zip(self.weights, self.biases, strict=True)
        ]

        def of(x: NDArray[np.float64]) -> NDArray[np.float64]:
            y = np.ascontiguousarray(x.reshape(-1, x.shape[-1]).T * states, np.float32)[:, :, None]
            for w, b in layers[:-1]:
                y = np.maximum(y @ w + b, 0)
            w, b = layers[-1]
            return np.asarray((y @ w + b)[..., 0].T.reshape(x.shape) / rewards, np.float64)

        return of


def neurwin(instance: str, seed: int, how: dict[str, Any] = NEURWIN, **world: Any) -> list[tuple[int, Index]]:
    """NeurWIN (Nakhleh, Ganji, Hsieh, Hou and Shakkottai, NeurIPS 2021, Algorithm 1).

    A mini-batch takes the present index of a random state as the price λ. In each of its episodes a crawl is made with
    the probability σ(m(f(s) − λ)). With G the discounted sum of an episode's rewards less prices and Ḡ their mean,
    Adam follows

        Σ over episodes of (G − Ḡ) Σₜ ∇ ln P(aₜ | sₜ)

    Returns the indices along the training, each with the epochs that a source had until then.
    """
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    worlds, horizon = how["batch"], how["horizon"]
    arms = Arms(instance, worlds, **world)
    n = len(arms.costs)
    f = Networks(n, 1, how["hidden"])
    adam = torch.optim.Adam(f.parameters(), how["rate"])
    discounts = how["discount"] ** np.arange(horizon)
    batches = how["episodes"] // worlds
    along = []
    for batch in range(batches):
        now = f.index(how["states"], 1)
        price = now(rng.random((1, n)))  # in the units of rewards
        seen = arms.reset(FIRST + seed * 1_000_000 + batch * worlds)
        at, gains = np.empty((horizon, worlds, n)), np.zeros((worlds, n))
        crawled = np.empty((horizon, worlds, n), bool)
        for t in range(horizon):
            at[t] = seen
            chance = 1 / (1 + np.exp(np.clip(-how["slope"] * (now(seen) - price), -500, 500)))
            crawled[t] = rng.random((worlds, n)) < chance
            seen, reward = arms.step(crawled[t], price / how["rewards"])
            gains += discounts[t] * reward * how["rewards"]
        x = torch.tensor(how["states"] * at.reshape(-1, n).T, dtype=torch.float32)
        logit = how["slope"] * (f(x[:, :, None]) - torch.tensor(price.T, dtype=torch.float32))
        sign = torch.tensor(np.where(crawled, 1.0, -1.0).reshape(-1, n).T, dtype=torch.float32)
        advantage = np.broadcast_to(gains - gains.mean(axis=0), at.shape).reshape(-1, n).T
        adam.zero_grad()
        (-nn.functional.logsigmoid(sign * logit) * torch.tensor(advantage, dtype=torch.float32)).sum().backward()
        adam.step()
        if (batch + 1) * CHECKS // batches > batch * CHECKS // batches:
            along.append(((batch + 1) * worlds * horizon, f.index(how["states"], how["rewards"])))
    arms.env.close()
    return along


def published(networks: Networks) -> Networks:
    """Give networks the first weights of DeepTOP's: by the units that a layer has, and up to 1/2 in the last."""
    *layers, last = networks.weights
    for w in layers:
        nn.init.uniform_(w, -(w.shape[2] ** -0.5), w.shape[2] ** -0.5)
    nn.init.uniform_(last, -0.5, 0.5)
    return networks


class Critics(nn.Module):
    """A network of each of n sources, from a state and a price to what waiting and crawling are worth.

    Whether it is crawled is one more input of the second layer.
    """

    def __init__(self, n: int, hidden: tuple[int, int]) -> None:
        super().__init__()
        self.all = published(Networks(n, 2, hidden))
        self.crawl = nn.Parameter((2 * torch.rand(n, 1, hidden[1]) - 1) / hidden[1] ** 0.5)

    def forward(self, states: torch.Tensor, prices: torch.Tensor) -> torch.Tensor:
        """From (n, rows) to (2, n, rows)."""
        (u, v, w), (a, b, c) = self.all.weights, self.all.biases
        x = torch.relu(torch.baddbmm(a, torch.stack([states, prices], 2), u))
        x = torch.baddbmm(b, x, v)
        return torch.stack([torch.baddbmm(c, torch.relu(y), w)[..., 0] for y in (x, x + self.crawl)])


def deeptop(instance: str, seed: int, how: dict[str, Any] = DEEPTOP, **world: Any) -> list[tuple[int, Index]]:
    """DeepTOP (Nakhleh, Hou, NeurIPS 2022, Algorithm 2).

    A source is crawled where the actor's threshold μ(s) is above the price λ, but for a few epochs at random. With
    epochs (s, a, r, s') from a memory, under prices that are drawn anew, the critic follows

        Q(s, λ, a) → r − λa + β max over a' of Q'(s', λ, a'),

    where Q' follows Q slowly, and the actor the gradient

        (Q(s, μ(s), 1) − Q(s, μ(s), 0)) ∇μ(s),

    in which the critic stands still: at a price of μ(s), where crawling is worth more than waiting, μ(s) rises.

    Returns the indices along the training, each with the epochs that a source had until then.
    """
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    arms = Arms(instance, 1, **world)
    n, rows = len(arms.costs), how["batch"]
    top = how["rewards"]  # u*, the greatest index
    actor, critic, target = (
        published(Networks(n, 1, how["hidden"])),
        Critics(n, how["hidden"]),
        Critics(n, how["hidden"]),
    )
    target.load_state_dict(critic.state_dict())
    by_actor, by_critic = (
        torch.optim.Adam(f.parameters(), how[name], foreach=True) for f, name in ((actor, "actor"), (critic, "critic"))
    )
    memory = np.empty((4, how["memory"], n), np.float32)
    along = []
    for epoch in range(how["epochs"]):
        if epoch % how["horizon"] == 0:
            seen = arms.reset(FIRST + seed * 1_000_000 + epoch)
            price = top * rng.random((1, n))
        if epoch < how["warm"] or rng.random() < how["explore"]:
            index = rng.uniform(-top, top, (1, n))
        else:
            with torch.no_grad():
                x = torch.tensor(how["states"] * seen.T, dtype=torch.float32)
                index = actor(x[:, :, None]).numpy().T
        crawl = index > price
        after, reward = arms.step(crawl, 0.0)
        memory[:, epoch % how["memory"]] = np.concatenate(
            [how["states"] * seen, crawl, top * reward, how["states"] * after]
        )
        seen = after
        if (epoch + 1) * CHECKS // how["epochs"] > epoch * CHECKS // how["epochs"]:
            along.append((epoch + 1, actor.index(how["states"], top)))
        if epoch < how["warm"]:
            continue
        at = rng.integers(min(epoch + 1, how["memory"]), size=(rows, n))
        s, a, r, then = (torch.from_numpy(m[at, np.arange(n)].T.copy()) for m in memory)
        prices = torch.tensor(rng.uniform(-top, top, (n, rows)), dtype=torch.float32)
        with torch.no_grad():
            goal = r - prices * a + how["discount"] * target(then, prices).amax(0)
        waits, crawls = critic(s, prices)
        by_critic.zero_grad()
        ((torch.where(a > 0, crawls, waits) - goal) ** 2).mean(1).sum().backward()
        by_critic.step()
        index = actor(s[:, :, None])
        with torch.no_grad():
            waits, crawls = critic(s, index)
        by_actor.zero_grad()
        (-(crawls - waits) * index).mean(1).sum().backward()
        by_actor.step()
        with torch.no_grad():
            for old, now in zip(target.parameters(), critic.parameters(), strict=True):
                old.lerp_(now, how["follow"])
    arms.env.close()
    return along


METHODS: dict[str, tuple[Callable[..., list[tuple[int, Index]]], dict[str, Any]]] = {
    "neurwin": (neurwin, NEURWIN),
    "deeptop": (deeptop, DEEPTOP),
}
GRID = np.linspace(0.0, 3.0, 301)  # shares of u* at which what was learned is kept


def trained(name: str, task: str, seed: int, kept: Path) -> list[tuple[int, NDArray[np.float64]]]:
    """Return what was learned for the world of a task and a seed, along the training: indices (301, n) on the grid."""
    learn, how = METHODS[name]
    key = hashlib.sha256(json.dumps([name, task, seed, how, ephemera.__version__]).encode()).hexdigest()[:16]
    file = kept / f"{name}-{task}-{key}.npz"
    if not file.exists():
        world = ephemera.task(task)
        instance = world.pop("instance").replace("*", str(seed))
        world.pop("budget")  # an arm has none
        torch.set_num_threads(1)
        points = learn(instance, seed % 1000 + 1, how, **world)
        n = len(ephemera.load_instance(instance).sources)
        tables = np.stack([f(np.repeat(GRID[:, None], n, 1)) for _, f in points])
        kept.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept) as room:  # so that what is there is whole
            part = Path(room, file.name)
            np.savez(part, epochs=[e for e, _ in points], tables=tables)
            part.replace(file)
    found = np.load(file)
    return list(zip(found["epochs"].tolist(), found["tables"], strict=True))


class Indices:
    """A policy of learned indices: per budget unit the greatest are crawled."""

    def __init__(self, name: str, kept: Path, point: int = -1) -> None:
        self.name, self.kept, self.point = name, kept, point

    def begin(self, info: dict[str, Any]) -> None:
        """Take what was learned for the world that begins."""
        seed = HIDDEN_SEEDS[info["seed"]]
        (task,) = (t for t in TASKS if ephemera.TASKS[t]["instance"].split(":")[1] == str(len(info["names"])))
        instance = ephemera.TASKS[task]["instance"].replace("*", str(seed))
        self.ceilings = ephemera.state_at_age(instance, np.full(len(info["names"]), 2.0**53))
        self.unit = self.ceilings / np.array(info["costs"])
        self.table = trained(self.name, task, seed, self.kept)[self.point][1]

    def select(self, view: ephemera.View) -> NDArray[np.float64]:
        assert view.state is not None
        at = view.state / self.ceilings
        step = np.minimum(at / GRID[1], len(GRID) - 1)
        below = np.minimum(step.astype(int), len(GRID) - 2)
        part, source = step - below, np.arange(len(at))
        return ((1 - part) * self.table[below, source] + part * self.table[below + 1, source]) * self.unit


def row(name: str, kept: Path, tasks: tuple[str, ...], seeds: int) -> dict[str, Any]:
    """Return the row of a method, with the shares along its training."""
    made: dict[str, Any] = {"tasks": tasks, "seeds": seeds, "name": name}
    _, how = METHODS[name]
    of = ephemera.benchmark(lambda: Indices(name, kept), "state", **made)
    curve, gain = {}, {}
    for k, task in enumerate(tasks):
        epochs = [e for e, _ in trained(name, task, ephemera.TEST_SEEDS[0], kept)]
        along = [
            ephemera.benchmark(lambda p=p: Indices(name, kept, p), "state", **made | {"tasks": [task]}).shares[:, 0]
            for p in range(len(epochs) - 1)
        ]
        along.append(of.shares[:, k])  # all that it has learned
        curve[task] = [[e, round(float(shares.mean()), 4)] for e, shares in zip(epochs, along, strict=True)]
        gain[task] = gained(np.stack(along, axis=1))
    epochs = max(e for points in curve.values() for e, _ in points)
    return of.row | {"settings": how, "training_epochs": epochs, "commit": commit(), "curve": curve, "gain": gain}


def gained(along: NDArray[np.float64]) -> dict[str, float]:
    """Return what the last quarter of a training earns more than the one before, with its interval of 95 %.

    It is of the means of all checks, (seeds, checks), since one moves up and down where the rate of learning stays.
    """
    quarter = along.shape[1] // 4
    last, before = along[:, -quarter:], along[:, -2 * quarter : -quarter]
    (gain,) = _library.ask(0, "means", [(last.mean(axis=1) - before.mean(axis=1)).tolist()])
    return {k: round(gain[k], 4) for k in ("value", "lo", "hi")}


def commit() -> str:
    """Return the last commit that changed this file, marked where it has changed since."""
    git = ["git", "-C", str(HERE)]
    last = subprocess.run(
        [*git, "log", "-1", "--format=%h", "--abbrev=12", "--", __file__], check=True, capture_output=True
    )
    now = subprocess.run([*git, "status", "--porcelain", "--", __file__], check=True, capture_output=True)
    return last.stdout.decode().strip() + ("-changed" if now.stdout else "")


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--kept", type=Path, default=Path("arms-trained"), help="directory that keeps what was trained")
    p.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    p.add_argument("--tasks", nargs="+", default=TASKS[:1], choices=TASKS, help="default: those of the leaderboard")
    p.add_argument("--seeds", type=int, default=SEEDS)
    p.add_argument("--only-train", action="store_true")
    a = p.parse_args()
    for name in a.methods:
        for task in a.tasks:
            for seed in ephemera.TEST_SEEDS[: a.seeds]:
                trained(name, task, seed, a.kept)
                print(name, task, seed, flush=True)
        if not a.only_train:
            found = row(name, a.kept, tuple(a.tasks), a.seeds)
            rows = HERE.parent / "benchmark" / "rows"
            rows.mkdir(exist_ok=True)
            (rows / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n", "utf-8")
            print(name, found["mean"], found["curve"], found["gain"], flush=True)


if __name__ == "__main__":
    main()
