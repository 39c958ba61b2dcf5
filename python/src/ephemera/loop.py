"""The loop of a policy of Python: the environment of a seed, and the record of what was earned there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .envs import SCORES64, SET, CrawlEnv
from .policies import Crawls, View

RAW = {"scaled": False, "observation": "dict", "overspend": "refuse"}


@dataclass(frozen=True)
class Gym:
    """A policy of what an environment of that form shows."""

    act: Callable[[Any], Any]
    form: dict[str, Any]


def choose(env: CrawlEnv, chosen: ArrayLike) -> tuple[Any, ...]:
    """Step the environment by what a policy chose: source numbers, scores or marks."""
    a, n = np.asarray(chosen), len(env.names)
    if a.dtype.kind == "f" and a.shape == (n,):
        return env._go(a, SCORES64)
    if a.dtype != np.bool_ or a.shape != (n,):
        numbers = np.atleast_1d(a)
        if numbers.size and (numbers.ndim != 1 or numbers.dtype.kind not in "iu"):
            raise ValueError(
                f"the policy returned shape {a.shape} and dtype {a.dtype}; allowed are source numbers (integers), "
                f"scores (float, shape ({n},)) and marks (bool, shape ({n},))"
            )
        a = np.zeros(n, np.int8)
        for i in numbers.tolist():
            if not 0 <= i < n or a[int(i)]:
                raise ValueError(f"the policy chose source {int(i)}; allowed are 0 to {n - 1}, each once")
            a[int(i)] = 1
    return env._go(a, SET)


def milestones(epochs: int, changes: Sequence[int]) -> set[int]:
    """Return the epochs at which points of a curve end: eight in each factor of ten, also from changes on."""
    ends = {epochs}
    for begin in (0, *(c for c in changes if c < epochs)):
        each = {begin + round(10 ** (k / 8)) for k in range(160)}
        ends |= {n for n in each if n < epochs and n >= begin + 10 * (begin > 0)} | ({begin} - {0})
    return ends


class Sums:
    """What is earned along a run."""

    def __init__(self, about: dict[str, Any], epochs: int) -> None:
        self.costs = np.array(about["costs"])
        self.ends = milestones(epochs, about["changes"] or [])
        self.day = int(86400 / about["length"]) if about["length"] and 86400 % about["length"] == 0 else 0
        self.epoch, self.reward, self.crawls, self.cost, self.today = 0, 0.0, 0, 0.0, 0.0
        self.days: list[float] = []
        self.curve: list[dict[str, float]] = []
        self.before = (0, 0.0, 0)

    def add(self, reward: float, crawled: NDArray[np.bool_]) -> None:
        """Add an epoch."""
        self.epoch += 1
        self.reward += reward
        self.crawls += int(np.count_nonzero(crawled))
        self.cost += float(self.costs[crawled].sum())
        if self.day:
            self.today += reward / self.day
            if self.epoch % self.day == 0:
                self.days.append(self.today)
                self.today = 0.0
        if self.epoch in self.ends:
            epoch, earned, crawls = self.before
            span = self.epoch - epoch
            point = {"reward": (self.reward - earned) / span, "crawls": (self.crawls - crawls) / span}
            self.curve.append({"epoch": self.epoch, **point, "whittle": 0})
            self.before = (self.epoch, self.reward, self.crawls)

    def figures(self, bound: float) -> dict[str, Any]:
        """Return the figures of the run, as a record has them."""
        n = self.epoch
        found: dict[str, Any] = {
            "epochs": n, "reward": self.reward / n, "crawls": self.crawls / n, "cost": self.cost / n,
            "over": 0, "overrun": 0, "whittle": 0,
        }  # fmt: skip
        if bound == bound:
            found["of_bound"] = found["reward"] / bound
        if self.days:
            found["days"] = self.days
        return found


def play(policy: Any, env: CrawlEnv, seed: int, level: str) -> tuple[Sums, float]:
    """Have a policy crawl to the end of an episode; what was earned, and the bound."""
    seen, info = env.reset(seed=seed)
    about, bound = env._w.about, info["bound"]
    if begin := getattr(policy, "begin", None):
        begin({**about, "seed": seed, "knowledge": level})
    sums = Sums(about, about["epochs"])
    if isinstance(policy, Gym):
        for _ in range(about["epochs"]):
            seen, _, _, _, info = env.step(policy.act(seen))
            sums.add(float(info["interest"].sum()), info["crawled"])
        return sums, bound
    select, update = getattr(policy, "select", policy), getattr(policy, "update", None)

    def view(epoch: int) -> View:
        state = {"model": "mean", "observed": "state"}.get(level)
        shown = {} if state is None else {state: seen["state"].copy()}
        return View(epoch, seen["age"].astype(np.int64), **shown)

    now = view(0)
    for epoch in range(1, about["epochs"] + 1):
        seen, reward, _, _, info = choose(env, select(now))
        sums.add(reward, info["crawled"])
        before, now = now, view(epoch)
        if update is not None:
            items = info.get("items")
            source = np.array([c[0] for c in items], np.int64) if items is not None else np.flatnonzero(info["crawled"])
            found = None if items is None else [c[2] for c in items]
            update(Crawls(source, info["interest"][source], before.age[source], found), now)
    return sums, bound


def record(policy: Any, env: CrawlEnv, seed: int, level: str) -> tuple[dict[str, Any], bool]:
    """Return the record of a policy of Python under a seed, as Go makes them, and whether it learned."""
    learning, bound = play(policy, env, seed, level)
    learned = learning
    frozen = getattr(policy, "frozen", None)
    if frozen is not None:
        learned, _ = play(frozen(), env, seed, level)
    found = {
        "run": {"instance": {"budget": env.budget}, "learner": {"algorithm": "python"}},
        "instance": env._w.about["id"], "fitted": env._w.named["world"]["kind"] == "replay",
        "learning": learning.figures(bound), "learned": learned.figures(bound),
        "curve": learning.curve,
    }  # fmt: skip
    return found | ({"bound": bound} if bound == bound else {}), frozen is not None
