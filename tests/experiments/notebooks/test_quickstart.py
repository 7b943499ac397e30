"""The notebook for the first hour runs from its first cell to its last, here with tiny numbers."""

import pytest

from tests.support.notebooks import FOLDER, executed

TINY = "FRAMES, WORLDS, UNROLL, FILM_STEPS = 512, 32, 8, 2"


@pytest.mark.slow  # it compiles two training programs
def test_the_notebook_for_the_first_hour_runs(tmp_path, monkeypatch):
    shown, text = executed(FOLDER / "quickstart.ipynb", TINY, tmp_path, monkeypatch)
    assert "views (4, 7, 7, 3) panoramas (4, 196)" in text
    assert "of 8" in text
    kinds = [kind for output in shown for kind in output.get("data", ())]
    assert kinds.count("image/png") == 2
    assert kinds.count("image/gif") == 1
