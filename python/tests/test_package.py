"""What the installed package says of itself."""

import importlib.metadata
import subprocess
import sys

import ephemera


def test_metadata():
    about = importlib.metadata.metadata("ephemera")
    assert about["Version"] == ephemera.__version__ and about["License-Expression"] == "MIT"
    assert "The Ephemera authors" in about["Author"]


def test_names_are_known_without_import():
    code = """
import gymnasium, sys
assert "ephemera" not in sys.modules
env = gymnasium.make("ephemera:ephemera/TableI-v1")
env.reset(seed=1)
assert {"ephemera/" + n for n in sys.modules["ephemera"].TASKS} < set(gymnasium.registry)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_tasks():
    import gymnasium
    import pytest

    for name, world in ephemera.TASKS.items():
        if world.get("world") != "replay":
            env = gymnasium.make(f"ephemera/{name}")
            env.reset(seed=1)
            epochs = env.spec.max_episode_steps
            ends = [env.step(env.action_space.sample())[3] for _ in range(epochs)]
            assert ends == [False] * (epochs - 1) + [True]
            assert all(change < epochs for change in env.unwrapped._w.about["changes"] or [])
            assert len(ephemera.compare(["whittle"], **ephemera.task(name), steps=20, seeds=2).runs) == 2
    with pytest.raises(ValueError, match="there are TableI-v1"):
        ephemera.task("TableX-v1")
