"""Damage that is found before a simulator opens a file."""

import json
import struct
import sys

import numpy as np
import pytest
import trimesh

from envs.habitat.scene_check import check_scene
from envs.habitat.simulator import SimulatorError
from tests.support.scenes import four_walls, room, textured_square


def glb(path, change) -> None:
    """Write a textured square after a change of its description and its binary part."""
    content = textured_square().export(file_type="glb")
    (length,) = struct.unpack("<I", content[12:16])
    parts, binary = json.loads(content[20 : 20 + length]), bytearray(content[28 + length :])
    change(parts, binary)
    text = json.dumps(parts).encode()
    text += b" " * (-len(text) % 4)
    total = 28 + len(text) + len(binary)
    path.write_bytes(
        struct.pack("<4sII", b"glTF", 2, total)
        + struct.pack("<I4s", len(text), b"JSON")
        + text
        + struct.pack("<I4s", len(binary), b"BIN\0")
        + bytes(binary)
    )


def of_image(parts) -> slice:
    view = parts["bufferViews"][parts["images"][0]["bufferView"]]
    start = view.get("byteOffset", 0)
    return slice(start, start + view["byteLength"])


def break_texture(parts, binary) -> None:
    part = of_image(parts)
    binary[part] = binary[part][:20] + bytes(part.stop - part.start - 20)


def break_indices(parts, binary) -> None:
    accessor = parts["accessors"][parts["meshes"][0]["primitives"][0]["indices"]]
    start = parts["bufferViews"][accessor["bufferView"]].get("byteOffset", 0)
    binary[start : start + 2] = b"\xff\x7f"


def break_positions(parts, binary) -> None:
    accessor = parts["accessors"][parts["meshes"][0]["primitives"][0]["attributes"]["POSITION"]]
    start = parts["bufferViews"][accessor["bufferView"]].get("byteOffset", 0)
    binary[start : start + 4] = struct.pack("<f", np.nan)


DAMAGES = {
    "texture 0 is damaged": break_texture,
    "a corner that is not there": break_indices,
    "corners are not numbers": break_positions,
    "longer than its buffer": lambda parts, _: parts["bufferViews"][0].update(byteLength=10**9),
    "shorter than it says": lambda parts, _: parts["buffers"][0].update(byteLength=10**9),
    "strides is incompatible": lambda parts, _: parts["accessors"][0].update(count=10**9),
    "IndexError": lambda parts, _: parts["meshes"][0]["primitives"][0].update(indices=77),
}


@pytest.mark.parametrize(("message", "damage"), DAMAGES.items())
def test_damage_inside_a_glb_is_found(tmp_path, message, damage) -> None:
    path = tmp_path / "scene.glb"
    glb(path, lambda parts, binary: None)
    check_scene(path)
    glb(path, damage)
    with pytest.raises(SimulatorError, match=rf"\A.*scene.glb cannot be read .*{message}.*\Z"):
        check_scene(path)


@pytest.mark.parametrize("name", ["scene.glb", "scene.gltf", "scene.ply", "ascii.ply"])
def test_whole_files_pass_and_short_ones_do_not(tmp_path, name) -> None:
    path = tmp_path / name
    if name == "ascii.ply":
        path.write_bytes(room().export(file_type="ply", encoding="ascii"))
    else:
        (four_walls() if "gl" in name else room()).export(path)
    check_scene(path)
    for share in (0.0, 0.01) if name == "ascii.ply" else (0.0, 0.01, 0.5, 0.99):
        content = path.read_bytes()
        path.write_bytes(content[: int(share * len(content))])
        with pytest.raises(SimulatorError, match=r"\A[^\n]+cannot be read as a scene[^\n]+\Z"):
            check_scene(path)
        path.write_bytes(content)


VERTICES = ["property float x", "property float y", "property float z"]
FACES = ["property list uchar int vertex_indices"]


def ply(path, faces, *, order="<", corner=(0, 0, 0), properties=FACES, end=None) -> None:
    """Write a binary file of three corners, and of faces that are bytes."""
    name = "binary_little_endian" if order == "<" else "binary_big_endian"
    lines = ["ply", f"format {name} 1.0", "element vertex 3", *VERTICES,
             f"element face {len(faces)}", *properties, "end_header"]  # fmt: skip
    positions = struct.pack(f"{order}9f", *corner, 0, 0, 1, 1, 0, 0)
    path.write_bytes(("\n".join(lines) + "\n").encode() + (positions + b"".join(faces))[:end])


def face(*corners, order="<") -> bytes:
    return struct.pack(f"{order}B{len(corners)}i", len(corners), *corners)


@pytest.mark.parametrize("order", ["<", ">"])
def test_damage_inside_a_binary_ply_is_found(tmp_path, order) -> None:
    path, good = tmp_path / "scene.ply", face(0, 1, 2, order=order)
    ply(path, [good, good], order=order)
    check_scene(path)
    for bad in (face(0, 1, 99, order=order), face(0, -1, 2, order=order)):
        ply(path, [good, bad], order=order)
        with pytest.raises(SimulatorError, match="a corner that is not there"):
            check_scene(path)
    ply(path, [good], order=order, corner=(0, np.nan, 0))
    with pytest.raises(SimulatorError, match="corners are not numbers"):
        check_scene(path)
    square = face(0, 1, 2, 0, order=order)
    for end in (-1, -4):  # long enough for triangles
        ply(path, [square] * 4, order=order, end=end)
        with pytest.raises(SimulatorError, match="ends after 3 of 4 elements face"):
            check_scene(path)
    ply(path, [square] * 5, order=order, end=-17)
    with pytest.raises(SimulatorError, match="ends after 4 of 5 elements face"):
        check_scene(path)


def test_a_ply_may_have_empty_lists_and_faces_of_different_lengths(tmp_path) -> None:
    triangle, square = face(0, 1, 2), face(0, 1, 2, 0)
    for faces in ([triangle, square], [square, triangle], [square, square, triangle]):
        ply(tmp_path / "mixed.ply", faces)
        check_scene(tmp_path / "mixed.ply")
    textured = [*FACES, "property list uchar float texcoord"]
    ply(tmp_path / "empty.ply", [face(0, 1, 2) + b"\0"] * 2, properties=textured)
    check_scene(tmp_path / "empty.ply")


def test_scenes_without_triangles_and_missing_files_are_refused(tmp_path) -> None:
    trimesh.PointCloud(room().vertices).export(tmp_path / "points.ply")
    (tmp_path / "none.ply").write_bytes(b"ply\nformat ascii 1.0\nend_header\n")
    for name, message in (("none", "no corners"), ("gone", "there is no scene")):
        with pytest.raises(SimulatorError, match=message):
            check_scene(tmp_path / f"{name}.ply")


def test_textures_are_not_decoded_without_pillow(tmp_path, monkeypatch) -> None:
    glb(tmp_path / "scene.glb", break_texture)
    monkeypatch.setitem(sys.modules, "PIL", None)
    check_scene(tmp_path / "scene.glb")
