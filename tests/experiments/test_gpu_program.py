"""What a GPU would do, read without one."""

import gzip
import json

import pytest

from experiments import gpu_program
from experiments.benchmarks import gpu_program_report
from tests.support.compiled_program import PROGRAM
from tests.support.refusal import refused


@pytest.fixture
def stored(tmp_path):
    path = tmp_path / "program.txt"
    path.write_text(PROGRAM)
    return path


def test_a_stored_program_is_read(stored, tmp_path, capsys):
    out = tmp_path / "new" / "folder"
    gpu_program.main(["--program", str(stored), "--preset", "smoke", "--out", str(out)])
    shown = capsys.readouterr().out
    assert shown.startswith("# Nothing was run")
    assert "| acting | 10 | 4 | 2 |" in shown
    assert "the host may wait at `envs/minigrid/pool.py:140`" in shown
    content = json.loads((out / "program.json").read_text())
    assert not content["was_run"]
    low, high = content["minutes"]
    assert 0 < low < high
    assert (out / "program.md").read_text() in shown
    assert gzip.decompress((out / "program.txt.gz").read_bytes()).decode() == PROGRAM
    gpu_program.main(["--program", str(out / "program.txt.gz"), "--preset", "smoke"])
    assert capsys.readouterr().out == shown
    again = ["--program", str(stored), "--preset", "smoke", "--out", str(out)]
    assert "program.json already exists" in refused(gpu_program.main, again, capsys)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--gpu", "h20"], "h200"),
        (["--preset", "larger"], "unknown preset"),
        (["--seeds", "0"], "at least 1"),
        (["--worlds", "0"], "at least 1"),
        (["--program", "nowhere.txt"], "cannot read nowhere.txt"),
        (["--program", __file__], "not a compiled program"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(words, says, capsys):
    assert says in refused(gpu_program.main, words, capsys)


def test_damaged_programs_are_refused(stored, tmp_path, capsys):
    cut = tmp_path / "cut.txt"
    cut.write_text(PROGRAM[: PROGRAM.index("\n", PROGRAM.index("ENTRY")) + 9])
    assert "is cut off" in refused(gpu_program.main, ["--program", str(cut)], capsys)
    damaged = bytearray(gzip.compress(PROGRAM.encode()))
    damaged[20:40] = bytes(20)
    (tmp_path / "damaged.txt.gz").write_bytes(damaged)
    words = ["--program", str(tmp_path / "damaged.txt.gz")]
    assert "damaged.txt.gz" in refused(gpu_program.main, words, capsys)


def test_without_the_plugin_the_command_that_has_it_is_printed(monkeypatch, capsys):
    monkeypatch.setattr(gpu_program_report, "PLUGINS", ("no_such_plugin",))
    said = refused(gpu_program.main, ["--preset", "smoke"], capsys)
    assert "uv run --with jax-cuda13-plugin==" in said
    assert said.rstrip().endswith("-m experiments.gpu_program --preset smoke")


MOST = {  # of a turn: launches, the longest chain, megabytes read and written
    "smoke": {"acting": (42, 23, 1), "LSTM forward": (14, 11, 1), "LSTM backward": (15, 10, 1)},
    "laptop": {"acting": (46, 26, 12), "LSTM forward": (14, 11, 15), "LSTM backward": (14, 12, 22)},
}


@pytest.mark.slow
@pytest.mark.skipif(not gpu_program_report.has_plugin(), reason="needs jax-cuda13-plugin")
@pytest.mark.parametrize("preset", MOST)
def test_a_compiled_program_stays_within_bounds(preset, tmp_path, capsys):
    gpu_program.main(["--preset", preset, "--seeds", "2", "--out", str(tmp_path)])
    assert capsys.readouterr().out.startswith("# Nothing was run")
    content = json.loads((tmp_path / "program.json").read_text())
    parts = {part["name"]: part for part in content["parts"]}
    for name, (launches, chain, megabytes) in MOST[preset].items():
        turn = parts[name]["turn"]
        assert turn["launches"] <= launches
        assert turn["chain"] <= chain
        assert turn["read"] + turn["written"] <= megabytes * 1e6
    assert "V-trace" not in parts or parts["V-trace"]["turns"] < 20
    assert not content["host_calls"]
    assert len(content["open_places"]) <= 1
