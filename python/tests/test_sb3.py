"""Stable-Baselines3: its checker, and its agents in the scripts of peers/."""

import importlib.util
import json
import subprocess
import sys
import warnings
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from test_env import FORMS, ID

import ephemera
from conftest import skip_or_fail

try:
    import stable_baselines3
    import torch
except ImportError:
    stable_baselines3 = None


@pytest.fixture(autouse=True)
def installed():
    if stable_baselines3 is None:
        skip_or_fail("Stable-Baselines3 and PyTorch are not installed")


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_checker(form):
    from stable_baselines3.common.env_checker import check_env

    env = gymnasium.make(ID, **form)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env)
    env.close()


def test_ppo_by_its_defaults():
    """PPO as people type it comes to earn most of what Whittle does, also next to it in a table."""
    from stable_baselines3 import PPO

    torch.set_num_threads(1)
    model = PPO("MlpPolicy", ID, seed=1, device="cpu").learn(14_000)
    table = ephemera.compare({"whittle": "whittle", "PPO": ephemera.gym_policy(model)}, steps=500, seeds=3)
    assert table["PPO"]["of_whittle"] > 0.95


def test_many_worlds_of_sb3():
    from stable_baselines3.common.env_util import make_vec_env

    seen = make_vec_env(ID, n_envs=2, seed=1).reset()
    assert seen.shape == (2, 12)


def test_ppo_of_sets():
    from stable_baselines3 import PPO

    torch.set_num_threads(1)
    env = gymnasium.make(ID, action="set", instance="lognormal:6", budget=2, max_episode_steps=50)
    model = PPO("MlpPolicy", env, n_steps=64, seed=1, device="cpu").learn(128)
    played = ephemera.run(ephemera.gym_policy(model, action="set"), "lognormal:6", budget=2, steps=100)
    assert 0 < played.outcome.crawls <= 2 and played.outcome.over == 0


def make_short():
    return gymnasium.make(ID, max_episode_steps=5)


@pytest.mark.parametrize("kind", ["DummyVecEnv", "SubprocVecEnv"])
def test_episodes_in_worlds_of_sb3(kind):
    """Its own sets of worlds, in processes too, go on from episode to episode."""
    envs = getattr(stable_baselines3.common.vec_env, kind)([make_short] * 2)
    envs.seed(1)
    envs.reset()
    try:
        seeds = [[info["seed"] for info in envs.reset_infos]]
        for _ in range(3):
            for k in range(5):
                seen, _, over, _ = envs.step(np.zeros((2, 4), np.float32))
                assert over.tolist() == [k == 4] * 2 and seen.shape == (2, 12)
            seeds.append([info["seed"] for info in envs.reset_infos])
    finally:
        envs.close()
    assert len(np.unique(seeds)) == 8 and 0 <= np.min(seeds) <= np.max(seeds) < 2**63


@pytest.fixture
def script(monkeypatch, capsys):
    """Return a function that calls the script of the tasks with arguments and returns what it says."""
    module = peers()

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["measure.py", *map(str, arguments)])
        module.main()
        return capsys.readouterr().out

    return call


def measured(script, out, algorithm, epochs):
    """Call the script of the tasks for one agent; what it says, and the rows of the file."""
    said = script(out, "--epochs", epochs, "--seeds", 1, "--agents", algorithm, "--tasks", "TableIMean-v1")
    ((task, agents),) = json.loads(out.read_text()).items()
    assert task == "TableIMean-v1" and set(agents) == {"whittle", algorithm}
    for of in agents.values():
        assert of["made"]["settings"] and of["made"]["check"]
        assert len(of["rows"]) == 1
    assert agents["whittle"]["rows"][0]["share"] == 1 and 0 < agents[algorithm]["rows"][0]["share"] < 1.01
    assert len(agents[algorithm]["rows"][0]["curve"]) == 10
    assert [len(ends) for ends in agents[algorithm]["rows"][0]["held"].values()] == [3] * (1 + (algorithm != "DQN"))
    return said, agents


@pytest.mark.parametrize("algorithm", ["A2C", "DQN"])
def test_peers(tmp_path, script, algorithm):
    """The script of the tasks trains and tests an agent."""
    said, agents = measured(script, tmp_path / "tasks.json", algorithm, 3000)
    assert len(said.splitlines()) == 2 and agents[algorithm]["made"]["epochs"] == 3000


def test_shared_ppo_begins_near_a_neutral_policy():
    """Its first scores lie within the bounds at which they are cut, so that an order of sources can be learned."""
    module = peers()
    task = ephemera.task("Mixed20-v1")
    kind, _, how = module.settings(task)["shared PPO"]
    env = module.Worlds(8, 200, {**task, "action": "scores"})
    policy = kind(module.shared(), env, seed=1, device="cpu", **how | {"batch_size": 128}).policy
    seen = torch.as_tensor(env.reset())
    with torch.no_grad():
        scores, worth = policy.mlp_extractor(seen)
        np.testing.assert_allclose(scores, policy.mlp_extractor.forward_actor(seen), 1e-4, 1e-6)
        np.testing.assert_allclose(worth, policy.mlp_extractor.forward_critic(seen), 1e-4, 1e-6)
    env.close()
    assert scores.shape == (8, 20) and worth.shape == (8, 1)
    assert scores.std() > 0 and scores.abs().max() < 0.1


def test_trainings_of_two_seeds_share_no_world(monkeypatch):
    """Where they are apart, each seed has worlds of its own, and none is one of the test."""
    module = peers()
    task = ephemera.task("Mixed20-v1")
    begun = []
    reset = ephemera.CrawlVectorEnv.reset

    def keep(env, **how):
        seen, info = reset(env, **how)
        if how.get("seed") is not None:
            begun.append(set(info["seed"].tolist()))
        return seen, info

    monkeypatch.setattr(ephemera.CrawlVectorEnv, "reset", keep)
    for apart in (module.apart("shared PPO", task), module.apart("PPO", task)):
        for seed in (1, 2):
            env = module.Worlds(16, 200, {**task, "action": "scores"}, apart)
            env.seed(seed)
            env.reset()
            env.close()
    one, two, *near = begun
    assert len(one | two) == 32 and len(near[0] & near[1]) == 15
    tests = {module.TEST + k for k in range(10)} | {module.HELD + k for k in range(module.WORLDS)}
    assert not tests & (one | two)


def test_rows_of_peers(tmp_path, script):
    """The script of the tasks keeps its rows, and makes those again that were made in another way."""
    out = tmp_path / "tasks.json"
    said, agents = measured(script, out, "PPO", 5000)
    assert {of["made"]["version"] for of in agents.values()} == {ephemera.__version__}
    assert len(said.splitlines()) == 2 and agents["PPO"]["made"]["epochs"] == 5000
    assert measured(script, out, "PPO", 5000) == ("", agents)
    said, shorter = measured(script, out, "PPO", 3000)
    assert "what PPO earns is stale" in said and shorter["PPO"]["made"]["epochs"] == 3000
    kept = json.loads(out.read_text())
    for of in kept["TableIMean-v1"].values():
        of["made"]["version"] = "0.0.1"  # as of another version, in which all was the same
    out.write_text(json.dumps(kept))
    assert measured(script, out, "PPO", 3000) == ("", kept["TableIMean-v1"])
    for of in kept["TableIMean-v1"].values():
        of["made"]["check"][0] += 1  # as of another world
    out.write_text(json.dumps(kept))
    said, again = measured(script, out, "PPO", 3000)
    assert said.count("is stale") == 2 and again["whittle"] == shorter["whittle"]
    assert again["PPO"]["rows"][0]["share"] == shorter["PPO"]["rows"][0]["share"]


def test_peers_say_whether_their_training_was_flat():
    """It is flat when each of its last two tenths brought less than a point, which noisy seeds do not show."""
    module = peers()
    last = {"flat": [0.900, 0.901], "rising": [0.93, 0.93], "noisy": [0.90, 0.90]}
    noise = {"flat": 0.001, "rising": 0.001, "noisy": 0.05}
    for kind, said in {"flat": "yes", "rising": "no", "noisy": "no"}.items():
        ends = [[0.9, last[kind][0], last[kind][1] + noise[kind] * (-1) ** k] for k in range(10)]
        seen = [{"curve": [0.5] * 7 + end} for end in ends]
        # In worlds kept aside, as the agent is played that earns more in the test.
        test = {"share": 0.8, "drawn": 0.9, "curve": [0.4] * 10}
        held = [{**test, "held": {"share": [0.1, 0.2, 0.3], "drawn": end}} for end in ends]
        for rows, mark in ((seen, " †"), (held, "")):
            line = module.curves({"TableI-v1": {"PPO": {"made": {"epochs": 5000}, "rows": rows}}}).splitlines()[-1]
            three = f"90.0, {100 * last[kind][0]:.1f}, {100 * last[kind][1]:.1f}"
            start = f"| TableI-v1 | PPO | 10 | 5,000 | {three}{mark} |"
            assert line.startswith(start) and line.endswith(f"| {said} |"), line


def test_the_tables_of_the_page_are_what_the_file_says():
    """Nothing is entered by hand."""
    module = peers()
    text = (module.HERE / "README.md").read_text("utf-8")
    assert module.written(text, json.loads((module.HERE / "tasks.json").read_text("utf-8"))) == text


def test_the_picture_of_the_page_has_a_line_for_each_training(tmp_path, monkeypatch):
    """A panel for each task, and in it the agents that were trained for it."""
    from matplotlib import pyplot
    from matplotlib.figure import Figure

    module = peers()
    found = json.loads((module.HERE / "tasks.json").read_text("utf-8"))
    drawn = {}
    save = Figure.savefig

    def keep(figure, file, **how):
        drawn.update({axes.get_title(loc="left"): len(axes.lines) for axes in figure.axes})
        save(figure, file, **how)

    monkeypatch.setattr(Figure, "savefig", keep)
    module.draw(found, tmp_path / "training.svg")
    agents = module.AGENTS[2:]
    curves = {name: sum("curve" in json.dumps(found[name].get(agent)) for agent in agents) for name in module.TASKS}
    assert drawn == {name.removesuffix("-v1"): n for name, n in curves.items()} and sum(curves.values()) > 20
    assert not pyplot.get_fignums()
    once = (tmp_path / "training.svg").read_bytes()
    module.draw(found, tmp_path / "training.svg")
    assert (tmp_path / "training.svg").read_bytes() == once and module.NIGHT.encode() in once


def peers():
    """Return the script of the tasks as a module."""
    script = Path(__file__).parents[1] / "peers" / "measure.py"
    spec = importlib.util.spec_from_file_location("measure", script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_peers_of_before(tmp_path):
    """Rows of a file that does not say how they were made stay until theirs are measured again."""
    script = Path(__file__).parents[1] / "peers" / "measure.py"
    out = tmp_path / "tasks.json"
    rows = [{"seed": 1, "share": 0.9}]
    out.write_text(json.dumps({"TableIMean-v1": {"whittle": rows, "PPO": rows}}))
    command = [sys.executable, script, out, "--seeds", "1", "--agents", "lspe", "--tasks", "TableIMean-v1"]
    done = subprocess.run(command, check=True, timeout=300, capture_output=True, text=True)
    assert "TableIMean-v1: what whittle earns is stale" in done.stdout
    agents = json.loads(out.read_text())["TableIMean-v1"]
    assert agents["whittle"]["made"]["version"] == ephemera.__version__ and agents["whittle"]["rows"] != rows
    assert agents["PPO"] == {"made": {}, "rows": rows}
    page = peers().table({"TableIMean-v1": agents})
    assert "| 90.0 (90.0–90.0, 1 seed) ° |" in page and "Rows with ° are of before and stale." in page


def test_peers_of_two_processes(tmp_path):
    """Each keeps the rows that the other has put into the file since, also those of the same agent."""
    module, how = peers(), {"version": "1"}
    one, other = (module.Kept(tmp_path / "tasks.json") for _ in range(2))
    for kept, agent, seed in ((one, "PPO", 1), (other, "A2C", 1), (other, "PPO", 2), (one, "PPO", 3)):
        kept.put("task", agent, [*kept.rows("task", agent, how), {"seed": seed}])
    found = json.loads((tmp_path / "tasks.json").read_text())["task"]
    assert {agent: [r["seed"] for r in of["rows"]] for agent, of in found.items()} == {"PPO": [1, 2, 3], "A2C": [1]}
    assert [f.name for f in tmp_path.iterdir()] == ["tasks.json"]
