"""The notebook for the first hour runs from its first cell to its last, here with tiny numbers."""

import nbformat
import pytest

from tests.support.notebooks import FOLDER, executed

NOTEBOOK = FOLDER / "quickstart.ipynb"
TINY = "FRAMES, WORLDS, UNROLL, FILM_STEPS = 512, 32, 8, 2"


@pytest.mark.slow  # it compiles two training programs
def test_the_notebook_for_the_first_hour_runs(tmp_path, monkeypatch):
    shown, text = executed(NOTEBOOK, TINY, tmp_path, monkeypatch)
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
