"""One source with a price."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import ephemera

ID = "ephemera:ephemera/Arm-v0"


@pytest.mark.parametrize("knowledge", ["model", "observed", "online"])
def test_gymnasium_checker(knowledge):
    check_env(ephemera.ArmEnv(source=None, knowledge=knowledge), skip_render_check=True)


def earned(env, price, threshold, epochs=4000):
    """Return the mean reward of crawls from an age on, in units of u*."""
    seen, _ = env.reset(seed=5, options={"price": price})
    total, age = 0.0, np.log1p(threshold)
    for _ in range(epochs):
        seen, reward, *_ = env.step(int(seen[1] > age - 1e-6))
        total += reward
    return total / epochs


@pytest.mark.parametrize("source", range(4))
def test_best_threshold_is_where_the_index_reaches_the_price(source):
    """TCNS, Theorem 1: at a price between two indices the best threshold is the first age whose index exceeds it."""
    env = ephemera.ArmEnv("paper", source, world="mean")
    _, index = ephemera.curves("paper", ages=8)
    for age in (2, 3, 4):
        price = (index[age - 2, source] + index[age - 1, source]) / 2
        by_age = [earned(env, price, s) for s in range(1, 9)]
        assert int(np.argmax(by_age)) + 1 == age, (age, by_age)


def test_objective():
    ceilings = ephemera.state_at_age("paper", [2**53] * 4, objective="deadline:24h")
    _, info = ephemera.ArmEnv("paper", 1, objective="deadline:24h").reset(seed=1)
    assert info["ceiling"] == ceilings[1] != ephemera.ArmEnv("paper", 1).reset(seed=1)[1]["ceiling"]
    with pytest.raises(ValueError, match="source 0 has the law delay, under which what waits has no ceiling"):
        ephemera.ArmEnv("paper", objective="delay").reset(seed=1)


def test_reward_is_what_is_found_less_the_price():
    env = gymnasium.make(ID, source=1, price=50)
    _, info = env.reset(seed=3)
    assert info["source"] == 1 and info["price"] == 50 and info["cost"] == 1
    alone = ephemera.Instance([ephemera.load_instance("paper").sources[1]], 1.0, "alone")
    many = ephemera.CrawlEnv(alone, action="set", scaled=False)
    many.reset(seed=3)
    for k in range(40):
        crawl = k % 3 == 0
        seen, reward, _, _, told = env.step(int(crawl))
        _, found, *_ = many.step(np.array([crawl], np.int8))
        assert told["interest"] == found
        assert reward == pytest.approx((found - 50 * crawl) / info["ceiling"])
        assert seen[3] == pytest.approx(50 / info["ceiling"])


def test_prices_and_sources_are_drawn():
    env = ephemera.ArmEnv("lognormal:20:5", source=None)
    drawn = [env.reset(seed=s)[1] for s in range(60)]
    assert len({d["source"] for d in drawn}) > 10
    shares = np.array([d["price"] * d["cost"] / d["ceiling"] for d in drawn])
    assert shares.min() >= 0 and shares.max() <= 1 and 0.3 < shares.mean() < 0.7
    between = [ephemera.ArmEnv(price=(10, 20)).reset(seed=s)[1]["price"] for s in range(10)]
    assert min(between) >= 10 and max(between) <= 20 and len(set(between)) == 10
    assert env.reset(seed=7)[1] == env.reset(seed=7)[1]


def test_vector_environments():
    envs = gymnasium.make_vec(ID, num_envs=3, vectorization_mode="sync", source=None, max_episode_steps=5)
    envs.reset(seed=1)
    ends = [envs.step(np.array([1, 0, 1]))[3].all() for _ in range(12)]
    assert ends.count(True) == 2


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"source": 4}, "source is 4; allowed are 0 to 3, and None"),
        ({"price": (3, 2)}, "price is"),
        ({"price": float("nan")}, "price is nan"),
        ({"budget": 2}, "unknown keyword 'budget'"),
        ({"knowledge": "all"}, 'unknown knowledge "all"; allowed are model, observed and online'),
    ],
)
def test_wrong_arguments(arguments, words):
    with pytest.raises((ValueError, TypeError), match=words):
        ephemera.ArmEnv(**arguments)
    env = ephemera.ArmEnv()
    with pytest.raises(gymnasium.error.ResetNeeded, match="step before the first reset"):
        env.step(1)
    env.reset(seed=1)
    with pytest.raises(ValueError, match="the action is 2"):
        env.step(2)
    with pytest.raises(ValueError, match="option 'cost' is not taken"):
        env.reset(options={"cost": 1})
    with pytest.raises(ValueError, match="option price is nan; allowed is a finite number"):
        env.reset(options={"price": float("nan")})
    changes = [ephemera.Change(5, shuffle=True)]
    with pytest.raises(ValueError, match="deals its parameters out anew at epoch 5"):
        ephemera.ArmEnv(ephemera.Instance(ephemera.load_instance().sources, 1, changes=changes))


def test_sources_change():
    """An arm changes as its source does."""
    paper = ephemera.load_instance()
    (first, *_), silent = paper.sources, ephemera.Source("1", 0, 0.7, 1)
    env = ephemera.ArmEnv(ephemera.Instance(paper.sources, 1, changes=[ephemera.Change(50, [silent])]), world="mean")
    env.reset(seed=1)
    found = [env.step(1)[4]["interest"] for _ in range(100)]
    assert first.rate > 0 and min(found[:49]) > 0 and max(found[90:]) < 1e-6
