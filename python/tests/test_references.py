"""Exact references."""

import numpy as np
import pytest

import ephemera


def test_index_is_theorem_1():
    """The index of Theorem 1 of TCNS, written out again."""
    instance = ephemera.load_instance("mixed:9")
    alpha = np.exp([-s.decay for s in instance.sources])
    # u of (1); windows are those of the instance.
    share = np.array([1.0 if np.isinf(s.window) else 1 - np.exp(-s.decay * s.window) for s in instance.sources])
    ceiling = np.array([s.rate * s.interest / s.decay for s in instance.sources]) * share
    u = ceiling * (1 - alpha)
    cost = np.array([s.cost for s in instance.sources])
    x = ceiling * np.linspace(0.01, 0.99, 20)[:, None]
    eta = np.ceil(np.log((u - (1 - alpha) * x) / u) / np.log(alpha))
    want = (eta * ((1 - alpha) * x - u) + u * (1 - alpha**eta) / (1 - alpha)) / cost
    np.testing.assert_allclose(ephemera.index(instance, x), want, rtol=1e-9)


def test_inverse_and_ages():
    price = 20.0
    x = ephemera.threshold("paper", price)
    np.testing.assert_allclose(ephemera.index("paper", x), price, rtol=1e-9)
    states, indices = ephemera.curves("paper", 30)
    assert states.shape == indices.shape == (30, 4)
    assert (np.diff(states, axis=0) > 0).all() and (np.diff(indices, axis=0) > 0).all()
    np.testing.assert_array_equal(states[6], ephemera.state_at_age("paper", [7, 7, 7, 7]))


@pytest.mark.parametrize(
    "name", ["drift:10:1", "lognormal:10:1:power", "lognormal:10:1:hump", "lognormal:10:1:mixture", "pages-pinged:20:1",
             "hosts:8:1", "mixed:5:2"],
)  # fmt: skip
def test_instances_are_data(name, tmp_path):
    """All that a name stands for is in the data, which is the same instance again."""
    data = ephemera.load_instance(name)
    (tmp_path / "same.toml").write_text(data.toml())
    assert ephemera.load_instance(data) == data == ephemera.load_instance(tmp_path / "same.toml")
    np.testing.assert_array_equal(ephemera.threshold(name, 0.01), ephemera.threshold(data, 0.01))
    np.testing.assert_array_equal(ephemera.curves(name, 20), ephemera.curves(data, 20))
    world = {"world": "pages"} if name.startswith("pages") else {}
    want = ephemera.run("round-robin", name, 8000, seed=3, **world)
    assert ephemera.run("round-robin", data, 8000, seed=3, **world).outcome == want.outcome
    seen, _ = ephemera.ArmEnv(name, **world).reset(seed=1)
    assert seen[0] > 0
    if name.startswith("drift"):
        first = data.changes[0]
        assert not data.after(first.at).changes and data.after(first.at).sources == data.sources
        changed = {s.name: s for s in first.sources}
        assert all(s == changed.get(s.name, s) for s in data.after(first.at + 1).sources) and changed


def test_relax_bounds_whittle():
    for budget in (1, 2, 3):
        r = ephemera.relax("paper", budget)
        assert r.bound == ephemera.bound("paper", budget) == pytest.approx(r.reward, rel=1e-9)
        earned = ephemera.whittle("paper", budget=budget, world="mean")
        assert 0.99 * r.bound < earned <= r.bound
        assert r.cost == pytest.approx(budget) and r.frequency.sum() == pytest.approx(budget)
        assert (r.short <= r.long).all()


def test_catalogue():
    entries = {e.name: e for e in ephemera.catalogue()}
    assert not entries["whittle"].learns and any(e.learns for e in entries.values())


@pytest.mark.parametrize(
    "call,words",
    [
        (lambda: ephemera.index("paper", [1, 2, 3]), "rows have 3 values; needed is one for each of 4 sources"),
        (lambda: ephemera.index("paper", np.ones((4, 2))), "rows have 2 values"),
        (
            lambda: ephemera.index("paper", [[1, 2, 3, 4], [3]]),
            "argument has parts of unequal length; needed is a value for each source, in each row",
        ),
        (lambda: ephemera.index_at_age("paper", [1, 2, 2.5, 1]), "source 2: index_at_age at 2.5"),
        (lambda: ephemera.state_at_age("paper", [1, 2, 2, 1e300]), "source 3: state_at_age at 1e.300"),
        (lambda: ephemera.index("paper", [1, 2, 3, -1]), "source 3"),
        (lambda: ephemera.index("paper", [1, 2, 3, np.nan]), "source 3"),
        (
            lambda: ephemera.index("paper", np.zeros(4), objective="delay"),
            "source 0 has the law delay, .* index_at_age",
        ),
        (lambda: ephemera.threshold("paper", 1, objective="delay"), "source 0 has the law delay, .* index_at_age"),
        (lambda: ephemera.bound("nowhere"), "unknown instance"),
        (lambda: ephemera.bound("paper", 9), "budget is 9"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(ValueError, match=words):
        call()
    with pytest.raises(TypeError, match="complex"):
        ephemera.index("paper", np.ones(4, complex))


def test_index_next_to_another():
    """Whittle's index of each age is that which markovianbandit-pkg computes of the ages as a Markov chain."""
    bandit = pytest.importorskip("markovianbandit")
    ages = 40
    instances = ["paper", "lognormal:5:3", "wide:4:2"]
    for name in instances:
        states, indices = ephemera.curves(name, ages)
        for i, source in enumerate(ephemera.load_instance(name).sources):
            wait, crawl = np.zeros((2, ages, ages))
            wait[np.arange(ages), np.minimum(np.arange(ages) + 1, ages - 1)] = 1
            crawl[:, 0] = 1
            model = bandit.restless_bandit_from_P0P1_R0R1(wait, crawl, np.zeros(ages), states[:, i])
            theirs = model.whittle_indices(check_indexability=False)
            # The last age stands for all later ones there, so that it alone differs.
            np.testing.assert_allclose(indices[:-1, i], theirs[:-1], rtol=1e-9, err_msg=f"{name} {source.name}")


def test_an_instance_of_many_sources_is_shown_in_a_line():
    """A console shows what tells it from others, not 500 sources."""
    assert repr(ephemera.load_instance("paper")) == "<Instance paper: 4 sources (1, 2, 3, 4), budget 1>"
    assert "500 sources (1, 2, 3, …, 500), budget 1>" in repr(ephemera.load_instance("lognormal:500"))
    assert repr(ephemera.load_instance("hosts:50:1")).endswith(", budget 1, per_host 1>")
    assert ", changes at 2000, 3000, 5000, " in repr(ephemera.load_instance("drift:10:1"))
