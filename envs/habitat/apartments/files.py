"""Write apartments as files that habitat-sim and other programs read."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import trimesh
from PIL import Image

from envs.habitat.apartments import make_apartment
from envs.habitat.mesh import Mesh
from envs.habitat.scenes import STAGE_CONFIG


def paths(name: str, directory: Path) -> tuple[Path, Path]:
    """Return the two files that `write` makes: the scene, and its description."""
    return directory / f"{name}.glb", directory / f"{name}{STAGE_CONFIG}"


def write(name: str, directory: Path) -> Path:
    """Write an apartment into a directory, and return the path of the scene.

    The description says that y is up, because habitat-sim assumes z in a `.glb` without one.

    Raises:
        FileExistsError: one of the files already exists.
    """
    scene, description = paths(name, directory)
    config = {"render_asset": scene.name, "up": [0, 1, 0], "front": [0, 0, -1]}
    mesh: Any = as_trimesh(make_apartment(name)).export(file_type="glb")
    contents = {scene: mesh, description: json.dumps(config, indent=2).encode() + b"\n"}
    for path, content in contents.items():
        with path.open("xb") as file:
            try:
                file.write(content)
            except OSError:
                path.unlink()
                raise
    return scene


def as_trimesh(mesh: Mesh) -> trimesh.Trimesh:
    """Convert a mesh with one texture to trimesh's format."""
    (image,) = mesh.textures
    corners = mesh.texture_place.reshape(-1, 2)
    material = trimesh.visual.material.PBRMaterial(
        baseColorTexture=Image.fromarray(image), metallicFactor=0.0, roughnessFactor=1.0
    )
    visual = trimesh.visual.TextureVisuals(
        uv=np.stack([corners[:, 0], 1.0 - corners[:, 1]], axis=-1), material=material
    )
    return trimesh.Trimesh(mesh.vertices, mesh.faces, visual=visual, process=False)
