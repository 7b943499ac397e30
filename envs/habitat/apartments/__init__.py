"""Nine furnished apartments, drawn from numbers: the same name always gives the same one."""

import zlib

import numpy as np

from envs.habitat.apartments.atlas import paint
from envs.habitat.apartments.furnish import furnish
from envs.habitat.apartments.geometry import Color, Material
from envs.habitat.apartments.plans import PLANS, kind
from envs.habitat.apartments.shell import (
    build,
    ceiling_lamp,
    doorway_faces,
    room_faces,
    window_lamps,
)
from envs.habitat.apartments.surfaces import bricks, carpet, dado, plain, planks, stripes, tiles
from envs.habitat.mesh import Surface

NAMES = tuple(PLANS)

_WALLS: tuple[Color, ...] = (
    (0.9, 0.87, 0.8), (0.72, 0.8, 0.84), (0.8, 0.84, 0.72), (0.93, 0.82, 0.66), (0.84, 0.72, 0.72),
    (0.62, 0.7, 0.68), (0.88, 0.88, 0.88), (0.78, 0.74, 0.86),
)  # fmt: skip
_FLOORS: tuple[Color, ...] = (
    (0.62, 0.44, 0.28), (0.78, 0.62, 0.44), (0.4, 0.27, 0.18), (0.7, 0.56, 0.42),
)  # fmt: skip
_CARPETS: tuple[Color, ...] = (
    (0.5, 0.46, 0.42), (0.36, 0.42, 0.5), (0.52, 0.42, 0.36), (0.4, 0.48, 0.4), (0.55, 0.5, 0.6),
)  # fmt: skip
_LIGHTS: tuple[Color, ...] = ((1.0, 0.86, 0.68), (1.0, 0.95, 0.86), (0.92, 0.96, 1.0))
_WET = ("bathroom", "kitchen")


def draw(name: str) -> Surface:
    """Draws the apartment of that name, one of `NAMES`."""
    plan, seed = PLANS[name], zlib.crc32(name.encode())
    generator = np.random.default_rng(seed)
    faces, lamps = [], []
    for room in build(plan):
        floor, wall = _floor(kind(room.name), generator), _wall(kind(room.name), generator)
        faces += room_faces(room, plan, floor, wall, plain((0.93, 0.92, 0.9), 0.02, 8.0))
        color = _LIGHTS[int(generator.integers(len(_LIGHTS)))]
        fixture, lamp = ceiling_lamp(room, plan, color, float(generator.uniform(0.55, 1.15)))
        inside = furnish(room, generator)
        faces += [*fixture, *inside.faces]
        lamps += [lamp, *window_lamps(room, plan), *inside.lamps]
        for side in room.walls:
            for door, span in side.doors:
                if door.rooms[0] == room.name:
                    faces += doorway_faces(side, span)
    return paint(faces, lamps, seed)


def _pick(generator: np.random.Generator, colors: tuple[Color, ...]) -> Color:
    return colors[int(generator.integers(len(colors)))]


def _floor(room: str, generator: np.random.Generator) -> Material:
    if room in _WET:
        color = _pick(generator, _WALLS)
        other = _pick(generator, _CARPETS) if room == "kitchen" else (0.8, 0.82, 0.84)
        return tiles(color, other, 0.4)
    if room in ("bedroom", "hotel", "office", "meeting", "child"):
        return carpet(_pick(generator, _CARPETS))
    return planks(_pick(generator, _FLOORS))


def _wall(room: str, generator: np.random.Generator) -> Material:
    color = _pick(generator, _WALLS)
    upper = plain(color)
    if room == "bathroom":
        return dado(tiles((0.92, 0.94, 0.95), _pick(generator, _WALLS), 0.24), upper, 1.5)
    chance = generator.random()
    if chance < 0.2:
        return bricks((0.66, 0.36, 0.28))
    if chance < 0.45:
        darker = (color[0] * 0.86, color[1] * 0.86, color[2] * 0.9)
        return stripes(color, darker, 0.18)
    if chance < 0.65:
        return dado(plain((0.55, 0.42, 0.3), 0.08), upper, 0.9)
    return upper
