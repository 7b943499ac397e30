"""The notebook on profiling runs from its first cell to its last, here with tiny numbers."""

import re

import nbformat
import pytest

from tests.support.notebooks import FOLDER, executed

NOTEBOOK = FOLDER / "profiling.ipynb"
TINY = """
from dataclasses import replace

from cbet_jax.config import CountSettings
from experiments.benchmarks import timing
from tests.support.tiny import NETWORK
from tests.support.worlds import corridor

make_world = lambda names, number, explore: corridor(number)  # compiles at once
timing.ROUND_SECONDS = 0.0
preset = PRESETS["smoke"]
counts = CountSettings(capacity=64)
settings = replace(preset.train, worlds=4, batch=4, unroll=5, network=NETWORK, counts=counts)
seeds, chunk, rounds = 1, 1, 1
folder = Path(tempfile.mkdtemp())
"""
CHARTS = ("The training program", "What each device holds at once", "One iteration of one seed")


@pytest.mark.slow  # its functions have tests of their own
def test_the_notebook_on_profiling_runs(tmp_path, monkeypatch):
    shown, text = executed(NOTEBOOK, TINY, tmp_path, monkeypatch)
    pictures = [output for output in shown if "image/png" in output.get("data", ())]
    assert len(pictures) == len(CHARTS)
    found = re.findall(r"^ *([\d.]+) % +(\d+) x  (\S+) +(\S*)$", text, re.MULTILINE)
    shares, calls, _, origins = zip(*found, strict=True)
    assert 0 < sum(map(float, shares)) <= 100.5
    assert min(map(int, calls)) > 0
    assert any("PolicyNetwork" in origin for origin in origins)
    assert "frames a second" in text
    assert list(tmp_path.rglob("trace.json.gz"))


def test_the_notebook_shows_what_its_cells_draw():
    """It is kept as it was run: every cell once, in order, without an error."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell.outputs]
    assert all(output.output_type != "error" for output in outputs)
    assert all(any(title in cell.source for cell in cells) for title in CHARTS)
    assert sum("image/png" in output.get("data", ()) for output in outputs) == len(CHARTS)
    assert NOTEBOOK.stat().st_size < 300_000
