"""The directory of a run: what is written there, and what is deleted."""

from cbet_jax.config import RunSettings
from cbet_jax.runs.directory import RunDirectory


def test_a_run_that_has_not_begun_is_discarded_with_its_copies_of_code(tmp_path):
    directory = RunDirectory(tmp_path / "run")
    directory.create(RunSettings())
    directory.keep_code(b"method", [b"world", b"other world"])
    assert len(list(directory.root.iterdir())) == 4
    directory.discard()
    assert not directory.root.exists()
