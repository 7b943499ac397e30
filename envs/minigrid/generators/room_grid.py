"""The environments that MiniGrid builds from a grid of rooms."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, PRNGKeyArray

from envs.minigrid import cells as c
from envs.minigrid.generators import rooms as r
from envs.minigrid.generators.generator import Generator, put, random_color
from envs.minigrid.level import DIRECTIONS, PICK_UP, Level, make_level

DrawOne = Callable[[PRNGKeyArray], tuple[Level, Bool[Array, ""]]]


def key_corridor(name: str, room_size: int, rows: int) -> Generator:
    """KeyCorridor: a ball behind a locked door, its key in a room on the other side.

    Args:
        name: the environment's name.
        room_size: cells along a room's side, walls included (3 in S3R3).
        rows: rows of rooms (3 in S3R3).
    """
    layout = r.Layout(room_size, rows, columns=3)
    max_steps = 30 * room_size**2

    def draw_one(key: PRNGKeyArray) -> tuple[Level, Bool[Array, ""]]:
        keys = jax.random.split(key, 9)
        locked_row = jax.random.randint(keys[0], (), 0, rows)
        key_row = jax.random.randint(keys[1], (), 0, rows)
        door_color, ball_color = random_color(keys[2]), random_color(keys[3])
        ball = c.KIND_BALL << 3 | ball_color

        rooms = r.empty_rooms(layout, keys[4])
        for row in range(1, rows):
            rooms = r.remove_wall(layout, rooms, (1, row), r.UP)
        rooms = r.add_door(layout, rooms, (2, locked_row), r.LEFT, door_color, locked=True)
        rooms = r.place_in_room(layout, rooms, keys[5], (2, locked_row), ball)
        rooms = r.place_in_room(layout, rooms, keys[6], (0, key_row), c.KIND_KEY << 3 | door_color)
        rooms = r.place_agent(layout, rooms, keys[7], (1, rows // 2))
        rooms = r.connect_all(layout, rooms, keys[8])
        return _level(rooms, ball, max_steps), rooms.complete

    return _generator(name, layout, max_steps, draw_one)


def blocked_unlock_pickup(name: str) -> Generator:
    """BlockedUnlockPickup: a box behind a locked door, a ball in front of the door."""
    layout = r.Layout(room_size=6, rows=1, columns=2)
    max_steps = 16 * layout.room_size**2

    def draw_one(key: PRNGKeyArray) -> tuple[Level, Bool[Array, ""]]:
        keys = jax.random.split(key, 7)
        door_color, ball_color, box_color = (random_color(k) for k in keys[:3])
        box = c.KIND_BOX << 3 | box_color

        rooms = r.empty_rooms(layout, keys[3])
        rooms = r.place_in_room(layout, rooms, keys[4], (1, 0), box)
        rooms = r.add_door(layout, rooms, (0, 0), r.RIGHT, door_color, locked=True)
        before_door = r.doorway(layout, rooms, (0, 0), r.RIGHT) - jnp.array(DIRECTIONS[r.RIGHT])
        rooms = rooms._replace(cells=put(rooms.cells, before_door, c.KIND_BALL << 3 | ball_color))
        rooms = r.place_in_room(layout, rooms, keys[5], (0, 0), c.KIND_KEY << 3 | door_color)
        rooms = r.place_agent(layout, rooms, keys[6], (0, 0))
        return _level(rooms, box, max_steps), rooms.complete

    return _generator(name, layout, max_steps, draw_one)


def _level(rooms: r.Rooms, target: Array, max_steps: int) -> Level:
    return make_level(
        rooms.cells,
        rooms.agent_position,
        rooms.agent_direction,
        task=PICK_UP,
        target=target,
        max_steps=max_steps,
    )


def _generator(
    name: str,
    layout: r.Layout,
    max_steps: int,
    draw_one: DrawOne,
) -> Generator:
    draw = partial(_draw_all, draw_one)
    return Generator(name, layout.width, layout.height, max_steps, PICK_UP, draw)


def _draw_all(
    draw_one: DrawOne, key: PRNGKeyArray, count: int
) -> tuple[Level, Bool[Array, " count"]]:
    return jax.vmap(draw_one)(jax.random.split(key, count))
