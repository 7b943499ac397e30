"""Where results go is known to be writable before anything is played."""

import pytest

from cbet_jax.runs.refusals import refusal
from experiments import minigrid_evaluate
from experiments.common.outputs import results_folder, unused
from experiments.evaluation import gridworlds
from tests.support.refusal import refused
from tests.support.saved_runs import save_run


def test_another_folder_is_offered(tmp_path):
    (tmp_path / "run").touch()  # as good as a folder that cannot be written to
    with pytest.raises(OSError, match="exists") as caught:
        results_folder(None, tmp_path / "run")
    found = refusal(caught.value)
    assert found is not None
    assert found.line.endswith("name another folder with --out")
    assert results_folder(tmp_path / "out", tmp_path / "run") == tmp_path / "out"
    assert list((tmp_path / "out").iterdir()) == []


def test_an_evaluation_that_cannot_be_written_is_not_played(tmp_path, capsys, monkeypatch):
    run = save_run(tmp_path / "run").root
    monkeypatch.setattr(gridworlds, "play", None)
    arguments = [str(run), "--out", "/proc/nowhere", "--envs", "LavaGapS5"]
    error = refused(minigrid_evaluate.main, arguments, capsys, status=3)
    assert "/proc/nowhere" in error


def test_a_link_that_leads_nowhere_takes_its_name(tmp_path):
    (tmp_path / "a.csv").symlink_to(tmp_path / "nowhere")
    assert unused(tmp_path / "a.csv") == tmp_path / "a-2.csv"
