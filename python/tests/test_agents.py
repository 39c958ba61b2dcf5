"""PettingZoo's parallel API."""

import warnings

import numpy as np
import pytest

import ephemera

pytest.importorskip("pettingzoo")
from pettingzoo.test import parallel_api_test
from pettingzoo.utils import parallel_to_aec

from ephemera.agents import SourcesEnv


@pytest.mark.parametrize("how", [{}, {"instance": "mixed:8:*", "budget": 3, "knowledge": "online"}])
def test_parallel_api(how):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = SourcesEnv(**how, max_episode_steps=50)
        parallel_api_test(env, num_cycles=120)
        parallel_to_aec(env).reset(seed=1)
    env.close()
    env.close()
    with pytest.raises(RuntimeError, match="closed"):
        env.reset()


def test_objective():
    assert SourcesEnv("paper", objective="delay").env.observation_space.low[0] == -np.inf
    with pytest.raises(ephemera.Error, match=r'objective is "fame"; allowed are interest:HALF-LIFE .*, and freshness'):
        SourcesEnv("paper", objective="fame")


@pytest.mark.parametrize(("of", "wrong"), [("", "there is none of '1'"), ("12345", "there is one of '5'")])
def test_a_bid_of_each_agent(of, wrong):
    env = SourcesEnv("paper")
    env.reset(seed=1)
    with pytest.raises(ValueError, match=f"needed is a bid of each agent; {wrong}"):
        env.step({agent: [0.0] for agent in of})


def test_it_is_the_world_of_one_agent():
    """Bids are scores; what the agents see and earn is what one agent for all sees and earns."""
    many, one = (
        SourcesEnv("lognormal:6:2", budget=2),
        ephemera.CrawlEnv("lognormal:6:2", budget=2, max_episode_steps=1000),
    )
    seen, _ = many.reset(seed=4)
    flat, _ = one.reset(seed=4)
    random = np.random.default_rng(1)
    for k in range(1000):
        np.testing.assert_array_equal(np.stack(list(seen.values())).T.reshape(-1), flat)
        bids = random.random(6)
        seen, rewards, ends, cut, infos = many.step(dict(zip(many.possible_agents, bids[:, None], strict=True)))
        flat, reward, _, over, info = one.step(bids)
        assert sum(rewards.values()) == pytest.approx(reward, rel=1e-5)
        assert [i["crawled"] for i in infos.values()] == info["crawled"].tolist() and sum(info["crawled"]) == 2
        assert not any(ends.values()) and set(cut.values()) == {over} == {k == 999}
    assert many.agents == []
    with pytest.raises(ValueError, match="action is not taken"):
        SourcesEnv(action="one")
