"""Writing apartments as files that other programs read, habitat-sim among them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import trimesh
from PIL import Image

from envs.habitat.apartments import draw
from envs.habitat.mesh import Surface
from envs.habitat.simulator import STAGE_CONFIG


def paths(name: str, directory: Path) -> tuple[Path, Path]:
    """Returns where `write` puts an apartment: the scene, and its description beside it."""
    return directory / f"{name}.glb", directory / f"{name}{STAGE_CONFIG}"


def write(name: str, directory: Path) -> Path:
    """Writes an apartment into a directory, and returns the scene's path.

    habitat-sim takes a bare `.glb` for one with z up; the description says that it is not.

    Raises:
        FileExistsError: one of its files is there already.
    """
    scene, description = paths(name, directory)
    config = {"render_asset": scene.name, "up": [0, 1, 0], "front": [0, 0, -1]}
    mesh: Any = as_mesh(draw(name)).export(file_type="glb")
    contents = {scene: mesh, description: json.dumps(config, indent=2).encode() + b"\n"}
    for path, content in contents.items():
        with path.open("xb") as file:
            try:
                file.write(content)
            except OSError:
                path.unlink()
                raise
    return scene


def as_mesh(surface: Surface) -> trimesh.Trimesh:
    """Returns a surface of one texture as trimesh's mesh."""
    (image,) = surface.textures
    corners = surface.texture_place.reshape(-1, 2)
    material = trimesh.visual.material.PBRMaterial(
        baseColorTexture=Image.fromarray(image), metallicFactor=0.0, roughnessFactor=1.0
    )
    visual = trimesh.visual.TextureVisuals(
        uv=np.stack([corners[:, 0], 1.0 - corners[:, 1]], axis=-1), material=material
    )
    return trimesh.Trimesh(surface.vertices, surface.faces, visual=visual, process=False)
