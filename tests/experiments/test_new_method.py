"""The file to begin with: it passes every check as written, and never replaces another."""

import pytest

from cbet_jax.config import TrainSettings
from cbet_jax.intrinsic import METHODS, make_intrinsic, own
from cbet_jax.method_check.check import REACHES
from experiments import check_method, new_method
from tests.support.families import slow
from tests.support.refusal import refused


@pytest.mark.parametrize("words", [("--no-learn",), slow(())], ids=["quick", "all"])
def test_the_file_passes_every_check(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    new_method.main(["my_bonus"])
    saved, check, train = capsys.readouterr().out.splitlines()
    assert saved == "saved: my_bonus.py"
    assert check.endswith("experiments.check_method my_bonus.py:make")
    assert train.endswith("--preset smoke --method my_bonus.py:make")
    before = dict(METHODS)
    try:
        check_method.main(["my_bonus.py:make", *words])
        lines = capsys.readouterr().out.splitlines()
        learnt = f"{REACHES}: skipped" if words else f"{REACHES}: ok"
        assert len(lines) > 5
        assert all(line.endswith(": ok") for line in lines[:-1]), lines
        assert lines[-1].startswith(learnt)
        settings = TrainSettings(method=own.load("my_bonus.py:make"), own=("power=1",))
        assert make_intrinsic(settings, 3).name == "my_bonus"
    finally:
        METHODS.clear()
        METHODS.update(before)


def test_nothing_is_overwritten(tmp_path, capsys):
    path = tmp_path / "folder" / "mine.py"
    new_method.main(["bonus", "--out", str(path)])
    content = path.read_text()
    assert '"""bonus: reward views' in content
    assert "already exists" in refused(new_method.main, ["b", "--out", str(path)], capsys)
    assert path.read_text() == content
