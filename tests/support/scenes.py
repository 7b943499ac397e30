"""Scenes made by hand for the tests."""

import numpy as np
import trimesh
from PIL import Image

Box = tuple[tuple[float, float, float], tuple[float, float, float]]  # two corners

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)

SQUARE = np.array([(0, 0, 0), (2, 0, 0), (2, 2, 0), (0, 2, 0)], float)  # x to the right, y up
FACES = np.array([(0, 1, 2), (0, 2, 3)])


def room(width: float = 4.0, depth: float = 4.0, height: float = 2.5) -> trimesh.Trimesh:
    """The inside of a box: its floor around the origin at y = 0."""
    box = trimesh.creation.box((width, height, depth))
    box.apply_translation((0, height / 2, 0))
    box.invert()
    return box


def box(corners: Box) -> trimesh.Trimesh:
    low, high = np.array(corners)
    mesh = trimesh.creation.box(high - low)
    mesh.apply_translation((low + high) / 2)
    return mesh


def painted(mesh: trimesh.Trimesh, color: tuple[int, int, int]) -> trimesh.Trimesh:
    material = trimesh.visual.material.PBRMaterial(baseColorFactor=(*color, 255))
    mesh.visual = trimesh.visual.TextureVisuals(material=material)
    return mesh


def together(*meshes: trimesh.Trimesh) -> trimesh.Trimesh:
    return trimesh.util.concatenate([trimesh.Trimesh(m.vertices, m.faces) for m in meshes])


def four_walls() -> trimesh.Scene:
    """A room whose walls have a colour each: north red, west green, south blue, east white."""
    walls = {
        RED: ((-2, 0, -2.1), (2, 2.5, -2)),
        GREEN: ((-2.1, 0, -2), (-2, 2.5, 2)),
        BLUE: ((-2, 0, 2), (2, 2.5, 2.1)),
        WHITE: ((2, 0, -2), (2.1, 2.5, 2)),
    }
    floor = box(((-2, -0.1, -2), (2, 0, 2)))
    meshes = [painted(box(corners), color) for color, corners in walls.items()]
    return trimesh.Scene([*meshes, painted(floor, (90, 90, 90))])


def textured_square(places=((0, 0), (1, 0), (1, 1), (0, 1)), mode=None) -> trimesh.Trimesh:
    """A square whose picture is red and green above, blue and white below."""
    image = Image.fromarray(np.array([[RED, GREEN], [BLUE, WHITE]], np.uint8))
    if mode:
        image = image.convert(mode)
    material = trimesh.visual.material.PBRMaterial(baseColorTexture=image)
    visual = trimesh.visual.TextureVisuals(uv=np.array(places, float), material=material)
    return trimesh.Trimesh(SQUARE, FACES, visual=visual, process=False)
