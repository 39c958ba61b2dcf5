"""One source alone, where a crawl costs a price: the problem behind Whittle's index, as an environment."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, Unpack

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from .envs import CrawlEnv
from .instance import Change, Instance, InstanceLike
from .references import load_instance, state_at_age
from .world import World, seed_of


class ArmEnv(gym.Env[NDArray[np.float32], np.int64]):
    """Crawl now and pay the price, or wait? One source of an instance.

    Given a price λ of a budget unit the sources of an instance are problems of their own, and the price at which
    crawling and waiting are worth the same in a state is the state's Whittle index. Methods that learn indices from
    single arms (NeurWIN, DeepTOP, QWIC) train here, under many prices.

    Observation, float32, four shares without units:
        ``state``: what waits over u*, its mean with knowledge ``model``, the true one with ``observed``, and 0
        with ``online``;
        ``age``: ln(1 + s), s the epochs since the last crawl;
        ``found``: what the last crawl brought over u*;
        ``price``: λC/u*.
    Here u* is the ceiling of the source, what waits in the end if it is never crawled and never changes, and C the
    cost of a crawl.

    Action: 1 crawls, 0 waits.

    Reward: (X − λC)/u* where the crawl brought X, and 0 for waiting.

    Info: ``interest``, what was found, X; of a reset besides ``source``, its number; ``price`` λ, interest per budget
    unit; ``ceiling`` u*; ``cost`` C; ``seed`` of the world.

    An episode is truncated after ``max_episode_steps`` epochs, which ``gymnasium.make`` has 1000.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (as Gymnasium declares it)

    def __init__(
        self,
        instance: InstanceLike = "paper",
        source: int | None = 0,
        price: float | Sequence[float] | None = None,
        **keywords: Unpack[World],
    ) -> None:
        """Set the world up.

        Args:
            instance: as in :class:`ephemera.CrawlEnv`, but none that each reset draws.
            source: number of the source; None draws one at each reset.
            price: λ; two numbers between which each reset draws it; or None for 0 and u*/C, above which no crawl
                pays. ``reset(options={"price": λ})`` sets it for an episode.
            keywords: ``objective``, ``world``, ``knowledge`` and ``marks``, as in :class:`ephemera.CrawlEnv`; not
                the objective ``delay``, under which what waits has no ceiling.
        """
        allowed = ("objective", "world", "knowledge", "marks")
        for name in keywords:
            if name not in allowed:
                raise TypeError(f"unknown keyword {name!r}; allowed are source, price, {', '.join(allowed)}")
        objective = keywords.pop("objective", None)
        if not isinstance(instance, Instance) or objective is not None:
            instance = load_instance(instance, objective=objective)
        self._all = instance
        if shuffled := [c.at for c in self._all.changes if c.shuffle]:
            raise ValueError(
                f"the instance deals its parameters out anew at epoch {shuffled[0]}; allowed are changes of sources"
            )
        if source is not None and not 0 <= operator.index(source) < len(self._all.sources):
            raise ValueError(f"source is {source}; allowed are 0 to {len(self._all.sources) - 1}, and None")
        low_high = np.array([] if price is None else price, np.float64).reshape(-1)
        if price is not None and (
            len(low_high) not in (1, 2) or not np.isfinite(low_high).all() or low_high[0] > low_high[-1]
        ):
            raise ValueError(f"price is {price}; allowed are a number, two that rise, and None")
        self._source, self._range, self._world = source, low_high, keywords
        self._arms: dict[int, tuple[CrawlEnv, float, float]] = {}
        if source is not None:
            self._arm(operator.index(source))  # what is wrong with the world is said now
        self._env: CrawlEnv | None = None  # of the episode
        low, high = np.zeros(4, np.float32), np.full(4, np.inf, np.float32)
        low[1], low[3] = math.log(2), -np.inf
        self.observation_space = spaces.Box(low, high, dtype=np.float32)
        self.action_space = spaces.Discrete(2)

    def _arm(self, number: int) -> tuple[CrawlEnv, float, float]:
        """Return the world of a source alone, its ceiling u* and its cost C."""
        if number not in self._arms:
            s = self._all.sources[number]
            changes = [Change(c.at, [x for x in c.sources if x.name == s.name]) for c in self._all.changes]
            alone = Instance([s], s.cost, f"{self._all.id}/{number + 1}", changes=[c for c in changes if c.sources])
            ceiling = float(state_at_age(alone, [2**53])[0])
            if not ceiling > 0:
                why = "brings nothing" if ceiling == 0 else "has the law delay, under which what waits has no ceiling"
                raise ValueError(
                    f"source {number} {why}; allowed are other laws, and sources with a rate and interest above 0"
                )
            self._arms[number] = CrawlEnv(alone, action="set", scaled=False, **self._world), ceiling, s.cost
        return self._arms[number]

    def _seen(self, flat: Any) -> NDArray[np.float32]:
        *state, age, found = flat
        of = [state[0] / self._ceiling if state else 0.0, math.log1p(age), found / self._ceiling, self._charge]
        return np.array(of, np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin an episode. The world of a seed is that of :class:`ephemera.CrawlEnv` with this source alone."""
        super().reset(seed=seed)
        for name in options or {}:
            if name != "price":
                raise ValueError(f"option {name!r} is not taken; allowed: price")
        n = len(self._all.sources)
        number = int(self.np_random.integers(n)) if self._source is None else operator.index(self._source)
        self._env, self._ceiling, cost = self._arm(number)
        if options and "price" in options:
            price = float(options["price"])
            if not math.isfinite(price):
                raise ValueError(f"option price is {options['price']}; allowed is a finite number")
        elif len(self._range) == 1:
            price = float(self._range[0])
        else:
            low, high = self._range if len(self._range) else (0.0, self._ceiling / cost)
            price = float(self.np_random.uniform(low, high))
        self._charge = price * cost / self._ceiling
        world = int(self.np_random.integers(2**62)) if seed is None else seed_of(seed)
        flat, info = self._env.reset(seed=world)
        return self._seen(flat), {
            "source": number, "price": price, "ceiling": self._ceiling, "cost": cost, "seed": info["seed"],
            "interest": 0.0,
        }  # fmt: skip

    def step(self, action: Any) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Crawl or wait, and go on to the next epoch."""
        crawl = operator.index(action)
        if crawl not in (0, 1):
            raise ValueError(f"the action is {crawl}; allowed are 0, wait, and 1, crawl")
        if self._env is None:
            raise gym.error.ResetNeeded("step before the first reset")
        flat, interest, _, over, _ = self._env.step(np.array([crawl], np.int8))
        earned = interest / self._ceiling - self._charge if crawl else 0.0
        return self._seen(flat), earned, False, over, {"interest": interest}

    def close(self) -> None:
        """Free the worlds. It may be called again."""
        for env, _, _ in self._arms.values():
            env.close()
