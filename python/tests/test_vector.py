"""The environment of K worlds."""

import itertools
import subprocess
import sys
import threading
import warnings

import gymnasium
import numpy as np
import pytest

import ephemera
from ephemera import _library

ID = "ephemera/Crawl-v0"
K = 5
MODES = ("NextStep", "SameStep", "Disabled")


def equal(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) for k in a)
    return np.array_equal(a, b)


def part(seen, k):
    return {name: v[k] for name, v in seen.items()} if isinstance(seen, dict) else seen[k]


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"world": "mean"},
        {"world": "mean", "scaled": False, "instance": "wide:7", "budget": 3},
        {"scaled": False},
        {"instance": "mixed:5:*"},
        {"observation": "dict"},
        {"action": "one"},
        {"action": "set"},
    ],
    ids=str,
)
def test_same_as_single(form):
    """World k is the single world of seed + k, through ends of episodes."""
    form = {**form, "max_episode_steps": 30}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vector = gymnasium.make_vec(ID, num_envs=K, **form)
    single = [ephemera.CrawlEnv(**form) for _ in range(K)]
    seen, info = vector.reset(seed=9)
    assert seen in vector.observation_space
    over = np.zeros(K, bool)
    for k, env in enumerate(single):
        first, alone = env.reset(seed=9 + k)
        assert equal(first, part(seen, k))
        assert all(np.array_equal(alone[name], info[name][k], equal_nan=True) for name in alone)
    vector.action_space.seed(1)
    for _ in range(100):
        action = vector.action_space.sample()
        before = over
        seen, reward, terminated, over, info = vector.step(action)
        assert not terminated.any() and reward.dtype == np.float64 and over.dtype == np.bool_
        for k, env in enumerate(single):
            if before[k]:
                assert reward[k] == 0 and equal(env.reset()[0], part(seen, k))
                continue
            one, earned, _, end, alone = env.step(action[k])
            assert equal(one, part(seen, k)) and earned == reward[k] and end == over[k]
            assert equal(alone["interest"], info["interest"][k]) and equal(alone["crawled"], info["crawled"][k])


def test_autoreset_in_the_same_step():
    a = ephemera.CrawlVectorEnv(K, max_episode_steps=30, autoreset_mode="SameStep")
    b = ephemera.CrawlVectorEnv(K, max_episode_steps=30)
    a.reset(seed=1), b.reset(seed=1)
    action = np.zeros((K, 4), np.float32)
    for _ in range(70):
        seen, reward, _, over, info = a.step(action)
        want, earned, _, end, _ = b.step(action)
        assert np.array_equal(reward, earned) and np.array_equal(over, end)
        if over.all():
            assert np.array_equal(info["final_obs"], want) and info["_final_obs"].all()
            want = b.step(action)[0]
        assert np.array_equal(seen, want)


def test_reset_of_some_worlds():
    env = ephemera.CrawlVectorEnv(K, max_episode_steps=30, autoreset_mode="Disabled", scaled=False)
    first, _ = env.reset(seed=1)
    action = np.zeros((K, 4))
    for _ in range(30):
        seen, _, _, over, _ = env.step(action)
    assert over.all()
    with pytest.raises(ephemera.Error, match="world 0: step after the end of the episode"):
        env.step(action)
    mask = np.arange(K) % 2 == 0
    after, _ = env.reset(options={"reset_mask": mask})
    assert np.array_equal(after[mask], first[mask]) and np.array_equal(after[~mask], seen[~mask])
    with pytest.raises(ephemera.Error, match="world 1: step after the end"):
        env.step(action)
    for wrong in (mask[:2], mask.astype(int)):
        with pytest.raises(ValueError, match="reset_mask"):
            env.reset(options={"reset_mask": wrong})


def test_rows_are_used_again():
    """What is handed out stays as it is; what nobody holds is written again, with no crawls of before."""
    env = ephemera.CrawlVectorEnv(K, world="mean")
    env.reset(seed=1)
    held = []
    for step in range(2000):
        _, _, _, _, info = env.step(np.roll(np.eye(K, 4, dtype=np.float32), step, axis=1))
        assert (info["crawled"].sum(axis=1) == 1).all() and ((info["interest"] > 0) == info["crawled"]).all()
        if step % 300 == 0:
            held.append((info["interest"], info["interest"].copy()))
    assert all(np.array_equal(a, b) for a, b in held)
    assert len(env._w.blocks) <= 4 and not held[0][0].flags.writeable


def test_library_of_another_version(monkeypatch):
    """A library that was built from other code is refused before anything is written."""
    ask = _library.ask

    def older(handle, name, *arguments, **keywords):
        answer = ask(handle, name, *arguments, **keywords)
        if name == "describe":
            answer["Parts"] = [p for p in answer["Parts"] if p["Name"] != "unit"]
        return answer

    monkeypatch.setattr(_library, "ask", older)
    with pytest.raises(RuntimeError, match="of another version than this package: its worlds do not write unit"):
        ephemera.CrawlVectorEnv(2)


def test_seeds():
    env = ephemera.CrawlVectorEnv(2)
    action = np.eye(4)[:2]

    def rewards(**how):
        env.reset(**how)
        return [tuple(env.step(action)[1]) for _ in range(5)]

    first = rewards(seed=[3, 4])
    assert rewards(seed=3) == first != rewards()
    assert [r[0] for r in rewards(seed=[3, None])] == [r[0] for r in first]
    for seed, error, words in [
        ([1, 2, 3], ValueError, "3 seeds for 2 worlds"),
        ([1, -2], ValueError, "seed is -2; allowed are 0 to 9223372036854775807"),
        (2**63 - 1, ValueError, "seed is 9223372036854775808"),
        ([1, 1.5], TypeError, "seed is 1.5; needed is a whole number"),
    ]:
        with pytest.raises(error, match=words):
            env.reset(seed=seed)
    assert list(env.reset(seed=np.int64(2**62))[1]["seed"]) == [2**62, 2**62 + 1]
    worlds = gymnasium.make_vec(ID, num_envs=16).reset(seed=1)
    assert len({tuple(world) for world in worlds[0]}) == 1 and len(set(worlds[1]["seed"].tolist())) == 16


def test_wrong_actions():
    env = ephemera.CrawlVectorEnv(2)
    with pytest.raises(gymnasium.error.ResetNeeded, match="before the first reset"):
        env.step(np.zeros((2, 4)))
    env.reset(seed=1)
    for wrong in (np.zeros((2, 3)), np.zeros(8), np.zeros((4, 2)), 0.0):
        with pytest.raises(ValueError, match="shape"):
            env.step(wrong)
    with pytest.raises(TypeError):
        env.step(np.zeros((2, 4), complex))
    with pytest.raises(ephemera.Error, match="world 1: the score of source 2 is NaN"):
        env.step(np.array([[0, 0, 0, 0], [0, 0, np.nan, 0]]))
    strided = np.zeros((2, 8), np.float32)[:, ::2]
    strided[:, 3] = 1
    assert env.step(strided)[4]["crawled"][:, 3].all()
    env.close()
    with pytest.raises(RuntimeError, match="closed"):
        env.step(strided)


@pytest.mark.parametrize("closed", [False, True])
def test_threads_share_an_environment(closed):
    """Each call has arrays of its own, whoever calls meanwhile; some calls fail, and it may be closed."""
    env = ephemera.CrawlVectorEnv(64, instance="lognormal:40")
    unit = env.reset(seed=1)[1]["unit"]
    wrong, said, errors = np.full((64, 40), np.nan), [], []

    def work(number):
        actions = np.random.default_rng(number).random((64, 40))
        try:
            for k in itertools.count() if closed else range(150):
                if k % 10 == number:
                    with pytest.raises(ephemera.Error, match="world 0: the score of source 0 is NaN"):
                        env.step(wrong)
                _, reward, _, _, info = env.step(actions)
                np.testing.assert_allclose(reward * unit, info["interest"].sum(axis=1))
                assert (info["crawled"].argmax(axis=1) == actions.argmax(axis=1)).all()
        except RuntimeError as e:
            said.append(str(e))
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for t in threads:
        t.start()
    if closed:
        env.close()
    for t in threads:
        t.join()
    assert not errors
    assert said == ["the environment is closed"] * (4 * closed)


def episodes(envs, mode):
    """Play three episodes; the observations, rewards and ends of their steps, and the seeds that infos name."""
    seen, info = envs.reset(seed=1)
    steps, seeds, ended = [(seen,)], [info["seed"]], 0
    action = np.eye(4, dtype=np.float32)[np.arange(envs.num_envs) % 4]
    while ended < 3:
        *step, info = envs.step(action)
        steps.append(step)
        if "seed" in info:
            seeds.append(info["seed"])
        if step[3].all():
            ended += 1
            if mode == "Disabled":
                seen, info = envs.reset(options={"reset_mask": np.ones(envs.num_envs, bool)})
                steps.append((seen,))
                seeds.append(info["seed"])
    return steps, seeds


def make_single():
    return gymnasium.make(ID, max_episode_steps=5)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["SyncVectorEnv", "AsyncVectorEnv", "sync", "async"])
def test_vector_environments_of_gymnasium(kind, mode):
    """They go on from episode to episode as this package's own does, under seeds that an int64 holds."""
    how = {"autoreset_mode": gymnasium.vector.AutoresetMode(mode)}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*fork")
        if kind.endswith("Env"):
            envs = getattr(gymnasium.vector, kind)([make_single] * 3, **how)
        else:
            make = {"max_episode_steps": 5, "vectorization_mode": kind, "vector_kwargs": how}
            envs = gymnasium.make_vec(ID, num_envs=3, **make)
    try:
        steps, seeds = episodes(envs, mode)
    finally:
        envs.close(terminate=True)
    own = gymnasium.make_vec(ID, num_envs=3, max_episode_steps=5, autoreset_mode=mode)
    for got, want in zip(steps, episodes(own, mode)[0], strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(got, want, strict=True))
    assert len(seeds) == {"NextStep": 3, "SameStep": 4, "Disabled": 4}[mode]
    assert len(np.unique(seeds)) == 3 * len(seeds) and np.min(seeds) >= 0


def test_seeds_of_later_episodes():
    """They are below 2^63, so that an array of int64 holds them."""
    env = ephemera.CrawlVectorEnv(64, max_episode_steps=1, autoreset_mode="Disabled")
    seeds = [env.reset(seed=1)[1]["seed"]]
    for _ in range(5):
        env.step(np.zeros((64, 4)))
        seeds.append(env.reset(options={"reset_mask": np.ones(64, bool)})[1]["seed"])
    assert np.array(seeds).dtype == np.int64 and len(np.unique(seeds)) == 6 * 64 and np.min(seeds) >= 0


def test_left_open():
    """Worlds that nobody closed, or that were never made, say nothing more when Python ends."""
    program = """if True:
        import ephemera
        try:
            ephemera.CrawlVectorEnv(0)
        except ValueError as e:
            print(e)
        env = ephemera.CrawlVectorEnv(2)
        env.reset(seed=1)
    """
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert "num_envs is 0; allowed are 1 to" in done.stdout and done.stderr == ""


def test_more_threads_than_worlds():
    env = ephemera.CrawlVectorEnv(2, threads=10**12)
    assert env.reset(seed=1)[0].shape == (2, 12)
