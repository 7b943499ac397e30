"""Unlock, UnlockPickup and BlockedUnlockPickup: two rooms with a locked door between them.

Each generator calls the functions of `room_grid.py` in the order of MiniGrid's `_gen_grid`.
"""

import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from envs.minigrid import cells as c
from envs.minigrid.generators import generator as g
from envs.minigrid.generators import room_grid as r
from envs.minigrid.level import DIRECTIONS, OPEN_DOOR, PICK_UP, RIGHT, pack_position

ROOM_SIZE = 6
LAYOUT = r.Layout(ROOM_SIZE, rows=1, columns=2)


def unlock(name: str) -> g.Generator:
    """Return Unlock: open a locked door whose key is in the same room (MiniGrid's `UnlockEnv`)."""
    max_steps = 8 * ROOM_SIZE**2

    def sample_level(key: PRNGKeyArray) -> g.SampledLevel:
        seeds = g.split(key, 4)
        color = g.random_color(seeds[0])
        rooms = r.empty_rooms(LAYOUT, seeds[1].key)
        rooms = _locked_door_and_key(rooms, seeds[2], color)
        rooms = r.place_agent(LAYOUT, rooms, seeds[3], (0, 0))
        door = r.doorway(LAYOUT, rooms, (0, 0), RIGHT)
        return r.finish(rooms, OPEN_DOOR, pack_position(door[0], door[1]), max_steps)

    return g.make_generator(name, LAYOUT.width, LAYOUT.height, max_steps, OPEN_DOOR, sample_level)


def unlock_pickup(name: str) -> g.Generator:
    """Return UnlockPickup: a box behind a locked door (MiniGrid's `UnlockPickupEnv`)."""
    max_steps = 8 * ROOM_SIZE**2

    def sample_level(key: PRNGKeyArray) -> g.SampledLevel:
        seeds = g.split(key, 6)
        box = c.empty_box(g.random_color(seeds[0]))
        rooms = r.empty_rooms(LAYOUT, seeds[1].key)
        rooms = r.place_in_room(LAYOUT, rooms, seeds[2], (1, 0), box)
        rooms = _locked_door_and_key(rooms, seeds[4], g.random_color(seeds[3]))
        rooms = r.place_agent(LAYOUT, rooms, seeds[5], (0, 0))
        return r.finish(rooms, PICK_UP, box, max_steps)

    return g.make_generator(name, LAYOUT.width, LAYOUT.height, max_steps, PICK_UP, sample_level)


def blocked_unlock_pickup(name: str) -> g.Generator:
    """Return BlockedUnlockPickup: UnlockPickup with a ball that blocks the door."""
    max_steps = 16 * ROOM_SIZE**2

    def sample_level(key: PRNGKeyArray) -> g.SampledLevel:
        seeds = g.split(key, 7)
        door, ball, box = map(g.random_color, seeds[:3])
        box = c.empty_box(box)
        rooms = r.empty_rooms(LAYOUT, seeds[3].key)
        rooms = r.place_in_room(LAYOUT, rooms, seeds[4], (1, 0), box)
        in_front = r.doorway(LAYOUT, rooms, (0, 0), RIGHT) - jnp.array(DIRECTIONS[RIGHT])
        rooms = rooms._replace(cells=g.set_cell(rooms.cells, in_front, c.ball(ball)))
        rooms = _locked_door_and_key(rooms, seeds[5], door)
        return r.finish(r.place_agent(LAYOUT, rooms, seeds[6], (0, 0)), PICK_UP, box, max_steps)

    return g.make_generator(name, LAYOUT.width, LAYOUT.height, max_steps, PICK_UP, sample_level)


def _locked_door_and_key(rooms: r.Rooms, seed: g.Seed, color: Int[Array, ""]) -> r.Rooms:
    """Lock the door of the left room, and place its key in that room."""
    rooms = r.add_door(LAYOUT, rooms, (0, 0), RIGHT, color, locked=True)
    return r.place_in_room(LAYOUT, rooms, seed, (0, 0), c.key(color))
