"""Read the triangles of a `.glb`, `.gltf` or `.ply` file, with textures or colours.

Importing this module imports trimesh, which takes seconds.
"""

from typing import Any

import numpy as np
import trimesh

from envs.habitat import gltf
from envs.habitat.raycast.mesh import Mesh
from envs.habitat.scene_check import check_file
from envs.habitat.scenes import Frame, Stage, line
from envs.habitat.simulator import SimulatorError

TEXELS_PER_METRE = 48  # finer textures are averaged: pixels of views are coarser
_GREY = (178, 178, 178)  # colour of triangles without one


def read(stage: Stage) -> Mesh:
    """Read the triangles of a scene, rotated into its frame.

    Raises:
        SimulatorError: the file is missing or damaged, has no triangles, is scaled, or has colours
            or texture coordinates that trimesh misreads.
    """
    path = stage.path
    check_file(path)
    scale = stage.settings.get("units_to_meters", 1), *np.ravel(stage.settings.get("scale", 1))
    if any(number != 1 for number in scale):
        raise SimulatorError(f"{path} is scaled by its description: the ray caster takes metres")
    try:
        misread = gltf.misread(gltf.content(path))
        pieces = [] if misread else list(_pieces(trimesh.load_scene(path, process=False)))
    except Exception as error:  # each reader raises its own
        raise SimulatorError(f"{path} cannot be read as a scene: {line(error)}") from error
    if misread:
        raise SimulatorError(f"{path}: {misread}, which trimesh misreads: export it with floats")
    if not pieces:
        raise SimulatorError(f"the scene {path} has no triangles")
    mesh = _merge(pieces)
    if not np.isfinite(mesh.vertices).all():
        raise SimulatorError(f"the scene {path} is damaged: some corners are not numbers")
    turned = mesh.vertices @ rotation(stage.frame).T
    return _coarsen(mesh._replace(vertices=turned.astype(np.float32)))


def rotation(frame: Frame) -> np.ndarray:
    """Return the matrix that rotates the frame's `up` to +y and its `front` to -z."""
    y, ahead = np.asarray(frame.up, float), np.asarray(frame.front, float)
    y, z = y / np.linalg.norm(y), -ahead / np.linalg.norm(ahead)
    return np.stack([np.cross(y, z), y, z])


def _pieces(scene: trimesh.Scene) -> Any:
    """Yield every mesh of a scene at its position."""
    for node in scene.graph.nodes_geometry:
        transform, name = scene.graph[node]
        mesh = scene.geometry[name]
        if isinstance(mesh, trimesh.Trimesh) and len(mesh.faces):
            yield _piece(mesh, np.asarray(transform))


def _piece(mesh: trimesh.Trimesh, transform: np.ndarray) -> Mesh:
    vertices = np.asarray(mesh.vertices) @ transform[:3, :3].T + transform[:3, 3]
    faces = np.asarray(mesh.faces, np.int32)
    colors = _colors(mesh, faces)
    image, places = _image(mesh)
    corners = places[faces].astype(np.float32)
    if np.linalg.det(transform[:3, :3]) < 0:  # a reflection: keep triangles facing outwards
        faces, colors, corners = faces[:, ::-1], colors[:, ::-1], corners[:, ::-1]
    return Mesh(
        vertices=vertices,
        faces=faces,
        texture=np.full(len(faces), -1 if image is None else 0, np.int32),
        texture_place=corners,
        colors=colors,
        textures=() if image is None else (image,),
    )


def _image(mesh: trimesh.Trimesh) -> tuple[np.ndarray | None, np.ndarray]:
    """Return a mesh's texture (or None), and the texture coordinates of its vertices."""
    visual: Any = mesh.visual
    material = getattr(visual, "material", None)
    image = getattr(material, "baseColorTexture", None)
    image = getattr(material, "image", None) if image is None else image
    places = getattr(visual, "uv", None)
    if image is None or places is None or len(places) != len(mesh.vertices):
        return None, np.zeros((len(mesh.vertices), 2))
    across, up = np.nan_to_num(np.asarray(places, float)).T
    return np.asarray(image.convert("RGB")), np.stack([across, 1.0 - up], axis=-1)


def _colors(mesh: trimesh.Trimesh, faces: np.ndarray) -> np.ndarray:
    """Return the corners' colours: the material's times those of vertices or faces."""
    visual: Any = mesh.visual
    if visual.kind == "face":
        return np.repeat(np.asarray(visual.face_colors)[:, None, :3], 3, axis=1)
    if visual.kind == "vertex":
        return np.asarray(visual.vertex_colors)[:, :3][faces]
    material = getattr(visual, "material", None)
    color = getattr(material, "baseColorFactor", None)
    if color is None:
        textured = getattr(visual, "uv", None) is not None and _image(mesh)[0] is not None
        color = (255, 255, 255) if textured else getattr(material, "main_color", _GREY)
    colors = np.broadcast_to(_as_bytes(color)[:3], (*faces.shape, 3))
    of_vertices: Any = getattr(visual, "vertex_attributes", {}).get("color")
    if of_vertices is not None and len(of_vertices) == len(mesh.vertices):
        colors = colors * (_as_bytes(of_vertices)[:, :3][faces] / 255.0)
    return colors.astype(np.uint8)


def _as_bytes(color: Any) -> np.ndarray:
    """Return colours in 0..255, from floats in 0..1 or from integers."""
    color = np.asarray(color)
    return np.clip(color * 255.0 if np.issubdtype(color.dtype, np.floating) else color, 0, 255)


def _merge(pieces: list[Mesh]) -> Mesh:
    vertex, texture = 0, 0
    moved = []
    for piece in pieces:
        shift = np.where(piece.texture < 0, 0, texture).astype(np.int32)
        moved.append(piece._replace(faces=piece.faces + vertex, texture=piece.texture + shift))
        vertex += len(piece.vertices)
        texture += len(piece.textures)
    return Mesh(
        vertices=np.concatenate([piece.vertices for piece in moved]),
        faces=np.concatenate([piece.faces for piece in moved]).astype(np.int32),
        texture=np.concatenate([piece.texture for piece in moved]),
        texture_place=np.concatenate([piece.texture_place for piece in moved]),
        colors=np.concatenate([piece.colors for piece in moved]),
        textures=tuple(image for piece in moved for image in piece.textures),
    )


def _coarsen(mesh: Mesh) -> Mesh:
    """Average textures down to about `TEXELS_PER_METRE`."""
    textures = []
    for index, image in enumerate(mesh.textures):
        faces = mesh.texture == index
        metres = _areas(mesh.vertices[mesh.faces[faces]]).sum()
        place = mesh.texture_place[faces] * (image.shape[1], image.shape[0])
        texels = _areas(place).sum()
        finer = np.sqrt(texels / max(metres, 1e-9)) / TEXELS_PER_METRE
        halvings = max(0, int(np.log2(max(finer, 1.0))))
        for _ in range(halvings):
            if min(image.shape[:2]) < 2:
                break
            height, width = image.shape[0] // 2 * 2, image.shape[1] // 2 * 2
            blocks = image[:height, :width].reshape(height // 2, 2, width // 2, 2, 3)
            image = blocks.mean(axis=(1, 3)).round().astype(np.uint8)
        textures.append(image)
    return mesh._replace(textures=tuple(textures))


def _areas(corners: np.ndarray) -> np.ndarray:
    """Return the areas of triangles [F, 3, 2 or 3]."""
    first, second = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    products = [(first * first).sum(-1), (second * second).sum(-1), (first * second).sum(-1)]
    return 0.5 * np.sqrt(np.maximum(products[0] * products[1] - products[2] ** 2, 0.0))
