"""The notebook on profiling runs from its first cell to its last, here with tiny numbers."""

import re

import pytest

from tests.support.notebooks import FOLDER, executed

TINY = """
from dataclasses import replace

from cbet_jax.config import CountSettings
from tests.support.tiny import NETWORK
from tests.support.worlds import corridor

make_world = lambda names, number, explore: corridor(number)  # compiles at once
preset = PRESETS["smoke"]
counts = CountSettings(capacity=64)
settings = replace(preset.train, worlds=4, batch=4, unroll=5, network=NETWORK, counts=counts)
seeds = 1
folder = Path(tempfile.mkdtemp())
"""
CHARTS = 3


@pytest.mark.slow
def test_the_notebook_on_profiling_runs(tmp_path, monkeypatch):
    shown, text = executed(FOLDER / "profiling.ipynb", TINY, tmp_path, monkeypatch)
    pictures = [output for output in shown if "image/png" in output.get("data", ())]
    assert len(pictures) == CHARTS
    found = re.findall(r"^ *([\d.]+) % +(\d+) x  (\S+) +(\S*)$", text, re.MULTILINE)
    shares, calls, _, places = zip(*found, strict=True)
    assert 0 < sum(map(float, shares)) <= 100.5
    assert min(map(int, calls)) > 0
    assert any("PolicyNetwork" in place for place in places)
    assert list(tmp_path.rglob("perfetto_trace.json.gz"))
