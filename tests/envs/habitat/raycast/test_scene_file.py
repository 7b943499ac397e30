"""Reading scenes' files: every way that a colour can be given, and every way to be damaged."""

import json
from pathlib import Path

import numpy as np
import pytest
import trimesh
from PIL import Image

from envs.habitat import gltf
from envs.habitat.raycast import scene_file
from envs.habitat.raycast.mesh import Mesh
from envs.habitat.raycast.paint import Paint
from envs.habitat.scenes import read_stage
from envs.habitat.simulator import SimulatorError
from tests.support.scenes import BLUE, FACES, GREEN, RED, SQUARE, WHITE, box, room, textured_square


def read(path: Path) -> Mesh:
    return scene_file.read(read_stage(path))


def color_at(surface: Mesh, x: float, y: float) -> tuple[int, int, int]:
    """The colour of the point (x, y, 0) of the square."""
    for index, face in enumerate(surface.faces):
        a, b, c = surface.vertices[face][:, :2]
        u, v = np.linalg.solve(np.stack([b - a, c - a], axis=1), np.array([x, y]) - a)
        if min(u, v, 1 - u - v) >= 0:
            weights = [np.array([weight], np.float32) for weight in (u, v)]
            return tuple(Paint(surface)(np.array([index]), *weights)[0].tolist())
    raise AssertionError("not on the square")


def four_corners(surface: Mesh) -> list[tuple[int, int, int]]:
    """Colours at the upper left, upper right, lower left and lower right."""
    return [color_at(surface, x, y) for y in (1.6, 0.4) for x in (0.5, 1.5)]


@pytest.mark.parametrize("name", ["scene.glb", "scene.gltf"])
@pytest.mark.parametrize("mode", [None, "P", "RGBA", "L"])
def test_textures_are_the_right_way_up(tmp_path, name, mode) -> None:
    textured_square(mode=mode).export(tmp_path / name)
    expected = [RED, GREEN, BLUE, WHITE]
    if mode == "L":
        grey = Image.fromarray(np.array([expected], np.uint8)).convert("L").convert("RGB")
        expected = [tuple(color) for color in np.asarray(grey)[0].tolist()]
    assert four_corners(read(tmp_path / name)) == expected


def test_colours_of_vertices_multiply_the_materials(tmp_path) -> None:
    mesh = trimesh.Trimesh(SQUARE, FACES, process=False)
    material = trimesh.visual.material.PBRMaterial(baseColorFactor=(200, 100, 50, 255))
    mesh.visual = trimesh.visual.TextureVisuals(material=material)
    white, black = (255, 255, 255, 255), (0, 0, 0, 255)
    mesh.visual.vertex_attributes["color"] = np.array([white, white, black, black], np.uint8)
    mesh.export(tmp_path / "scene.glb")
    surface = read(tmp_path / "scene.glb")
    lit = np.isin(surface.faces, [0, 1])[..., None]
    np.testing.assert_array_equal(surface.colors, np.where(lit, (200, 100, 50), 0))


@pytest.mark.parametrize(
    ("attribute", "kind", "said"),
    [
        ("COLOR_0", 5123, "16-bit"),
        ("TEXCOORD_0", 5123, "integers"),
        ("TEXCOORD_0", 5121, "integers"),
    ],
)
@pytest.mark.parametrize("name", ["scene.glb", "scene.gltf"])
def test_what_trimesh_misreads_is_refused(tmp_path, name, attribute, kind, said) -> None:
    """It does not divide integers of colours and places by the largest one."""
    square = textured_square()
    square.visual.vertex_attributes["color"] = np.full((4, 4), 255, np.uint8)
    square.export(tmp_path / name)
    file = tmp_path / name
    found, before = gltf.content(file), file.read_bytes()
    (part,) = gltf.parts(found)
    assert gltf.misread(found) == ""
    read(file)
    found["accessors"][part["attributes"][attribute]] |= {"componentType": kind, "normalized": True}
    text = json.dumps(found).encode()
    if name == "scene.glb":
        rest = before[20 + int.from_bytes(before[12:16], "little") :]
        text += b" " * (-len(text) % 4)
        sizes = (20 + len(text) + len(rest), len(text))
        head = [before[:8], sizes[0].to_bytes(4, "little"), sizes[1].to_bytes(4, "little")]
        text = b"".join([*head, before[16:20], text, rest])
    file.write_bytes(text)
    with pytest.raises(SimulatorError, match=f"{attribute} has {said}.*export it with floats"):
        read(file)


def test_textures_repeat(tmp_path) -> None:
    shifted = textured_square(((-2, 1), (-1, 1), (-1, 2), (-2, 2)))
    shifted.export(tmp_path / "scene.glb")
    assert four_corners(read(tmp_path / "scene.glb")) == [RED, GREEN, BLUE, WHITE]


def test_fine_textures_are_averaged(tmp_path) -> None:
    checks = np.indices((1024, 1024)).sum(axis=0) % 2 * 200
    image = Image.fromarray(np.repeat(checks[..., None], 3, axis=-1).astype(np.uint8))
    mesh = textured_square()
    mesh.visual.material.baseColorTexture = image
    mesh.export(tmp_path / "scene.glb")
    surface = read(tmp_path / "scene.glb")
    assert surface.textures[0].shape == (128, 128, 3)  # 2 m of 512 texels a metre
    assert color_at(surface, 0.7, 0.7) == (100, 100, 100)


def test_colours_of_vertices_blend(tmp_path) -> None:
    colors = np.array([RED, RED, BLUE, BLUE], np.uint8)
    trimesh.Trimesh(SQUARE, FACES, vertex_colors=colors).export(tmp_path / "scene.ply")
    surface = read(tmp_path / "scene.ply")
    turned = surface._replace(vertices=surface.vertices[:, [0, 2, 1]] * (1, -1, 1))
    assert color_at(turned, 1.0, 1.0) == pytest.approx((127, 0, 127), abs=1)
    assert color_at(turned, 0.5, 0.1) == pytest.approx((242, 0, 12), abs=1)


def test_colours_of_materials_are_shaded_by_where_they_face(tmp_path) -> None:
    material = trimesh.visual.material.PBRMaterial(baseColorFactor=(200, 100, 0, 255))
    mesh = box(((0, 0, 0), (1, 1, 1)))
    mesh.visual = trimesh.visual.TextureVisuals(material=material)
    mesh.export(tmp_path / "scene.glb")
    surface = read(tmp_path / "scene.glb")
    third = np.full(12, 1 / 3, np.float32)
    seen = Paint(surface)(np.arange(12), third, third).astype(int)
    top = surface.vertices[surface.faces][:, :, 1].min(axis=1) == 1
    assert (seen[top].sum(axis=1) > seen[~top].sum(axis=1).max()).all()
    np.testing.assert_allclose(seen[:, 0], 2 * seen[:, 1], atol=2)
    assert len(np.unique(seen[:, 0])) == 6


def test_one_scene_of_many_kinds_of_colour(tmp_path) -> None:
    plain = trimesh.Trimesh(SQUARE + np.array([3, 0, 0]), FACES, vertex_colors=[GREEN] * 4)
    scene = trimesh.Scene([textured_square(), plain])
    scene.add_geometry(
        textured_square(), transform=trimesh.transformations.translation_matrix((6, 0, 0))
    )
    scene.export(tmp_path / "scene.glb")
    surface = read(tmp_path / "scene.glb")
    assert len(surface.faces) == 6
    for shift, expected in ((0, RED), (6, RED)):
        assert color_at(surface, shift + 0.5, 1.6) == expected
    assert color_at(surface, 3.5, 1.6)[::2] == (0, 0)


def test_a_mirrored_part_keeps_its_outside(tmp_path) -> None:
    scene = trimesh.Scene()
    scene.add_geometry(box(((1, 0, 0), (2, 1, 1))), transform=np.diag((-1.0, 1, 1, 1)))
    scene.export(tmp_path / "scene.glb")
    surface = read(tmp_path / "scene.glb")
    assert trimesh.Trimesh(surface.vertices, surface.faces).volume == pytest.approx(1.0)
    assert surface.vertices[:, 0].max() == pytest.approx(-1.0)


@pytest.mark.parametrize("given", ["scene.glb", "scene.stage_config.json"])
def test_a_description_beside_the_scene_says_which_way_is_up(tmp_path, given) -> None:
    box(((0, 0, 0), (1, 2, 3))).export(tmp_path / "scene.glb")
    config = {"render_asset": "scene.glb", "up": [0, 0, 1], "front": [0, 1, 0]}
    (tmp_path / "scene.stage_config.json").write_text(json.dumps(config))
    vertices = read(tmp_path / given).vertices
    assert vertices.max(axis=0).tolist() == [1, 3, 0]
    assert vertices.min(axis=0).tolist() == [0, 0, -2]


@pytest.mark.parametrize("scale", [{"units_to_meters": 0.01}, {"scale": [1, 2, 1]}, {"scale": "x"}])
def test_a_description_that_scales_the_scene_is_refused(tmp_path, scale) -> None:
    room().export(tmp_path / "scene.glb")
    config = {"render_asset": "scene.glb", "up": [0, 1, 0], "front": [0, 0, -1]}
    described = tmp_path / "scene.stage_config.json"
    described.write_text(json.dumps({**config, "units_to_meters": 1.0, "scale": [1, 1, 1]}))
    assert np.ptp(read(described).vertices, axis=0).tolist() == [4.0, 2.5, 4.0]
    described.write_text(json.dumps({**config, **scale}))
    with pytest.raises(SimulatorError, match=r"scaled by its description: .* takes metres"):
        read(described)


def test_damaged_files_are_named(tmp_path) -> None:
    room().export(tmp_path / "whole.glb")
    whole = (tmp_path / "whole.glb").read_bytes()
    damaged = {
        "missing.glb": None,
        "empty.glb": b"",
        "half.glb": whole[: len(whole) // 2],
        "text.ply": b"no mesh at all\n",
        "scene.xyzzy": b"who knows",
        "points.ply": trimesh.PointCloud(SQUARE).export(file_type="ply"),
        "nan.ply": trimesh.Trimesh(SQUARE * np.nan, FACES, process=False).export(file_type="ply"),
        "bad.stage_config.json": b"{",
        "bare.stage_config.json": b"{}",
        "list.stage_config.json": b"[]",
        "gone.stage_config.json": b'{"render_asset": "gone.glb"}',
        "slanted.stage_config.json": b'{"render_asset": "whole.glb", "up": [0,1,1]}',
    }
    for name, content in damaged.items():
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(SimulatorError, match=r"\A[^\n]+\Z") as error:
            read(tmp_path / name)
        assert name.split(".")[0] in str(error.value) or "slanted" in name
