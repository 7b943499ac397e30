"""What several commands are tested with."""

from functools import cache

import pytest
from tyro._docstrings import _ClassTokenization

from cbet_jax.runs.directory import RunDirectory
from tests.support.scenes import four_walls
from tests.support.tiny import HABITAT_ARGUMENTS
from tests.support.unrendered import leave_untrained

# At each command line, tyro reads the sources of all options anew, for their help.
_ClassTokenization.make = staticmethod(cache(_ClassTokenization.make))


@pytest.fixture
def not_trained(monkeypatch) -> None:
    """Runs are begun, and nothing is trained."""
    leave_untrained(monkeypatch)


@pytest.fixture(scope="session")
def habitat_run(tmp_path_factory) -> RunDirectory:
    """A run in a room of four walls that was never interrupted."""
    from experiments import habitat_pretrain  # imported here: it takes seconds

    root = tmp_path_factory.mktemp("habitat")
    four_walls().export(root / "walls.glb")
    scene = ("--scene", str(root / "walls.glb"))
    habitat_pretrain.main([*HABITAT_ARGUMENTS, *scene, "--out", str(root / "run")])
    return RunDirectory(root / "run")
