"""Stable-Baselines3: its checker, and its agents in the scripts of peers/."""

import json
import subprocess
import sys
import warnings
from pathlib import Path

import gymnasium
import pytest
from test_env import FORMS, ID

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


def test_ppo_learns():
    """PPO on one world by the plain interface comes to earn most of what Whittle does."""
    from stable_baselines3 import PPO

    torch.set_num_threads(1)
    env = gymnasium.make(ID, steps=200, action="one")
    whittle = env.reset(seed=1)[1]["whittle"]
    paid = gymnasium.wrappers.TransformReward(env, lambda r: r / whittle - 1)
    model = PPO(
        "MlpPolicy", paid, n_steps=512, batch_size=128, learning_rate=2e-3, gamma=0.9, seed=1, device="cpu"
    )  # fmt: skip
    model.learn(10_000)
    seen, _ = env.reset(seed=1)
    total, over = 0.0, False
    while not over:
        seen, reward, _, over, _ = env.step(int(model.predict(seen, deterministic=True)[0]))
        total += reward
    assert total / 200 > 0.9 * whittle


@pytest.mark.parametrize("algorithm", ["PPO", "A2C", "DQN"])
def test_peers(tmp_path, algorithm):
    """The script of the comparison runs, keeps its rows and does not run them again."""
    script = Path(__file__).parents[1] / "peers" / "deep.py"
    out = tmp_path / "rows.jsonl"
    command = [sys.executable, script, out, "--steps", "20000", "--seeds", "1", "--algorithms", algorithm]
    command += ["--cells", "paper/2/model"]
    subprocess.run(command, check=True, timeout=300)
    (row,) = map(json.loads, out.read_text().splitlines())
    assert row["agent"] == algorithm and [c for c, _ in row["curve"]] == [1000, 2000, 5000, 10000, 20000]
    assert 0.3 < row["end"] < 1.01
    assert subprocess.run(command, check=True, timeout=300, capture_output=True).stdout == b""
