"""NeurWIN and DeepTOP of peers/: they learn an index in simulators of single sources."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import ephemera

torch = pytest.importorskip("torch")
SCRIPT = Path(__file__).parents[1] / "peers" / "arms.py"
MEAN = {"world": "mean", "knowledge": "model"}


@pytest.fixture(scope="module")
def arms():
    spec = importlib.util.spec_from_file_location("arms", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    torch.set_num_threads(1)
    return module


def test_arms_are_those_of_the_environment(arms):
    """All arms in one call have the states and rewards of an ArmEnv of each source."""
    many = arms.Arms("paper", 1, **MEAN)
    one = [ephemera.ArmEnv("paper", k, price=50, **MEAN) for k in range(4)]
    states, seen = many.reset(3), [e.reset(seed=3)[0] for e in one]
    random = np.random.default_rng(1)
    for _ in range(50):
        np.testing.assert_allclose(states[0], [s[0] for s in seen], rtol=1e-5)
        crawl = random.random((1, 4)) < 0.3
        states, rewards = many.step(crawl, 50 * many.costs / many.ceilings)
        steps = [e.step(int(x)) for e, x in zip(one, crawl[0], strict=True)]
        seen = [s[0] for s in steps]
        np.testing.assert_allclose(rewards[0], [s[1] for s in steps], rtol=1e-5)


def test_arms_are_those_before_the_first_change(arms):
    """Without the changes of an instance, states are what they are with them in an episode's epochs."""
    instance, how = "drift:4:1", {"knowledge": "observed"}
    first = ephemera.load_instance(instance).changes[0].at
    assert first > max(arms.NEURWIN["horizon"], arms.DEEPTOP["horizon"])
    many = arms.Arms(instance, 2, **how)
    whole = ephemera.CrawlVectorEnv(
        2, instance=instance, budget=float(many.costs.sum()), action="set", scaled=False, max_episode_steps=-1, **how
    )
    states, seen = many.reset(3), whole.reset(seed=3)[0]
    random = np.random.default_rng(1)
    for _ in range(50):
        np.testing.assert_allclose(states * many.ceilings, seen[:, :4])
        crawl = random.random((2, 4)) < 0.1
        states, _ = many.step(crawl, 0.0)
        seen = whole.step(crawl.astype(np.int8))[0]
    whole.close()


BRIEFLY = {"neurwin": {"episodes": 600}, "deeptop": {"epochs": 3000, "hidden": (32, 32)}}


@pytest.mark.parametrize("name", BRIEFLY)
def test_the_index_rises_in_age(arms, name):
    """What is learned briefly rises with the age of each source, and is near the exact index."""
    learn, how = arms.METHODS[name]
    how = how | BRIEFLY[name]
    along = learn("paper", 1, how, **MEAN)
    batch = how["batch"] * how["horizon"] if name == "neurwin" else 1  # epochs after which a check may come
    parts = np.arange(1, arms.CHECKS + 1) / arms.CHECKS
    assert [e for e, _ in along] == list(batch * np.ceil(parts * along[-1][0] / batch))
    ceilings = ephemera.state_at_age("paper", np.full(4, 2.0**53))
    ages = np.array([1, 2, 4, 8, 16])
    states = np.stack([ephemera.state_at_age("paper", np.full(4, float(a))) for a in ages]) / ceilings
    learned = along[-1][1](states)
    assert (np.diff(learned[:-1], axis=0) > 0).all(), learned  # the last two states are almost one
    exact = np.stack([ephemera.index("paper", s * ceilings) for s in states]) / ceilings
    assert np.abs(learned - exact).mean() < 0.25, (learned, exact)


def test_gain_of_the_last_quarter(arms):
    """A training that rises gains, and one that moves up and down between two levels does not."""
    seeds, checks = np.arange(5)[:, None], np.arange(12)
    rising = arms.gained(0.9 + 0.001 * checks + 0.01 * seeds)
    assert rising == {"value": 0.003, "lo": 0.003, "hi": 0.003}
    noisy = arms.gained(0.9 + 0.02 * (-1.0) ** (checks + seeds))
    assert noisy["lo"] < noisy["value"] < noisy["hi"] and abs(noisy["value"]) < 0.01


def test_two_that_train_the_same_at_once(arms, tmp_path, monkeypatch):
    """What one keeps while the other writes hinders neither."""
    monkeypatch.setitem(arms.METHODS, "neurwin", (lambda *of, **world: [(5, lambda states: states)], {}))
    save, of = np.savez, ("neurwin", "Observed-v1", ephemera.TEST_SEEDS[0], tmp_path)

    def slowly(*arguments, **keywords):
        save(*arguments, **keywords)
        monkeypatch.setattr(np, "savez", save)
        arms.trained(*of)

    monkeypatch.setattr(np, "savez", slowly)
    assert arms.trained(*of)[0][0] == 5
    assert [f.suffixes for f in tmp_path.iterdir()] == [[".npz"]]
