"""Paint all faces of an apartment into one texture."""

import numpy as np

from envs.habitat.apartments.geometry import Face, Lamp, Spots, size
from envs.habitat.apartments.light import shine
from envs.habitat.mesh import Mesh

_PAD = 2  # texels around a face's rectangle, which renderers may blend in at its edge
_AREA_FACTOR = 1.12  # room for rectangles that do not fit tightly into the texture
_GAMMA = 2.2


def paint(faces: list[Face], lamps: list[Lamp], seed: int) -> Mesh:
    """Return the mesh of an apartment, with light and shadows painted into its one texture.

    Args:
        faces: all visible faces.
        lamps: all light sources.
        seed: of the random differences between faces of the same material.
    """
    triangles, owners, places = _triangles(faces)
    light = shine(faces, lamps, triangles)
    shapes = [_shape(face) for face in faces]
    corners, width, height = _pack(shapes)
    image = np.zeros((height, width, 3), np.uint8)
    generator = np.random.default_rng(seed)
    for face, lit, (rows, columns), (x, y) in zip(faces, light, shapes, corners, strict=True):
        texels = np.pad(
            _texels(face, lit, rows, columns, generator), ((_PAD,) * 2, (_PAD,) * 2, (0, 0)), "edge"
        )
        image[y : y + rows + 2 * _PAD, x : x + columns + 2 * _PAD] = texels
    frames = np.array([(x + _PAD, y + _PAD) for x, y in corners], float)[owners][:, None]
    sizes = np.array([(columns, rows) for rows, columns in shapes], float)[owners][:, None]
    place = (frames + places * sizes) / (width, height)
    return Mesh(
        vertices=triangles.reshape(-1, 3).astype(np.float32),
        faces=np.arange(3 * len(triangles), dtype=np.int32).reshape(-1, 3),
        texture=np.zeros(len(triangles), np.int32),
        texture_place=place.astype(np.float32),
        colors=np.full((len(triangles), 3, 3), 255, np.uint8),
        textures=(image,),
    )


def _triangles(faces: list[Face]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return triangles [T, 3, 3], their faces [T], and coordinates in these faces [T, 3, 2].

    Coordinates are in 0..1 from the top left, like texture coordinates.
    """
    triangles, owners, places = [], [], []
    for owner, face in enumerate(faces):
        outline = np.array(face.outline, float)
        corners = np.array(face.origin) + outline @ np.array([face.across, face.up])
        from_top = np.stack([outline[:, 0], 1.0 - outline[:, 1]], axis=-1)
        for index in range(1, len(outline) - 1):
            fan = [0, index, index + 1]
            triangles.append(corners[fan])
            places.append(from_top[fan])
            owners.append(owner)
    return np.array(triangles), np.array(owners), np.array(places)


def _shape(face: Face) -> tuple[int, int]:
    """Return the rows and columns of texels of a face."""
    width, height = (max(2, int(np.ceil(length * face.material.texels))) for length in size(face))
    return height, width


def _pack(shapes: list[tuple[int, int]]) -> tuple[list[tuple[int, int]], int, int]:
    """Pack rectangles next to each other on shelves.

    Returns:
        The (x, y) of each rectangle's corner, and the width and height of the whole.
    """
    padded = np.array(shapes) + 2 * _PAD
    width = int(max(np.sqrt(padded.prod(axis=1).sum() * _AREA_FACTOR), padded[:, 1].max()))
    corners = [(0, 0)] * len(shapes)
    x = y = shelf = 0
    for index in np.lexsort((padded[:, 1], padded[:, 0]))[::-1]:
        rows, columns = padded[index].tolist()
        if x + columns > width:
            x, y, shelf = 0, y + shelf, 0
        corners[index] = (x, y)
        x, shelf = x + columns, max(shelf, rows)
    return corners, width, y + shelf


def _texels(
    face: Face, lit: np.ndarray, rows: int, columns: int, generator: np.random.Generator
) -> np.ndarray:
    """Paint a face: uint8 [rows, columns, 3], with the first row at the top."""
    width, height = size(face)
    across, up = np.meshgrid(
        face.shift[0] + (np.arange(columns) + 0.5) / columns * width,
        face.shift[1] + (rows - 0.5 - np.arange(rows)) / rows * height,
    )
    color = face.material.color(Spots(across, up, (width, height), generator))
    color = np.clip(color, 0.0, 1.0)
    if not face.material.glows:
        light = _between(rows, lit.shape[0])[::-1] @ lit.reshape(lit.shape[0], -1)
        light = _between(columns, lit.shape[1]) @ light.reshape(rows, -1, 3)
        color = color * _tone(light) ** (1 / _GAMMA)
    return (np.clip(color, 0.0, 1.0) * 255).astype(np.uint8)


def _tone(light: np.ndarray) -> np.ndarray:
    """Return the brightness that an eye or a camera perceives; it has an upper limit."""
    return 1.15 * (1.0 - np.exp(-1.4 * light))


def _between(number: int, known: int) -> np.ndarray:
    """Return the weights [number, known] that interpolate between the centres of cells."""
    place = np.clip((np.arange(number) + 0.5) / number * known - 0.5, 0, known - 1)
    return np.maximum(1.0 - np.abs(place[:, None] - np.arange(known)), 0.0)
