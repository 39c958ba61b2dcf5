"""A world as PettingZoo's parallel API has it: a source an agent. It needs ``pip install pettingzoo``."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from pettingzoo import ParallelEnv

from .envs import CrawlEnv, Form
from .instance import InstanceLike

Seen = NDArray[np.float32]


class SourcesEnv(ParallelEnv[str, Seen, Seen]):  # type: ignore[misc]
    """The world of :class:`ephemera.CrawlEnv` in which each source bids for crawls.

    Observation: of the agent's own source what :class:`ephemera.CrawlEnv` shows, scaled: state, unless knowledge is
    ``online``, age and last harvest. Action: a bid, shape (1,); the best are crawled within the budget. Reward: what
    the agent's own crawl brought, as a share of ``unit``, so that the rewards of an epoch add up to that of the world.
    Under the objective ``delay`` what waits at the end of an episode is charged to no agent.
    """

    metadata: dict[str, Any] = {"name": "ephemera_sources", "is_parallelizable": True}  # noqa: RUF012
    render_mode = None

    def __init__(self, instance: InstanceLike = "paper", **keywords: Unpack[Form]) -> None:
        """Set the world up; ``max_episode_steps`` is 1000 unless it is given."""
        for name in {"action", "observation", "scaled", "render_mode"} & set(keywords):
            raise ValueError(f"{name} is not taken: bids are scores, and each agent sees its own source")
        keywords.setdefault("max_episode_steps", 1000)
        self.env = CrawlEnv(instance, **keywords)
        self.possible_agents = list(self.env.names)
        self.agents: list[str] = []
        n, flat = len(self.possible_agents), self.env.observation_space
        low, high = (np.asarray(x).reshape(-1, n).T for x in (flat.low, flat.high))  # type: ignore[attr-defined]
        own = [spaces.Box(a, b, dtype=np.float32) for a, b in zip(low, high, strict=True)]
        self.observation_spaces = dict(zip(self.possible_agents, own, strict=True))
        self.action_spaces = {a: spaces.Box(-np.inf, np.inf, (1,), np.float32) for a in self.possible_agents}

    def observation_space(self, agent: str) -> spaces.Box:
        """Return the space of what an agent sees."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Box:
        """Return the space of an agent's bids."""
        return self.action_spaces[agent]

    def close(self) -> None:
        """Free the world. It may be called again."""
        self.env.close()

    def _each(self, rows: Any) -> dict[str, Any]:
        return dict(zip(self.possible_agents, rows, strict=True))

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[dict[str, Seen], dict[str, Any]]:
        """Begin an episode; the world of a seed is that of :class:`ephemera.CrawlEnv`. There are no options."""
        flat, info = self.env.reset(seed=seed)
        self.agents, self.unit = list(self.possible_agents), float(info["unit"])
        return self._each(flat.reshape(-1, len(self.agents)).T.copy()), self._each({} for _ in self.agents)

    def step(self, actions: dict[str, Seen]) -> Any:
        """Crawl where the best bids are, and go on to the next epoch."""
        for a in [*self.possible_agents, *actions]:
            if (a in actions) != (a in self.action_spaces):
                found = "one" if a in actions else "none"
                raise ValueError(f"needed is a bid of each agent; there is {found} of {a!r}")
        bids = np.array([float(np.asarray(actions[a]).reshape(())) for a in self.possible_agents])
        flat, _, _, over, info = self.env.step(bids)
        seen = self._each(flat.reshape(-1, len(bids)).T.copy())
        rewards = self._each((info["interest"] / self.unit).tolist())
        infos = self._each({"crawled": bool(c)} for c in info["crawled"])
        self.agents = [] if over else self.agents
        return seen, rewards, self._each(False for _ in bids), self._each(over for _ in bids), infos
