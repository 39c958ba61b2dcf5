"""The notebooks run, and show what they say."""

import re
import tempfile
from pathlib import Path

import pytest
from test_crawler import fetch

README = Path(__file__).parents[1] / "README.md"
EXAMPLES = README.parent / "examples"


def executed(name, steps=None):
    """Execute a notebook, which is stored with its outputs; the text of its outputs, and how many are pictures.

    With steps, its comparisons of 2000 epochs have so many.
    """
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    pytest.importorskip("matplotlib")
    book = nbformat.read(EXAMPLES / name, 4)
    stored = [bool(c.outputs) for c in book.cells if c.cell_type == "code"]
    if steps:
        assert any("steps=2000" in c.source for c in book.cells)
        for cell in book.cells:
            cell.source = cell.source.replace("steps=2000", f"steps={steps}")
    with tempfile.TemporaryDirectory() as room:
        nbclient.NotebookClient(book, timeout=300, resources={"metadata": {"path": room}}).execute()
    cells = [c for c in book.cells if c.cell_type == "code"]
    assert stored == [bool(c.outputs) for c in cells], "the notebook is stored with its outputs"
    outputs = [o for c in cells for o in c.outputs]
    said = [o.get("text") or o.get("data", {}).get("text/html", "") for o in outputs]
    return [x for x in said if x], sum("image/png" in o.get("data", {}) for o in outputs)


def test_quickstart():
    said, pictures = executed("quickstart.ipynb")
    assert pictures == 2 and any("Whittle 260.4, bound 260.4" in x for x in said) and any("longest" in x for x in said)


def test_first_policy():
    """Its policies come in the order that the text says, and its table is one for a paper."""
    said, pictures = executed("first_policy.ipynb", steps=400)
    order = [x for x in re.findall(r"<td>([a-z /]+)</td>", said[0]) if x != "–"]
    assert order == ["whittle", "lspe/learned", "lspe/learning", "in turn", "found"] and pictures == 1
    assert said[1].startswith("\\begin{tabular}") and re.findall(r"<td>(whittle|root|found)</td>", said[2])[1] == "root"


def test_readme(command, tmp_path, monkeypatch):
    """The README's Python runs, block after block, with few epochs."""
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    command("train", "-steps", 100, "-out", "DIR")
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.M | re.S)
    assert len(blocks) == 7
    names = {"fetch": fetch}
    for block in blocks:
        exec(re.sub(r"\bsteps=[\d_]+", "steps=100", block), names)
    assert names["learner"].names == ["news", "blog"] and names["results"].kind == "train"
