"""WIQL and UCWhittle of peers/: indices in tables over ages."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import ephemera

SCRIPT = Path(__file__).parents[1] / "peers" / "tabular.py"


@pytest.fixture(scope="module")
def tabular():
    spec = importlib.util.spec_from_file_location("tabular", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def order(x):
    return np.argsort(np.argsort(x))


def test_the_index_of_a_known_arm(tabular):
    """By value iteration over classes of ages it is that of Table I in closed form."""
    ages = [np.full(4, float(a)) for a in tabular.FIRST]
    rewards = np.stack([ephemera.state_at_age("paper", a) for a in ages])
    exact = ephemera.index("paper", rewards).T
    found = tabular.whittle(rewards.T, 0.999, 64)
    off = np.abs(found - exact) / exact.max(axis=1, keepdims=True)
    assert off[:, :3].max() < 0.015, off  # classes of one age
    assert off.max() < 0.07, off


@pytest.mark.parametrize("name", ["Wiql", "UcWhittle"])
def test_they_find_the_order_of_known_arms(tabular, name):
    """Crawled at random, 40 arms whose harvests are known are put into the order of their Whittle indices."""
    n, random = 40, np.random.default_rng(1)
    decay = np.linspace(0.05, 0.4, n)
    policy = getattr(tabular, name)()
    policy.begin({"costs": [1.0] * n, "seed": 1})
    age = np.ones(n, np.int64)
    for epoch in range(5000):
        policy.select(ephemera.View(epoch, age))
        at = np.flatnonzero(random.random(n) < 0.25)
        brought, before = random.poisson(10 * (1 - np.exp(-decay[at] * age[at]))), age[at]
        age = age + 1
        age[at] = 1
        policy.update(ephemera.Crawls(at, brought * 1.0, before), ephemera.View(epoch + 1, age))
    exact = tabular.whittle(10 * (1 - np.exp(-decay[:, None] * tabular.FIRST)), 0.99)
    often = slice(0, 6)  # ages up to 8 epochs, of which there are many crawls
    across = [np.corrcoef(order(policy.index[:, k]), order(exact[:, k]))[0, 1] for k in range(6)]
    within = [
        np.corrcoef(order(a), order(b))[0, 1] for a, b in zip(policy.index[:, often], exact[:, often], strict=True)
    ]
    assert np.mean(across) > 0.8 and min(across) > 0.6, across
    assert np.mean(within) > 0.8, within


@pytest.mark.parametrize("name", ["Wiql", "UcWhittle"])
def test_they_learn(tabular, name):
    """In worlds of the catalogue they earn more than crawling in turn, the same under the same seed."""
    world = {"instance": "lognormal:20:203", "budget": 2, "knowledge": "online"}

    def share(policy):
        record = ephemera.benchmark_run(policy, world, 203, track="harvest", steps=2000)
        return record["learning"]["of_whittle"]

    found = share(getattr(tabular, name))
    assert found == share(getattr(tabular, name))
    assert found > share(lambda view: view.age * 1.0) + 0.05


def test_one_update_of_wiql(tabular):
    """It has the step 1/(c + 1), what the crawl brought, and the best of the next class; a wait brings nothing."""
    policy = tabular.Wiql()
    policy.begin({"costs": [1.0, 1.0], "seed": 1})
    policy.q[0, 0], policy.q[1, 3] = (2.0, 5.0), (7.0, 1.0)  # of age 1, and of the ages 4 and 5
    policy.visits[0, 2, 1] = 3
    policy.select(ephemera.View(0, np.array([3, 3])))
    crawl = ephemera.Crawls(np.array([0]), np.array([11.0]), np.array([3]))
    policy.update(crawl, ephemera.View(1, np.array([1, 4])))
    assert policy.q[0, 2, 1] == pytest.approx((11 + 5) / 5) and policy.q[1, 2, 0] == pytest.approx(7 / 2)
