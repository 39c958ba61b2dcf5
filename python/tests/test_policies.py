"""Policies and learners that a crawler in Python asks."""

import pickle
import threading

import numpy as np
import pytest

import ephemera

LEARNER = next(e.name for e in ephemera.catalogue() if e.learns)


def play(policy, steps, world="mean", seed=1, **keywords):
    """Have a policy crawl an environment by its own books; the mean reward."""
    env = ephemera.CrawlEnv(action="set", scaled=False, world=world, **keywords)
    env.reset(seed=seed)
    total = 0.0
    for _ in range(steps):
        pick = policy.select()
        marks = np.zeros(len(env.names), np.int8)
        marks[pick] = 1
        _, reward, _, _, info = env.step(marks)
        total += reward
        policy.update([(i, info["interest"][i]) for i in pick])
    return total / steps


def test_whittle_earns_what_the_loop_says():
    for budget in (1, 2):
        policy = ephemera.Policy("whittle", budget=budget)
        assert play(policy, 500, budget=budget) == ephemera.whittle(steps=500, budget=budget, world="mean")
        assert policy.epoch == 500


def test_settings():
    assert ephemera.Learner(LEARNER, kappa=2.0).name == LEARNER
    assert ephemera.Learner("paper", kappa=2, start=1).name == "paper"
    with pytest.raises(ephemera.Error, match="no setting"):
        ephemera.Learner(LEARNER, nothing=1)
    with pytest.raises(ephemera.Error, match="does not learn"):
        ephemera.Learner("whittle")
    with pytest.raises(ephemera.Error, match="unknown"):
        ephemera.Policy("nobody")


def test_observed_needs_states():
    policy = ephemera.Policy("whittle", knowledge="observed")
    with pytest.raises(ephemera.Error, match="0 states for 4 sources"):
        policy.select()
    with pytest.raises(ValueError, match="a state is -1"):
        policy.select([1, 1, 1, -1])
    state = ephemera.load_instance().sources
    x = np.array([s.rate * s.interest for s in state])
    assert list(policy.select(x)) == [int(ephemera.index("paper", x).argmax())]


@pytest.mark.parametrize("seed", range(1, 9))
def test_online_with_items(seed):
    """A crawler that knows names alone learns which source is worth its crawls."""
    learner = ephemera.Learner(LEARNER, ephemera.sources(["dull", "rich", "dead"]), knowledge="online")
    rng = np.random.default_rng(seed)
    crawls = np.zeros(3, int)
    last = np.full(3, -1)
    for epoch in range(600):
        found = []
        chosen = learner.select()
        # At most the budget: a learner leaves an epoch out where a source seems to be worth more in the next.
        assert len(chosen) <= 1
        for i in chosen:
            waited = epoch - last[i]
            ages = np.sort(rng.uniform(0, waited, rng.poisson([2, 20, 0][i] * waited)))[::-1]
            interest = [1, 5, 0][i] * np.exp(-0.3 * ages)
            found.append((int(i), float(interest.sum()), (ages, interest)))
            last[i] = epoch
            crawls[i] += 1
        learner.update(found)
    assert crawls[1] > 500 and crawls.min() > 0


def test_save_and_load(tmp_path):
    learner = ephemera.Learner("paper", seed=5, act="budget")
    play(learner, 300)
    learner.save(tmp_path)
    again = ephemera.Learner.load(tmp_path)
    assert again.metrics == learner.metrics and again.epoch == 300
    assert play(learner, 300) == play(again, 300)
    learner.save(tmp_path / "a")
    again.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b", "state.json"]
    (tmp_path / "c").write_text("")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "c").stat().st_mode
    (tmp_path / "c").unlink()
    (tmp_path / "a").write_bytes((tmp_path / "a").read_bytes()[:-9])
    with pytest.raises(ephemera.Error, match="damaged"):
        ephemera.Learner.load(tmp_path / "a")
    with pytest.raises(FileNotFoundError):
        ephemera.Learner.load(tmp_path / "c")
    with pytest.raises(OSError):
        learner.save(tmp_path / "no" / "such")
    (tmp_path / "link").symlink_to(tmp_path / "b")
    for place in (tmp_path / "link", "/dev/null"):
        with pytest.raises(ValueError, match="no regular file"):
            learner.save(place)


def test_costs_under_delay(tmp_path):
    """What crawls bring, and what waits, is below 0: a learner takes it, and one that was saved goes on."""
    env = ephemera.CrawlEnv(objective="delay", knowledge="online", items=True, action="set", max_episode_steps=100)
    one, again = ephemera.Learner("forecast", objective="delay"), None
    env.reset(seed=1)
    for k in range(60):
        pick = one.select()
        assert again is None or list(pick) == list(again.select())
        marks = np.zeros(4, np.int8)
        marks[pick] = 1
        items = env.step(marks)[4]["items"]
        for learner in (one, again) if again else (one,):
            learner.update(items)
        if k == 30:
            assert items[0][1] < 0
            one.save(tmp_path)
            again = ephemera.Learner.load(tmp_path)
    seen = ephemera.Policy("whittle", knowledge="observed", objective="delay")
    seen.update([(0, -5.0)], [-1, -2, -3, -4])
    assert len(seen.select([-1, -2, -3, -4])) == 1


@pytest.mark.parametrize(
    "use,error,words",
    [
        (lambda p: p.update([(4, 1.0)]), ephemera.Error, "source 4"),
        (lambda p: p.update([(1, 1.0), (1, 1.0)]), ephemera.Error, "twice"),
        (lambda p: p.update([(1, float("nan"))]), ValueError, "interest of a crawl is nan"),
        (lambda p: ephemera.sources(["a"], [1, 2]), ValueError, "there are 1 names and 2 costs; needed is one of each"),
        (lambda p: p.update([(1, -1.0)]), ValueError, "interest of a crawl is -1"),
        (lambda p: p.update([(1, 1e101)]), ValueError, "allowed is 0 to 1e.100"),
        (lambda p: p.update([(1, 1.0, ([-1.0], [1.0]))]), ValueError, "age of an item is -1"),
        (lambda p: p.update([(1.5, 1.0)]), TypeError, "integer"),
        (lambda p: p.update([(1, 1.0, ([1.0, 2.0], [1.0]))]), ValueError, "ages"),
        (lambda p: p.update([(1, 1.0, ([1.0, [2.0]], [1.0]))]), ValueError, "parts of unequal length; needed is one"),
    ],
)
def test_refusals(use, error, words):
    policy = ephemera.Policy("whittle")
    with pytest.raises(error, match=words):
        use(policy)
    assert policy.epoch == 0


def test_closed_and_pickled():
    policy = ephemera.Policy("whittle")
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(policy)
    policy.close()
    policy.close()
    for use in (policy.select, lambda: policy.update([]), lambda: policy.epoch):
        with pytest.raises(RuntimeError, match="closed"):
            use()


def test_threads_share_a_policy():
    policy = ephemera.Policy("whittle")
    errors = []

    def work():
        try:
            for _ in range(500):
                policy.select()
                policy.update([(0, 1.0)])
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors and policy.epoch == 2000


def test_crawls_that_fail():
    """A policy sees the hosts and the crawls that succeed; what waits at a source whose crawl failed goes on."""
    names, hosts, found = [], [], []

    class Oldest:
        def begin(self, info):
            names[:], hosts[:] = info["names"], info["hosts"]
            assert info["perhost"] == 1

        def select(self, view):
            self.before = view.age
            return view.age * 1.0

        def update(self, crawls, view):
            got = set(crawls.source.tolist())
            assert len({hosts[i] for i in got}) == len(got) <= 3
            assert all(view.age[i] == (1 if i in got else self.before[i] + 1) for i in range(len(view.age)))
            found.append(got)

    sources = [ephemera.Source(f"s{i}", 50, 0.5, 1, fails=0.4 * (i % 2), host="abc"[i % 3]) for i in range(12)]
    instance = ephemera.Instance(sources, budget=6, per_host=1)
    assert ephemera.load_instance(instance) == instance
    ephemera.run(Oldest, instance, steps=500, seed=3, knowledge="online")
    crawls = np.array([sum(i in got for got in found) for i in range(12)])
    assert len(names) == 12 and 900 < crawls.sum() < 1400 and (crawls > 0).all()
    assert any(len(got) < 3 for got in found)
    with pytest.raises(ephemera.Error, match="per_host is 1; allowed in world mean is 0"):
        ephemera.run("whittle", instance, steps=5, world="mean")
