"""What the installed package says of itself."""

import importlib.metadata
import os
import shutil
import subprocess
import sys

import ephemera
from conftest import MODULE, skip_or_fail


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
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


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


def test_what_another_go_program_registers(tmp_path):
    """Its learner and its world are known by their names, where the package loads that program as its library."""
    if not (MODULE / "docs" / "own").is_dir() or shutil.which("go") is None:
        skip_or_fail("the program is built from the repository, by Go")
    library = tmp_path / "libown.so"
    build = ["go", "build", "-buildmode=c-shared", "-o", str(library)]
    subprocess.run(build, cwd=MODULE / "docs" / "own", check=True)
    code = """
import ephemera, numpy as np

def rewards(**world):
    env = ephemera.CrawlEnv(**world)
    env.reset(seed=3)
    return [env.step(np.eye(4)[k % 4])[1] for k in range(100)]

assert rewards(world="noisy") == rewards(marks="per-item") != rewards()
assert ephemera.CrawlEnv(world="noisy").reset(seed=1)[1]["whittle"] > 0
table = ephemera.compare(["tracker", "whittle"], world="noisy", knowledge="online", steps=3000, seeds=3)
assert .7 < table["tracker/learned"]["of_whittle"] < 1
learner = ephemera.Learner("tracker", step=0.2)
learner.save("tracker")
assert ephemera.Learner.load("tracker").name == "tracker"
"""
    own = os.environ | {"EPHEMERA_LIBRARY": str(library)}
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300, cwd=tmp_path, env=own)
    without = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert 'world is "noisy"' in without.stderr
