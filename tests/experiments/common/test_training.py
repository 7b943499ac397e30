"""What the training commands share: runs whose method is a file of one's own."""

import pytest

from cbet_jax.intrinsic import METHODS
from cbet_jax.runs.directory import RunDirectory
from experiments import minigrid_pretrain
from tests.support.fake_program import fake_program
from tests.support.own_method import own_method
from tests.support.refusal import refused
from tests.support.tiny import ARGUMENTS, CHUNK_FRAMES

BONUS = """
    import jax.numpy as jnp

    from cbet_jax.intrinsic.types import Intrinsic


    def make(settings, num_actions):
        return Intrinsic("bonus", 0.5, lambda params, played: jnp.ones(played.first.shape))
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setattr(minigrid_pretrain, "build", fake_program)
    with own_method(tmp_path, BONUS) as path:
        yield path


def test_a_run_keeps_its_own_method_and_resumes_with_it_only(file, tmp_path, capsys):
    directory = RunDirectory(tmp_path / "run")
    out, method = ["--out", str(directory.root)], ["--method", f"{file}:make"]
    minigrid_pretrain.main([*ARGUMENTS, *out, *method, "--frames", str(CHUNK_FRAMES)])
    assert directory.settings().train.method.startswith("bonus.py:make@")
    assert directory.method.read_bytes() == file.read_bytes()

    longer = [*out, "--resume", "--frames", str(2 * CHUNK_FRAMES)]
    METHODS.pop(directory.settings().train.method)  # as in another process
    line = refused(minigrid_pretrain.main, longer, capsys)
    assert line.strip().endswith("if you trust it, add --method bonus.py:make")
    minigrid_pretrain.main([*longer, *method])
    assert f"{2 * CHUNK_FRAMES:,} frames" in capsys.readouterr().out

    file.write_text(file.read_text().replace("0.5", "0.6"))
    line = refused(minigrid_pretrain.main, [*longer, *method], capsys)
    assert line.strip().endswith(f"the run's own copy is {directory.method}")
