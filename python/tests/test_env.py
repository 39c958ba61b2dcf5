"""The environment of one world."""

import os
import signal
import subprocess
import sys
import threading
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import ephemera

ID = "ephemera/Crawl-v0"

FORMS = [
    {},
    {"scaled": False},
    {"observation": "dict"},
    {"action": "set"},
    {"action": "one", "world": "mean"},
    {"world": "poisson", "knowledge": "observed"},
    {"world": "poisson", "knowledge": "online", "marks": "per-item"},
    {"instance": "mixed:20", "budget": 5, "max_episode_steps": -1},
    {"instance": "lognormal:50:*", "budget": 2, "action": "set"},
]


@pytest.fixture(params=FORMS, ids=str)
def form(request):
    return request.param


def test_gymnasium_checker(form):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", ".*infinity. This is probably too high")  # nothing bounds it
        env = gymnasium.make(ID, render_mode="rgb_array", **form)
        check_env(env.unwrapped)
    env.close()


def test_observations_stay_in_their_space():
    """The figures that end an episode of 3000 epochs are within the bounds."""
    for form in FORMS:
        env = ephemera.CrawlEnv(**{**form, "max_episode_steps": 3000})
        env.action_space.seed(1)
        seen, _ = env.reset(seed=1)
        still = env.action_space.sample() if env.action_space.shape == () else np.zeros_like(env.action_space.sample())
        for k in range(3000):
            seen, _, _, over, _ = env.step(env.action_space.sample() if k < 1000 else still)
            assert k % 50 or seen in env.observation_space, (form, k, seen)
        assert over and seen in env.observation_space, (form, seen)


# The policies of the Go commands that are plain scores: by name, from what an
# observation shows.
POLICIES = {
    "round-robin": lambda seen: seen["age"],
    "myopic": lambda seen: seen["state"],
}


@pytest.mark.parametrize("world", ["mean", "poisson"])
@pytest.mark.parametrize(
    "instance,budget", [("paper", 1), ("paper", 2), ("lognormal:10", 3), ("lognormal:10:1:window", 3)]
)
def test_same_stream_as_go(command, world, instance, budget):
    """What policies earn is that of `train -format json` to the last digit."""
    seed, steps = 7, 2000
    report = command(
        "train", "-instance", instance, "-budget", budget, "-world", world, "-algorithm", "paper",
        "-seed", seed, "-steps", steps, "-format", "json",
    )  # fmt: skip
    rows = {row["policy"]: row for row in report["results"]}
    env = gymnasium.make(ID, steps, instance=instance, budget=budget, world=world, scaled=False, observation="dict")
    for name, scores in POLICIES.items():
        seen, info = env.reset(seed=seed)
        assert info["bound"] == report["bound"]
        total, crawls = 0.0, 0
        for _ in range(steps):
            seen, reward, _, over, info = env.step(scores(seen))
            total += reward
            crawls += info["crawled"].sum()
        assert over
        assert total / steps == rows[name]["reward"]
        assert crawls / steps == rows[name]["crawls"]


def test_same_stream_as_go_observed(command):
    seed, steps = 3, 1000
    report = command(
        "train", "-knowledge", "observed", "-marks", "per-item", "-seed", seed, "-steps", steps, "-format", "json"
    )  # fmt: skip
    (row,) = (r for r in report["results"] if r["policy"] == "myopic")
    env = gymnasium.make(
        ID,
        world="poisson",
        knowledge="observed",
        marks="per-item",
        max_episode_steps=steps,
        scaled=False,
        observation="dict",
    )
    seen, _ = env.reset(seed=seed)
    total = 0.0
    for _ in range(steps):
        seen, reward, _, _, _ = env.step(seen["state"])
        total += reward
    assert total / steps == row["reward"]


def test_replay(tmp_path):
    path = tmp_path / "recording.csv"
    rows = ["source,published_unix,utility"]
    rows += [f"{'ab'[k % 2]},{3600 * k},{1 + k % 3}" for k in range(100)]
    path.write_text("\n".join(rows) + "\n")
    env = gymnasium.make(ID, world="replay", trace=str(path), max_episode_steps=-1, knowledge="observed", scaled=False)
    seen, info = env.reset(seed=1)
    assert info["whittle"] > 0 and np.isnan(info["bound"])
    steps, over = 0, False
    while not over:
        seen, reward, _, over, info = env.step(seen[:2].astype(np.float32))
        assert reward == info["interest"].sum()
        steps += 1
    assert steps == 49  # the whole epochs of the second half
    how = {"world": "replay", "trace": str(path), "knowledge": "observed", "steps": None, "seeds": 1}
    report = ephemera.compare(["myopic", lambda view: view.state], **how).report
    assert report["bound"] > 0 and [row["of_bound"] for row in report["results"]] == pytest.approx([1, 1])


def test_arrays_that_were_handed_out_stay():
    env = ephemera.CrawlEnv()
    env.reset(seed=1)
    kept, copies = [], []
    for k in range(1000):
        seen, _, _, _, info = env.step(np.eye(4)[k % 4])
        kept.append((seen, info["interest"], info["crawled"]))
        copies.append([a.copy() for a in kept[-1]])
    assert all(np.array_equal(a, b) for k, c in zip(kept, copies, strict=True) for a, b in zip(k, c, strict=True))


def test_seed_is_kept_and_moves_on():
    env = ephemera.CrawlEnv(max_episode_steps=20)

    def episode(**how):
        env.reset(**how)
        return [env.step(np.eye(4)[k % 4])[1] for k in range(20)]

    first, second = episode(seed=5), episode()
    assert first != second
    assert episode(seed=5) == first and episode() == second


@pytest.mark.parametrize(
    "wrong,error",
    [
        (np.zeros(3), ValueError),
        (np.zeros((4, 1)), ValueError),
        (0.0, ValueError),
        (np.array(["a", "b", "c", "d"]), TypeError),
        (np.zeros(4, complex), TypeError),
        (np.array([0, 1, np.nan, 0]), ephemera.Error),
    ],
)
def test_wrong_scores(wrong, error):
    env = gymnasium.make(ID).unwrapped
    env.reset(seed=1)
    with pytest.raises(error):
        env.step(wrong)
    assert env.step(np.zeros(4))[1] > 0  # nothing is broken by it


@pytest.mark.parametrize(
    "wrong,error",
    [
        (np.zeros(3, np.int8), ValueError),
        (np.zeros(4, complex), TypeError),
        (np.array([0, 0.5, 0, 0]), ValueError),
        (np.array([0, np.nan, 0, 0]), ValueError),
        (np.array([0, 1, 2, 0]), ValueError),
        (np.array([256, 0, 0, 0]), ValueError),
        (np.array([0, 1, -1, 0], np.int8), ephemera.Error),
        (np.array([1, 1, 0, 0], np.int8), ephemera.Error),
    ],
)
def test_wrong_sets(wrong, error):
    env = gymnasium.make(ID, action="set", overspend="refuse").unwrapped
    env.reset(seed=1)
    with pytest.raises(error):
        env.step(wrong)
    for dtype in (np.bool_, np.int64, np.float32):  # agents of Stable-Baselines3 return float32
        env.reset(seed=1)
        _, reward, _, _, info = env.step(np.array([1, 0, 0, 0], dtype))
        assert reward > 0 and info["crawled"].tolist() == [True, False, False, False]


@pytest.mark.parametrize("wrong,error", [(4, ephemera.Error), (-1, ephemera.Error), (1.0, TypeError), ("1", TypeError)])
def test_wrong_one(wrong, error):
    env = gymnasium.make(ID, action="one").unwrapped
    env.reset(seed=1)
    with pytest.raises(error):
        env.step(wrong)
    assert env.step(np.int64(1))[1] > 0


@pytest.mark.parametrize(
    "arguments,words",
    [
        ({"instance": "nothing"}, "unknown instance"),
        ({"instance": ""}, "^instance is ''; allowed are"),
        ({"budget": 100}, "budget is 100"),
        ({"world": "moon"}, "allowed are mean, pages, poisson, and replay"),
        ({"action": "one", "budget": 2}, "a budget of 1; the costs are"),
        ({"overspend": "maybe"}, "allowed: 'refuse', 'truncate'$"),
        ({"budget": 0}, "budget is 0; allowed is a finite number above 0"),
        ({"budget": "much"}, "budget is 'much'; allowed is a finite number above 0"),
        ({"world": "replay", "epoch": "1h"}, "epoch is '1h'; allowed is a finite number of seconds above 0"),
        ({"budget": float("nan")}, "budget is nan"),
        ({"world": "mean", "marks": "per-item"}, "^marks is a setting of world poisson; the world here is mean"),
        ({"world": "poisson", "trace": "a.csv"}, "^trace is a setting of world replay"),
        ({"world": "mean", "knowledge": "online"}, "world mean has no items"),
        ({"world": "replay"}, "^world replay needs a recording; trace names one"),
        ({"knowledge": "all"}, "unknown knowledge"),
        ({"max_episode_steps": 2**70}, "max_episode_steps is 1180591620717411303424"),
        ({"max_episode_steps": -2}, "-1 for no end"),
        ({"render_mode": "human"}, "allowed: None, 'rgb_array'$"),
        ({"items": True}, "knowledge 'online'"),
        (
            {"instance": ephemera.Instance([ephemera.Source("x", 1, -1, 1)])},
            r'^instance "python", source 1 \("x"\): decay is -1',
        ),
        ({"instance": ephemera.Instance([])}, "source"),
        (
            {"instance": ephemera.Instance([ephemera.Source("x", 1, 1, 1, batch=2.7)])},
            '^key "source.batch": cannot decode TOML float; needed is a whole number',
        ),
        (
            {"instance": ephemera.Instance([ephemera.Source("x", 1, 1, 1, host="a")], per_host=1.9)},
            '^key "per_host": .* whole number',
        ),
        (
            {"instance": ephemera.Instance([ephemera.Source("x", 1, 1, 1)], changes=[ephemera.Change(1.9)])},
            '^key "change.at": .* whole number',
        ),
        (
            {"instance": "lognormal:5", "world": "replay", "trace": "x.csv"},
            "instance is 'lognormal:5'; a recording brings sources of its own, leave it out",
        ),
    ],
)
def test_wrong_arguments(arguments, words):
    with pytest.raises(ValueError, match=words):
        ephemera.CrawlEnv(**arguments)


@pytest.mark.parametrize(
    "arguments,words",
    [
        ({"moon": 1}, "unknown keyword 'moon'; allowed are budget, objective, world.* max_episode_steps, action"),
        ({"max_episode_steps": 1.5}, "max_episode_steps is 1.5; needed is a whole number"),
    ],
)
def test_wrong_types(arguments, words):
    with pytest.raises(TypeError, match=words):
        ephemera.CrawlEnv(**arguments)


def test_none_is_the_default():
    env = ephemera.CrawlEnv(**dict.fromkeys(("budget", "action", "overspend", "observation", "scaled", "items")))
    assert (env.observation_space, env.action_space) == (
        ephemera.CrawlEnv().observation_space,
        ephemera.CrawlEnv().action_space,
    )


def test_own_instance():
    sources = [
        ephemera.Source('a "b"\n\x7fé😀', 250, 0.7, 1),
        ephemera.Source("c", 250, 0.35, 0.7, window=9, cost=2),
    ]
    env = ephemera.CrawlEnv(ephemera.Instance(sources, budget=2))
    assert env.names == [s.name for s in sources]
    assert list(env.costs) == [1, 2] and env.budget == 2


def test_use_after_close():
    env = ephemera.CrawlEnv()
    with pytest.raises(gymnasium.error.ResetNeeded, match="before the first reset"):
        env.step(np.zeros(4))
    env.reset(seed=1)
    env.close()
    env.close()
    for use in (lambda: env.step(np.zeros(4)), env.reset):
        with pytest.raises(RuntimeError, match="closed"):
            use()


def test_pickling_is_refused():
    import pickle

    for env in (ephemera.CrawlEnv(), ephemera.CrawlVectorEnv(2)):
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(env)


def test_two_environments_at_once():
    """Environments in threads of their own give what each gives alone."""

    def play(seed, out):
        env = ephemera.CrawlEnv(max_episode_steps=500)
        env.reset(seed=seed)
        out[seed] = [env.step(np.eye(4)[k % 4])[1] for k in range(500)]

    alone, together = {}, {}
    for seed in range(4):
        play(seed, alone)
    threads = [threading.Thread(target=play, args=(seed, together)) for seed in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert alone == together


def test_threads_make_worlds_of_one_instance():
    """None reads a file that another is still writing."""
    failed, begin = [], threading.Barrier(4)

    def work():
        for k in range(100):
            begin.wait()
            try:
                ephemera.load_instance(ephemera.Instance([ephemera.Source(f"{k} {j}", 1, 0.5, 1) for j in range(300)]))
            except ephemera.Error as e:
                failed.append(str(e))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers")
def test_a_signal_handler_closes():
    """It runs in the midst of a step, whose thread holds the lock."""
    code = """
import signal, numpy as np, ephemera
for k in range(40):
    env = ephemera.CrawlEnv(); env.reset(seed=1)
    signal.signal(signal.SIGALRM, lambda *a: env.close())
    signal.setitimer(signal.ITIMER_REAL, 0.002 + k / 1e5)
    try:
        while True: env.step(np.zeros(4))
    except (RuntimeError, ephemera.Error) as e: assert "closed" in str(e)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_that_ends_leaves_the_instances_of_its_parent():
    code = """
import os, sys, ephemera
env = ephemera.CrawlEnv(ephemera.Instance([ephemera.Source("a", 1, 0.5, 1)]))
child = os.fork()
if child == 0:
    sys.exit()
os.waitpid(child, 0)
env.reset(seed=1)
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=60)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_fork():
    """A child that was forked after the first use, and one of its own, build environments of their own."""
    code = """
import os, sys, warnings, numpy as np, ephemera
warnings.simplefilter("ignore")
def played():
    env = ephemera.CrawlEnv(); env.reset(seed=1)
    return [env.step(np.eye(4)[k % 4])[1] for k in range(20)]
env = ephemera.CrawlEnv(); env.reset(seed=1)
want = played()
for depth in range(3):
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0
        assert played() == want
        os._exit(0)
    for use in (lambda: env.step(np.zeros(4)), env.reset):
        try: use()
        except RuntimeError as e: assert "make it anew" in str(e)
        else: os._exit(1)
    assert played() == want
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_asynchronous_as_gymnasium_starts_it():
    code = f"""
import gymnasium, numpy as np, ephemera
one = gymnasium.make("{ID}"); one.reset(seed=3)
envs = gymnasium.make_vec("{ID}", num_envs=2, vectorization_mode="async")
seen, info = envs.reset(seed=3)
for k in range(20):
    action = np.eye(4, dtype=np.float32)[[k % 4, 0]]
    assert envs.step(action)[1][0] == one.step(action[0])[1]
envs.close()
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=300)


def test_picture():
    with pytest.raises(gymnasium.error.ResetNeeded, match="render before the first reset"):
        ephemera.CrawlEnv(render_mode="rgb_array").render()
    env = gymnasium.make(ID, render_mode="rgb_array", scaled=False)
    env.reset(seed=1)
    for k in range(30):
        env.step(np.eye(4)[k % 2])
    picture = env.render()
    assert picture.shape == (240, 480, 3) and picture.dtype == np.uint8
    fresh, crawled, old = picture[0, 30 * 4 + 2], picture[0, 29 * 4 + 2], picture[200, 30 * 4 + 2]
    assert tuple(crawled) == (230, 120, 20) and fresh.sum() > old.sum()


def test_video(tmp_path):
    pytest.importorskip("moviepy")
    env = gymnasium.make(ID, max_episode_steps=20, render_mode="rgb_array")
    env = gymnasium.wrappers.RecordVideo(env, str(tmp_path), disable_logger=True)
    env.reset(seed=1)
    for _ in range(20):
        env.step(np.zeros(4))
    env.close()
    assert len(list(tmp_path.glob("*.mp4"))) == 1


def test_windows_of_a_recording(tmp_path):
    """They lie in the part on which the model is fitted, all sources were crawled just before, and seeds differ."""
    rows = [f"{'ab'[k % 2]},{3600 * k + 60}" for k in range(400)]
    (tmp_path / "r.csv").write_text("\n".join(["source,published_unix", *rows]) + "\n")
    world = dict(world="replay", trace=tmp_path / "r.csv", split=0.4, scaled=False, knowledge="online", items=True)
    env = ephemera.CrawlEnv(window=30, **world)
    firsts = set()
    for seed in range(5):
        seen, info = env.reset(seed=seed)
        assert list(seen[:2]) == [1, 1] and info["seed"] == seed
        steps = [env.step([1, 0]) for _ in range(30)]
        assert [s[3] for s in steps] == [False] * 29 + [True]
        firsts.add(tuple(s[1] for s in steps[:2]))
    assert len(firsts) > 1
    with pytest.raises(ephemera.Error, match="window is 200; allowed are 1 to"):
        ephemera.CrawlEnv(window=200, **world)
    with pytest.raises(ValueError, match="in world 'replay'"):
        ephemera.CrawlEnv(window=20)
    with pytest.raises(ValueError, match="held out"):
        ephemera.run("whittle", world="replay", trace=tmp_path / "r.csv", window=30)


def test_limit_of_epochs():
    """The registered limit, that of make and that of many worlds."""
    for keywords, epochs in (({}, 1000), ({"max_episode_steps": 30}, 30), ({"max_episode_steps": 2000}, 2000)):
        many = gymnasium.make_vec(ID, num_envs=2, **keywords)
        one = gymnasium.make(ID, **keywords)
        one.reset(seed=1), many.reset(seed=1)
        for k in range(1, epochs + 1):
            ends = one.step(np.zeros(4))[3], *many.step(np.zeros((2, 4)))[3]
            assert ends == (k == epochs,) * 3


def test_scaled_rewards():
    """They are shares of the unit, and interest is not."""
    raw, scaled = ephemera.CrawlEnv(scaled=False), ephemera.CrawlEnv()
    _, info = scaled.reset(seed=4)
    raw.reset(seed=4)
    assert info["seed"] == 4 and info["unit"] == info["bound"] == ephemera.bound("paper")
    assert info["whittle"] == ephemera.whittle("paper", world="mean")  # in which nothing is drawn
    windows = ephemera.CrawlEnv("lognormal:10:1:window", budget=3).reset(seed=4)[1]
    assert windows["unit"] == ephemera.bound("lognormal:10:1:window", 3) < 0.98 * windows["whittle"]
    assert windows["whittle"] == pytest.approx(windows["bound"], rel=0.02)
    for _ in range(20):
        a, b = raw.step(np.zeros(4)), scaled.step(np.zeros(4))
        assert a[1] == a[4]["interest"].sum() == b[4]["interest"].sum()
        assert b[1] == pytest.approx(a[1] / info["unit"])
    with pytest.raises(ValueError, match="option 'instance' is not taken"):
        raw.reset(options={"instance": "wide:4"})


@pytest.mark.parametrize(
    "how", [{}, {"knowledge": "observed"}, {"knowledge": "online"}, {"world": "mean"}, {"instance": "lognormal:6:*"}]
)
def test_costs_under_delay(how):
    """Rewards, and what is seen, are costs, below 0, in units of the amount of the bound: more is better there too."""
    how = {"instance": "paper", "budget": 2, "objective": "delay", "max_episode_steps": 50} | how
    raw, scaled = ephemera.CrawlEnv(**how, scaled=False), ephemera.CrawlEnv(**how)
    _, info = scaled.reset(seed=4)
    raw.reset(seed=4)
    bound = ephemera.bound(how["instance"].replace("*", "4"), 2, objective="delay")
    assert info["unit"] == -bound > 0 and (info["bound"] == bound or how.get("knowledge") == "observed")
    for k in range(50):
        scores = np.arange(len(raw.names)) * (k % 3 - 1.0)
        a, b = raw.step(scores), scaled.step(scores)
        assert a[0] in raw.observation_space and b[0] in scaled.observation_space
        assert b[1] == pytest.approx(a[1] / info["unit"]) and a[1] < 0 and a[3] == b[3] == (k == 49)


def test_what_waits_is_charged_where_the_environment_ends_an_episode():
    """`gymnasium.make` ends it from outside: then an agent that crawls nothing earns most, and a warning says so."""
    with pytest.warns(UserWarning, match="never charged, .* make it as .*max_episode_steps=1000"):
        gymnasium.make(ID, objective="delay")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for how in ({"objective": "delay", "max_episode_steps": 50}, {"objective": "deadline:24h"}):
            ephemera.CrawlEnv(**how)
        gymnasium.make_vec(ID, num_envs=2, objective="delay")


def test_exact_whittle_of_a_file_that_has_changed(tmp_path):
    file, found = tmp_path / "x.toml", []
    for rate in (1, 5):
        file.write_text(ephemera.Instance([ephemera.Source("a", rate, 1, 1)]).toml())
        found.append(ephemera.CrawlEnv(file).reset(seed=1)[1]["whittle"])
    assert found[1] == pytest.approx(5 * found[0])


def test_instance_of_each_seed():
    env = ephemera.CrawlEnv("mixed:6:*", scaled=False)
    fixed = ephemera.CrawlEnv("mixed:6:8", scaled=False)
    _, info = env.reset(seed=8)
    _, want = fixed.reset(seed=8)
    assert info["unit"] == want["unit"] and np.isnan(info["whittle"])
    assert [env.step(np.arange(6.0))[1] for _ in range(20)] == [fixed.step(np.arange(6.0))[1] for _ in range(20)]
    _, info = env.reset()
    assert info["unit"] != want["unit"] and info["seed"] not in (0, 8)


def test_items_are_what_learners_take():
    env = ephemera.CrawlEnv(knowledge="online", items=True, action="set")
    learner = ephemera.Learner(ephemera.catalogue()[0].name, knowledge="online")
    _, info = env.reset(seed=1)
    assert info["items"] == []
    for _ in range(50):
        marks = np.zeros(4, np.int8)
        marks[learner.select()] = 1
        _, _, _, _, info = env.step(marks)
        assert [c[0] for c in info["items"]] == list(np.flatnonzero(marks))
        for source, interest, (_, interests) in info["items"]:
            assert interest == info["interest"][source] == pytest.approx(interests.sum())
        learner.update(info["items"])
    assert learner.epoch == 50


def test_no_leak():
    """Steps and environments leave memory as it was."""
    code = """
import psutil, numpy as np, ephemera
def rss(): return psutil.Process().memory_info().rss / 2**20
def steps(n):
    env = ephemera.CrawlEnv(); env.reset(seed=1)
    for k in range(n): env.step(action)
    return env
action = np.zeros(4)
def make(n):
    for k in range(n):
        env = ephemera.CrawlEnv("lognormal:50", max_episode_steps=10); env.reset(seed=k); env.step(np.zeros(50))
        try: env.step(np.zeros(50) + np.nan)
        except ephemera.Error: pass
        if k % 2: env.close()
env = steps(50_000); make(200)
before = rss()
env = steps(300_000); make(500)
grown = rss() - before
assert grown < 4, f"{grown} MiB more"
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)
