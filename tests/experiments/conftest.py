"""A finished run, for all tests that need one."""

import pytest

from cbet_jax.runs.directory import RunDirectory
from tests.support.scenes import four_walls
from tests.support.tiny_habitat import CHUNK_FRAMES, TINY


@pytest.fixture(scope="session")
def finished(tmp_path_factory) -> RunDirectory:
    """A run in a room of four walls that was never interrupted."""
    from experiments import habitat_pretrain  # imported here: it takes seconds

    root = tmp_path_factory.mktemp("habitat")
    four_walls().export(root / "walls.glb")
    scene = ("--scene", str(root / "walls.glb"), "--frames", str(4 * CHUNK_FRAMES))
    habitat_pretrain.main([*TINY, *scene, "--out", str(root / "run")])
    return RunDirectory(root / "run")
