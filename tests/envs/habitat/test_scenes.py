"""Finding scenes by name, and which way is up in them."""

import errno
import json
import os
from pathlib import Path

import pytest

from envs.habitat.apartments import FOLDER
from envs.habitat.scenes import FRAMES, Frame, SceneFile, find_scene, read_stage
from envs.habitat.simulator import SimulatorError

LAYOUTS = {
    "studio": "studio.glb",
    "shop": "shop.ply",
    "apartment_0": "apartment_0/habitat/mesh_semantic.ply",
    "room_0": "room_0/mesh.ply",
    "17DRP5sb8fy": "17DRP5sb8fy/17DRP5sb8fy.glb",
    "TEEsavR23oF": "00800-TEEsavR23oF/TEEsavR23oF.basis.glb",
    "00800-TEEsavR23oF": "00800-TEEsavR23oF/TEEsavR23oF.basis.glb",
    "GLAQ4DNUx5U": "val/00100-GLAQ4DNUx5U/GLAQ4DNUx5U.glb",
    "chair": "chair.stage_config.json",
}


def make(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}")


@pytest.mark.parametrize(("name", "path"), LAYOUTS.items())
def test_a_name_is_found_in_every_layout(tmp_path, name, path) -> None:
    make(tmp_path, *LAYOUTS.values())
    assert find_scene(name, tmp_path) == SceneFile(tmp_path / path)
    assert find_scene(path, tmp_path) == SceneFile(tmp_path / path)
    assert find_scene(str(tmp_path / path)) == SceneFile(tmp_path / path)


def test_folders_that_may_not_be_read_are_passed_over(tmp_path, monkeypatch) -> None:
    """As `lost+found` on a disk of its own."""
    make(tmp_path, "room_0/mesh.ply", "lost+found/mesh.ply")
    listed, looked_at = Path.iterdir, os.path.isfile

    def iterdir(path):
        if path.name == "lost+found":
            raise PermissionError(errno.EACCES, "Permission denied")
        return listed(path)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    monkeypatch.setattr(os.path, "isfile", lambda p: "lost" not in str(p) and looked_at(p))
    assert find_scene("room_0", tmp_path).path == tmp_path / "room_0/mesh.ply"


def test_the_best_file_of_a_scene_is_taken(tmp_path) -> None:
    files = [
        "a/mesh.ply",
        "a/habitat/replica_stage.stage_config.json",
        "a/habitat/mesh_semantic.ply",
    ]
    for path in files:
        make(tmp_path, path)
        assert find_scene("a", tmp_path).path == tmp_path / path
    assert find_scene(str(tmp_path / "a")).path == tmp_path / files[-1]  # the scene's own folder
    make(tmp_path, "b.ply", "b.stage_config.json", "b.glb")
    assert find_scene("b", tmp_path).path == tmp_path / "b.glb"


def test_scenes_with_objects_are_found_through_their_data_set(tmp_path) -> None:
    make(tmp_path, "configs/scenes/apt_0.scene_instance.json", "more/apt_1.scene_instance.json")
    config = {"scene_instances": {"paths": {".json": ["configs/scenes", "more/*.json"]}}}
    dataset = tmp_path / "some.scene_dataset_config.json"
    dataset.write_text(json.dumps(config))
    for folder in (tmp_path, dataset):
        found = find_scene("apt_0", folder)
        assert found == (tmp_path / "configs/scenes/apt_0.scene_instance.json", dataset)
        assert find_scene("apt_1", folder).path == tmp_path / "more/apt_1.scene_instance.json"
    with pytest.raises(SimulatorError, match=r"apt_2.* near it are apt_[01], apt_[01]"):
        find_scene("apt_2", tmp_path)
    dataset.write_text("[")
    with pytest.raises(SimulatorError, match="does not describe a data set"):
        find_scene("apt_0", tmp_path)


def test_a_wrong_name_comes_with_the_nearest(tmp_path) -> None:
    make(tmp_path, *LAYOUTS.values())
    with pytest.raises(SimulatorError, match=r"no scene 'studoi' in .*; near it is studio$"):
        find_scene("studoi", tmp_path)
    with pytest.raises(SimulatorError, match=r"; there are 00100-GLAQ4DNUx5U, .*, \.\.\.$"):
        find_scene("????", tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(SimulatorError, match=r"no scene 'x' in .*, which holds no scenes$"):
        find_scene("x", tmp_path / "empty")
    with pytest.raises(SimulatorError, match=r"/nowhere is no folder of scenes: No such file"):
        find_scene("x", tmp_path / "nowhere")
    with pytest.raises(SimulatorError, match=r"'bedrom': no such file; near it is bedroom$"):
        find_scene("bedrom")
    with pytest.raises(SimulatorError, match=r"no scene '\./x': no such file$"):
        find_scene("./x")
    assert find_scene("studio").path == FOLDER / "studio.glb"


def test_y_is_up_in_gltf_and_z_in_ply_and_in_scans(tmp_path) -> None:
    make(tmp_path, "a.glb", "a.gltf", "a.ply", "mp3d.glb", "mp3d.house", "hm3d.basis.glb")
    ups = {"a.glb": "y", "a.gltf": "y", "a.ply": "z", "mp3d.glb": "z", "hm3d.basis.glb": "z"}
    for name, up in ups.items():
        assert read_stage(tmp_path / name) == (tmp_path / name, FRAMES[up], "kind", {})
        for given in FRAMES:
            assert read_stage(tmp_path / name, given).frame == FRAMES[given]


def test_a_description_decides_unless_the_option_is_given(tmp_path) -> None:
    config = {"render_asset": "../mesh.ply", "up": [0, 1, 0]}
    path = tmp_path / "habitat" / "replica_stage.stage_config.json"
    path.parent.mkdir()
    path.write_text(json.dumps(config))
    mesh = path.parent / "../mesh.ply"
    assert read_stage(path) == (mesh, FRAMES["y"], "description", config)
    assert read_stage(path, "z")[:3] == (mesh, FRAMES["z"], "option")
    path.write_text(
        json.dumps({"render_asset": "../mesh.ply"})
    )  # as in Replica: of the mesh's kind
    assert read_stage(path)[:3] == (mesh, FRAMES["z"], "kind")
    path.write_text(json.dumps({**config, "up": [1, 0, 0], "front": [0, 1, 0]}))
    assert read_stage(path).frame == Frame((1, 0, 0), (0, 1, 0))
    for up, front in (
        ([0, 1, 1], None),
        ([0, 1, 0], [0, 1, 0]),
        ("y", None),
        ([0, 0, 0], [1, 0, 0]),
    ):
        path.write_text(json.dumps({**config, "up": up, "front": front}))
        with pytest.raises(SimulatorError, match="not at right angles"):
            read_stage(path)
