"""WIQL and UCWhittle: indices learned in tables, where states are few. Here they are ages, in classes.

Both see what each crawl brings in all, and the age of its source: track ``harvest``. They are written after the papers.

    ephemera.benchmark(Wiql, "harvest")
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import ephemera

FIRST = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256])
"""The first age of each class of ages."""
LEAVING = np.append(1 / np.diff(FIRST), 0.0)
"""Of an age of each class, taken evenly, the chance that the next one is in the next class."""


def state(age: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the class of each age."""
    return np.searchsorted(FIRST, age, "right") - 1


class Wiql:
    """WIQL (Biswas, Aggarwal, Varakantham and Tambe, IJCAI 2021, Algorithm 1).

    Of each source Q(s, a) follows what an epoch brings with the step 1/(c + 1), c the visits of (s, a) until then:

        Q(s, a) += (r + max Q(s', ·) − Q(s, a))/(c + 1)

    The sources of the greatest Q(s, 1) − Q(s, 0) are crawled, and random ones with the probability n/(n + t).
    Changed: the index is taken per budget unit, as crawls have costs.
    """

    name = "wiql"

    def begin(self, info: dict[str, Any]) -> None:
        self.costs = np.array(info["costs"])
        self.random = np.random.default_rng(info["seed"])
        n = len(self.costs)
        self.q = np.zeros((n, len(FIRST), 2))
        self.visits = np.zeros((n, len(FIRST), 2))

    @property
    def index(self) -> NDArray[np.float64]:
        """(n, classes) Q(s, 1) − Q(s, 0)."""
        return self.q[:, :, 1] - self.q[:, :, 0]

    def select(self, view: ephemera.View) -> NDArray[np.float64]:
        n = len(self.costs)
        self.at = state(view.age)
        ties = self.random.random(n)
        if self.random.random() < n / (n + view.epoch):
            return ties
        score = self.index[np.arange(n), self.at] / self.costs
        order = np.empty(n)
        order[np.lexsort((ties, score))] = np.arange(n)
        return order

    def update(self, crawls: ephemera.Crawls, view: ephemera.View) -> None:
        each = np.arange(len(self.costs))
        action = np.zeros(len(each), int)
        reward = np.zeros(len(each))
        action[crawls.source], reward[crawls.source] = 1, crawls.interest
        here = each, self.at, action
        self.visits[here] += 1
        best = self.q[each, state(view.age)].max(axis=1)
        self.q[here] += (reward + best - self.q[here]) / (self.visits[here] + 1)


class UcWhittle:
    """UCWhittle (Wang, Xu, Taneja and Tambe, AAAI 2023).

    In episodes of H epochs the sources are crawled whose Whittle indices are greatest in the most hopeful of the
    models that the confidence bounds allow. Changed: the paper knows rewards and learns transitions; ages are known to
    rise, and what is learned is the mean of what a crawl brings at an age, between 0 and the most that one of its
    source has brought. The radius of the bounds is a hundredth of the paper's, under which most ages stay unknown to
    the end; the index is discounted, as in the paper, and taken per budget unit.
    """

    name = "ucwhittle"
    episode, discount, radius, delta = 50, 0.98, 0.01, 1e-3

    def begin(self, info: dict[str, Any]) -> None:
        self.costs = np.array(info["costs"])
        self.random = np.random.default_rng(info["seed"])
        n = len(self.costs)
        self.brought = np.zeros((n, len(FIRST)))
        self.crawls = np.zeros((n, len(FIRST)))
        self.most = np.zeros(n)
        self.known: NDArray[np.float64] | None = None

    def rewards(self, epoch: int) -> NDArray[np.float64]:
        """(n, classes) the greatest mean reward of a crawl that the bounds allow."""
        n = np.maximum(self.crawls, 1)
        likely = np.log(4 * self.crawls.size * (epoch / self.episode + 1) ** 4 / self.delta)
        width = self.radius * np.sqrt(2 * likely / n)
        most = np.where(self.most > 0, self.most, self.most.max(initial=1.0))[:, None]
        return np.where(self.crawls > 0, np.minimum(self.brought / n + width * most, most), most)

    def select(self, view: ephemera.View) -> NDArray[np.float64]:
        if view.epoch % self.episode == 0:
            self.index = whittle(self.rewards(view.epoch), self.discount)
        score = self.index[np.arange(len(self.costs)), state(view.age)] / self.costs
        return score + 1e-9 * (1 + abs(score)) * self.random.random(len(score))

    def update(self, crawls: ephemera.Crawls, view: ephemera.View) -> None:
        assert crawls.age is not None
        at = crawls.source, state(crawls.age)
        self.brought[at] += crawls.interest
        self.crawls[at] += 1
        self.most[crawls.source] = np.maximum(self.most[crawls.source], crawls.interest)


def whittle(rewards: NDArray[np.float64], discount: float, prices: int = 32) -> NDArray[np.float64]:
    """Return the Whittle index of each class of ages, by value iteration at prices up to twice the greatest reward.

    A crawl brings the reward of its class and makes the age 1. Where crawling is better than waiting at one price, and
    no more at the next, the index is between them, in proportion.
    """
    price = 2 * rewards.max(axis=1)[:, None, None] * np.linspace(0, 1, prices)[None, :, None] ** 2
    value = np.zeros((len(rewards), prices, rewards.shape[1]))
    for _ in range(int(5 / (1 - discount))):
        later = np.concatenate([value[:, :, 1:], value[:, :, -1:]], axis=2)
        wait = discount * (value + LEAVING * (later - value))
        crawl = rewards[:, None, :] - price + discount * value[:, :, :1]
        value = np.maximum(wait, crawl)
    gain = crawl - wait
    better = (gain > 0).sum(axis=1).clip(1, prices - 1)[:, None, :]
    above, below = (np.take_along_axis(gain, k, 1)[:, 0] for k in (better - 1, better))
    low, high = (np.take_along_axis(np.broadcast_to(price, gain.shape), k, 1)[:, 0] for k in (better - 1, better))
    return np.asarray(low + (high - low) * np.clip(above / np.maximum(above - below, 1e-12), 0, 1))
