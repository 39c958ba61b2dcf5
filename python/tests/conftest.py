"""What the tests share."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

MODULE = Path(__file__).resolve().parents[2]


def skip_or_fail(why):
    """Skip a test for want of something; where all is required, fail."""
    if os.environ.get("EPHEMERA_REQUIRE_ALL") == "1":
        pytest.fail(why)
    pytest.skip(why)


@pytest.fixture(scope="session")
def command(tmp_path_factory):
    """Return a function that runs a Go command of the repository and returns what it prints."""
    if not (MODULE / "cmd").is_dir() or shutil.which("go") is None:
        skip_or_fail("the Go commands are built from the repository, by Go")
    bin = tmp_path_factory.mktemp("bin")
    built = set()

    def run(name, *args):
        if name not in built:
            subprocess.run(["go", "build", "-o", str(bin / name), f"./cmd/{name}"], cwd=MODULE, check=True)
            built.add(name)
        out = subprocess.run([bin / name, *map(str, args)], capture_output=True, text=True, check=True).stdout
        return json.loads(out) if "json" in args else out

    return run
