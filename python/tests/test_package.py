"""What the installed package says of itself."""

import importlib.metadata
import os
import shutil
import subprocess
import sys

import gymnasium
import pytest

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


IMPORTS = (
    "import ephemera.benchmark",
    "import ephemera; import ephemera.benchmark",
    "from ephemera.benchmark import Benchmark, benchmark; import ephemera; assert benchmark is ephemera.benchmark",
    "from ephemera import benchmark; import ephemera.benchmark; assert benchmark is ephemera.benchmark",
)
PLAYED = "ephemera.benchmark('whittle', tasks=['TableI-v1'], seeds=1, steps=1).to_latex()"


@pytest.mark.parametrize("code", IMPORTS)
def test_benchmark_is_the_function(code):
    """It stays one when the module of its name is imported."""
    subprocess.run([sys.executable, "-c", f"{code}; {PLAYED}"], check=True, timeout=300)


def test_benchmark_is_the_function_to_type_checkers(tmp_path):
    pytest.importorskip("mypy")
    for k, code in enumerate(IMPORTS):
        (tmp_path / f"a{k}.py").write_text(f"{code}; {PLAYED}\n")
    command = [sys.executable, "-m", "mypy", "--strict", *sorted(tmp_path.glob("*.py"))]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout


def test_tasks():
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


BROKEN = """
package main

import (
	"ephemera/env"
	"ephemera/experiments"
)

var numbers = make([]int, 3)

func init() {
	experiments.RegisterWorld("broken", func(in env.Instance, _ env.Level) (experiments.Scene, error) {
		s := experiments.MeanScene(in)
		s.Open = func(uint64, env.Level, bool) (env.World, error) {
			numbers[len(in.Sources)]++ // this panics
			return nil, nil
		}
		return s, nil
	})
}
"""


def test_what_another_go_program_registers(tmp_path):
    """Its learner and its world are known by their names, where the package loads that program as its library."""
    if not (MODULE / "docs" / "own").is_dir() or shutil.which("go") is None:
        skip_or_fail("the program is built from the repository, by Go")
    room = shutil.copytree(MODULE / "docs" / "own", tmp_path / "own")
    go_mod = (room / "go.mod").read_text()
    assert "=> ../.." in go_mod
    (room / "go.mod").write_text(go_mod.replace("=> ../..", f"=> {MODULE}"))
    (room / "broken.go").write_text(BROKEN)
    # As the package is built, so that what both have is compiled once.
    build = ["go", "build", "-buildmode=c-shared", "-trimpath", "-o", str(tmp_path / "libown.so")]
    subprocess.run(build, cwd=room, check=True)
    code = """
import ephemera, numpy as np, os

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

for use in (lambda: ephemera.CrawlEnv(world="broken").reset(seed=1), lambda: ephemera.run("greedy", world="broken")):
    try:
        use()
    except ephemera.Error as e:
        assert str(e).endswith("panic: runtime error: index out of range [4] with length 3"), e
        (stack,) = e.__notes__
        assert "broken.go" in stack and len(stack.splitlines()) > 4, stack
    else:
        raise AssertionError("nothing was raised")

bound = ephemera.bound()
os.chdir("..")
child = os.fork()  # it finds the library where its parent did
if child == 0:
    os._exit(0 if ephemera.bound() == bound else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    own = os.environ | {"EPHEMERA_LIBRARY": "./libown.so"}
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300, cwd=tmp_path, env=own)
    without = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert 'world is "noisy"' in without.stderr
    nowhere = os.environ | {"EPHEMERA_LIBRARY": "nowhere.so"}
    code = "import ephemera; ephemera.bound()"
    wrong = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=nowhere)
    assert wrong.stderr.splitlines()[-1] == (
        f"FileNotFoundError: EPHEMERA_LIBRARY is 'nowhere.so', and there is no file {tmp_path / 'nowhere.so'}"
    )
