"""The way of somebody new, as the README has it, line by line."""

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ephemera

README = Path(__file__).parents[1] / "README.md"
WHEEL = os.environ.get("EPHEMERA_WHEEL")  # of the directory dist, to be installed where there is no Go


def played(policy, name):
    """Return what a policy earns in a task as a share of exact Whittle, run by run, in the mean of five seeds."""
    how = ephemera.task(name) | {"steps": ephemera.EPOCHS[name]}
    seeds = ephemera.TEST_SEEDS[:5]
    earned = [ephemera.run(policy, seed=s, **how).outcome.reward / ephemera.whittle(seed=s, **how) for s in seeds]
    return np.mean(earned)


@pytest.mark.skipif(sys.platform == "win32", reason="the lines are those of a Unix shell")
def test_from_nothing_to_a_table(tmp_path):
    (lines,) = re.findall(r"^## From nothing to a table.*?^```sh\n(.*?)^```", README.read_text(), re.M | re.S)
    room, install = "python3 -m venv room\n. room/bin/activate\n", "pip install dist/ephemera-*.whl\n"
    assert lines.startswith(room + install)
    path = os.pathsep.join(d for d in os.environ["PATH"].split(os.pathsep) if not Path(d, "go").exists())
    assert shutil.which("go", path=path) is None
    if WHEEL:
        (tmp_path / "dist").mkdir()
        shutil.copy(WHEEL, tmp_path / "dist")
    else:  # what is installed stands for the wheel
        lines = lines.replace(room + install, "").replace("python ", f"'{sys.executable}' ")
    env = os.environ | {"PATH": path, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(["sh", "-ec", lines], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    table = (tmp_path / "table.tex").read_text()
    assert done.stdout.endswith(table) and table.startswith("\\begin{tabular}{lrrrrr}")
    head, *rows = [line.removesuffix(r" \\").split(" & ") for line in table.splitlines() if "&" in line]
    assert head[1:4] == ["Quiet50-v2", "Tight20-v2", "Hump50-v2"]
    shares = {row[0]: [float(cell.partition(" ")[0]) for cell in row[1:4]] for row in rows}
    assert list(shares) == sorted(shares, key=lambda p: -sum(shares[p]))
    (lspe,) = ephemera.leaderboard(track="harvest", policies=["lspe"]).rows
    assert shares["lspe"] == [round(100 * lspe["tasks"][name]["share"], 1) for name in head[1:4]]
    own = runpy.run_path(str(tmp_path / "mine.py"))
    for policy in ("Mine", "Cheapest"):
        for name, share in zip(head[1:4], shares[policy], strict=True):
            assert share == pytest.approx(100 * played(own[policy], name), abs=0.051), name
    assert len(list((tmp_path / "kept").glob("*/*/runs/*.json"))) == 30
    before = {f: f.stat().st_mtime_ns for f in (tmp_path / "kept").glob("*/*/runs/*.json")}
    again = lines[lines.index("for policy") :]
    if not WHEEL:
        done = subprocess.run(["sh", "-ec", again], cwd=tmp_path, env=env, capture_output=True, text=True)
        assert done.stdout.endswith(table)
        assert before == {f: f.stat().st_mtime_ns for f in before}
        mine = (tmp_path / "mine.py").read_text()
        (tmp_path / "mine.py").write_text(mine.replace("view.age / self.costs\n", "view.age / self.costs**2\n"))
        done = subprocess.run(["sh", "-ec", again], cwd=tmp_path, env=env, capture_output=True, text=True)
        assert [line.split(" & ")[0] for line in done.stdout.splitlines()].count("Cheapest") == 1  # no earlier version
        assert done.stdout != table
