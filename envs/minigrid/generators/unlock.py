"""Unlock, UnlockPickup and BlockedUnlockPickup: two rooms with a locked door between them.

Each generator calls the functions of `room_grid.py` in the order of MiniGrid's `_gen_grid`.
"""

import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from envs.minigrid import cells as c
from envs.minigrid.generators import room_grid as r
from envs.minigrid.generators.generator import (
    Generator,
    SampledLevel,
    Seed,
    color_or_random,
    make_generator,
    set_cell,
    split,
)
from envs.minigrid.level import DIRECTIONS, OPEN_DOOR, PICK_UP, pack_position

MIN_ROOM_SIZE = 4  # one room must hold agent, key and ball, the other a box


def unlock(name: str, room_size: int = 6, door_color: int | None = None) -> Generator:
    """Return Unlock: open a locked door whose key is in the same room (MiniGrid's `UnlockEnv`).

    Args:
        name: the environment's name.
        room_size: cells along a room's side, including both walls.
        door_color: colour of the door and its key (default: random for each level).

    Raises:
        ValueError: the rooms are too small.
    """
    layout = _two_rooms(room_size)
    max_steps = 8 * room_size**2

    def sample_level(key: PRNGKeyArray) -> SampledLevel:
        seeds = split(key, 4)
        color = color_or_random(door_color, seeds[0])
        rooms = r.empty_rooms(layout, seeds[1].key)
        rooms = _locked_door_and_key(layout, rooms, seeds[2], color)
        rooms = r.place_agent(layout, rooms, seeds[3], (0, 0))
        door = r.doorway(layout, rooms, (0, 0), r.RIGHT)
        return r.finish(rooms, OPEN_DOOR, jnp.asarray(pack_position(door[0], door[1])), max_steps)

    return make_generator(name, layout.width, layout.height, max_steps, OPEN_DOOR, sample_level)


def unlock_pickup(
    name: str, room_size: int = 6, door_color: int | None = None, box_color: int | None = None
) -> Generator:
    """Return UnlockPickup: a box behind a locked door (MiniGrid's `UnlockPickupEnv`).

    Args:
        name: the environment's name.
        room_size: cells along a room's side, including both walls.
        door_color: colour of the door and its key (default: random for each level).
        box_color: colour of the box (default: random for each level).

    Raises:
        ValueError: the rooms are too small.
    """
    layout = _two_rooms(room_size)
    max_steps = 8 * room_size**2

    def sample_level(key: PRNGKeyArray) -> SampledLevel:
        seeds = split(key, 6)
        box = c.KIND_BOX << 3 | color_or_random(box_color, seeds[0])
        rooms = r.empty_rooms(layout, seeds[1].key)
        rooms = r.place_in_room(layout, rooms, seeds[2], (1, 0), box)
        color = color_or_random(door_color, seeds[3])
        rooms = _locked_door_and_key(layout, rooms, seeds[4], color)
        rooms = r.place_agent(layout, rooms, seeds[5], (0, 0))
        return r.finish(rooms, PICK_UP, box, max_steps)

    return make_generator(name, layout.width, layout.height, max_steps, PICK_UP, sample_level)


def blocked_unlock_pickup(
    name: str,
    room_size: int = 6,
    door_color: int | None = None,
    ball_color: int | None = None,
    box_color: int | None = None,
) -> Generator:
    """Return BlockedUnlockPickup: UnlockPickup with a ball that blocks the door.

    Args:
        name: the environment's name.
        room_size: cells along a room's side, including both walls.
        door_color: colour of the door and its key (default: random for each level).
        ball_color: colour of the ball (default: random for each level).
        box_color: colour of the box (default: random for each level).

    Raises:
        ValueError: the rooms are too small.
    """
    layout = _two_rooms(room_size)
    max_steps = 16 * room_size**2

    def sample_level(key: PRNGKeyArray) -> SampledLevel:
        seeds = split(key, 7)
        colors = (door_color, ball_color, box_color)
        door, ball, box = (color_or_random(*pair) for pair in zip(colors, seeds[:3], strict=True))
        box = c.KIND_BOX << 3 | box
        rooms = r.empty_rooms(layout, seeds[3].key)
        rooms = r.place_in_room(layout, rooms, seeds[4], (1, 0), box)
        in_front = r.doorway(layout, rooms, (0, 0), r.RIGHT) - jnp.array(DIRECTIONS[r.RIGHT])
        rooms = rooms._replace(cells=set_cell(rooms.cells, in_front, c.KIND_BALL << 3 | ball))
        rooms = _locked_door_and_key(layout, rooms, seeds[5], door)
        rooms = r.place_agent(layout, rooms, seeds[6], (0, 0))
        return r.finish(rooms, PICK_UP, box, max_steps)

    return make_generator(name, layout.width, layout.height, max_steps, PICK_UP, sample_level)


def _two_rooms(room_size: int) -> r.Layout:
    if room_size < MIN_ROOM_SIZE:
        raise ValueError(f"rooms need a size of at least {MIN_ROOM_SIZE}, not {room_size}")
    return r.Layout(room_size, rows=1, columns=2)


def _locked_door_and_key(
    layout: r.Layout, rooms: r.Rooms, seed: Seed, color: Int[Array, ""]
) -> r.Rooms:
    """Lock the door of the left room, and place its key in that room."""
    rooms = r.add_door(layout, rooms, (0, 0), r.RIGHT, color, locked=True)
    return r.place_in_room(layout, rooms, seed, (0, 0), c.KIND_KEY << 3 | color)
