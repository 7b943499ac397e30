"""What tests of simulators share."""

import pytest

from tests.support.scenes import four_walls


@pytest.fixture(scope="package")
def scene(tmp_path_factory) -> str:
    """A room of 4 m by 4 m whose walls have a colour each."""
    path = tmp_path_factory.mktemp("scene") / "walls.glb"
    four_walls().export(path)
    return str(path)
