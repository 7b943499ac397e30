"""The notebook for the first hour runs from its first cell to its last, here with tiny numbers."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[3]
NOTEBOOK = ROOT / "experiments" / "notebooks" / "quickstart.ipynb"
TINY = "FRAMES, WORLDS, UNROLL, FILM_STEPS = 512, 32, 8, 2"


@pytest.mark.slow  # it compiles two training programs
def test_the_notebook_for_the_first_hour_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    (parameters,) = (
        cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", ())
    )
    parameters.source = TINY
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": tmp_path}}).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    text = "".join(output.text for output in shown if output.output_type == "stream")
    assert "views (4, 7, 7, 3) panoramas (4, 196)" in text
    assert "of 8" in text
    kinds = [kind for output in shown for kind in output.get("data", ())]
    assert kinds.count("image/png") == 2
    assert kinds.count("image/gif") == 1


def test_the_notebook_is_valid_and_small():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    assert "find_spec" in notebook.cells[1].source  # the first cell installs, in Colab
    assert NOTEBOOK.stat().st_size < 300_000
