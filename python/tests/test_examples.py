"""The notebooks run, and show what they say."""

import re
import tempfile
from pathlib import Path

import pytest
from test_crawler import fetch

import ephemera

README = Path(__file__).parents[1] / "README.md"
EXAMPLES = README.parent / "examples"


NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e-?\d+)?")


def texts(book):
    """Return what the cells of a notebook show, all but pictures."""
    shown = [o for c in book.cells if c.cell_type == "code" for o in c.outputs]
    return [t for o in shown for t in (o.get("text"), *map(o.get("data", {}).get, ("text/plain", "text/html"))) if t]


@pytest.mark.parametrize(("name", "pictures"), [("quickstart", 2), ("first_policy", 1)])
def test_notebooks_are_stored_as_they_run(name, pictures):
    """What they print is stored in them; numbers to three digits, as processors differ in the last."""
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    pytest.importorskip("matplotlib")
    book = nbformat.read(EXAMPLES / f"{name}.ipynb", 4)
    stored, drawn = texts(book), str(book).count("'image/png'")
    with tempfile.TemporaryDirectory() as room:
        nbclient.NotebookClient(book, timeout=600, resources={"metadata": {"path": room}}).execute()
    now = texts(book)
    assert len(now) == len(stored) and str(book).count("'image/png'") == drawn == pictures
    for a, b in zip(now, stored, strict=True):
        assert NUMBER.sub("#", a).split() == NUMBER.sub("#", b).split(), a
        assert [*map(float, NUMBER.findall(a))] == pytest.approx([*map(float, NUMBER.findall(b))], rel=1e-3), a


def test_readme(command, tmp_path, monkeypatch):
    """The README's Python runs, block after block, with few epochs."""
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    command("train", "-steps", 100, "-out", "DIR")
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.M | re.S)
    assert len(blocks) == 8
    names = {"fetch": fetch}
    for block in blocks:
        exec(re.sub(r"\bsteps=[\d_]+", "steps=100", block), names)
    lspe = ephemera.leaderboard(track="harvest", policies=["lspe"]).rows[0]["tasks"]["Tight20-v2"]["share"]
    shares = [r["learning"]["of_whittle"] for r in names["records"][5:]]
    assert sum(shares) / 5 == pytest.approx(lspe, abs=1e-6), f"{shares} of Tight20-v2; the published mean is {lspe}"
    assert names["learner"].names == ["news", "blog"] and names["results"].kind == "train"
