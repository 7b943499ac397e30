"""Files that are refused before a simulator opens them."""

import pytest

from envs.habitat.scene_check import check_file
from envs.habitat.simulator import SimulatorError
from tests.support.scenes import four_walls, room


@pytest.mark.parametrize("name", ["scene.glb", "scene.gltf", "scene.ply"])
def test_whole_files_pass(tmp_path, name) -> None:
    (four_walls() if "gl" in name else room()).export(tmp_path / name)
    check_file(tmp_path / name)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_a_glb_that_is_cut_off_is_refused(tmp_path, share) -> None:
    path = tmp_path / "scene.glb"
    four_walls().export(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(SimulatorError, match=r"\A[^\n]+cannot be read as a scene[^\n]+complete"):
        check_file(path)


def test_missing_files_and_pointers_to_large_files_are_refused(tmp_path) -> None:
    for name in ("scene.glb", "scene.ply"):
        with pytest.raises(SimulatorError, match="there is no scene"):
            check_file(tmp_path / name)
        (tmp_path / name).write_text("version https://git-lfs.github.com/spec/v1\n")
        with pytest.raises(SimulatorError, match="not a whole"):
            check_file(tmp_path / name)
