"""The notebook runs, and shows what it says."""

import re
from pathlib import Path

import pytest
from test_crawler import fetch

README = Path(__file__).parents[1] / "README.md"
NOTEBOOK = Path(__file__).parents[1] / "examples" / "quickstart.ipynb"


def test_quickstart():
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    pytest.importorskip("matplotlib")
    book = nbformat.read(NOTEBOOK, 4)
    stored = [bool(c.outputs) for c in book.cells if c.cell_type == "code"]
    nbclient.NotebookClient(book, timeout=300).execute()  # raises what a cell raises
    cells = [c for c in book.cells if c.cell_type == "code"]
    assert stored == [bool(c.outputs) for c in cells], "the notebook is stored with its outputs"
    pictures = [o for c in cells for o in c.outputs if "image/png" in o.get("data", {})]
    assert len(pictures) == 2
    printed = "".join(o.get("text", "") for c in cells for o in c.outputs if o.get("name") == "stdout")
    assert "Whittle 260.4, bound 260.4" in printed and "longest" in printed


def test_readme(command, tmp_path, monkeypatch):
    """The README's Python runs, block after block."""
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    command("train", "-steps", 100, "-out", "DIR")
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.M | re.S)
    assert len(blocks) == 7
    names = {"fetch": fetch}
    for block in blocks:
        exec(block, names)
    assert names["learner"].names == ["news", "blog"] and names["results"].kind == "train"
