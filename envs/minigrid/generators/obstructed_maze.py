"""ObstructedMaze: a ball to find behind locked doors, keys in boxes, balls that block doors.

MiniGrid's first layouts (v0, those of the paper) put the ball before a door after the key of
the door before it, so that a ball may destroy a box and the key in it: one level in 15 of 2Dlhb
and of 1Q and one in 30 of 2Q cannot be solved (in Full there is always another way). The
corrected layouts (v1) place the keys last, and all their levels can be solved.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from envs.minigrid import cells as c
from envs.minigrid.generators import room_grid as r
from envs.minigrid.generators.generator import Generator, one_by_one, put
from envs.minigrid.level import DIRECTIONS, PICK_UP

ROOM_SIZE = 6
MIDDLE = (1, 1)
SIDE_ROOMS = ((2, 1), (1, 2), (0, 1), (1, 0))  # to the right of the middle one, below, ...
CORNERS = ((2, 0), (2, 2), (0, 2), (0, 0))


class LockedRoom(NamedTuple):
    """A room with locked doors, and their keys."""

    room: tuple[int, int]  # (column, row)
    doors: tuple[tuple[int, int], ...]  # (side, which of the level's colours)
    entrance: int | None = None  # which of the level's colours its door to the middle room has


class Maze(NamedTuple):
    """What tells one ObstructedMaze from another."""

    layout: r.Layout
    locked_rooms: tuple[LockedRoom, ...]
    target_rooms: tuple[tuple[int, int], ...]  # one of them holds the ball to find
    agent_room: tuple[int, int]


def one_door(
    name: str,
    *,
    key_in_box: bool,
    blocked: bool,
    target_color: int = c.BLUE,
    blocking_color: int = c.GREEN,
    box_color: int = c.GREY,
) -> Generator:
    """ObstructedMaze-1D...: two rooms, one locked door (MiniGrid's `ObstructedMaze_1Dlhb`).

    Args:
        name: the environment's name.
        key_in_box: keys are hidden in boxes ("h").
        blocked: a ball stands before each locked door ("b").
        target_color: of the ball to find; no blocking ball may have it.
        blocking_color: of the balls that stand before doors.
        box_color: of the boxes that hide keys.

    Raises:
        ValueError: the ball to find could not be told from those that block.
    """
    layout = r.Layout(ROOM_SIZE, rows=1, columns=2)
    maze = Maze(layout, (LockedRoom((0, 0), ((r.RIGHT, 0),)),), ((1, 0),), (0, 0))
    colors = (target_color, blocking_color, box_color)
    return _generator(name, maze, 2, key_in_box, blocked, False, colors)


def quarters(
    name: str,
    number: int,
    *,
    agent_room: tuple[int, int],
    num_rooms_visited: int,
    key_in_box: bool = True,
    blocked: bool = True,
    keys_last: bool = False,
    target_color: int = c.BLUE,
    blocking_color: int = c.GREEN,
    box_color: int = c.GREY,
) -> Generator:
    """ObstructedMaze-2D..., -1Q, -2Q, -Full: 3x3 rooms (MiniGrid's `ObstructedMaze_Full`).

    Args:
        name: the environment's name.
        number: how many of the four side rooms have doors, and of the corners may hold the ball.
        agent_room: (column, row) of the room where the agent starts.
        num_rooms_visited: a long way through the maze, for the time limit.
        key_in_box: keys are hidden in boxes ("h").
        blocked: a ball stands before each locked door ("b").
        keys_last: MiniGrid's corrected v1 layouts.
        target_color: of the ball to find; no blocking ball may have it.
        blocking_color: of the balls that stand before doors.
        box_color: of the boxes that hide keys.

    Raises:
        ValueError: `number` is not 1 to 4, or as in `one_door`.
    """
    if not 1 <= number <= len(SIDE_ROOMS):
        raise ValueError(f"a maze has 1 to {len(SIDE_ROOMS)} quarters, not {number}")
    locked_rooms = tuple(
        LockedRoom(
            room=SIDE_ROOMS[side],
            doors=tuple(((side + turn) % 4, (side + turn) % len(c.COLORS)) for turn in (-1, 1)),
            entrance=side,
        )
        for side in range(number)
    )
    layout = r.Layout(ROOM_SIZE, rows=3, columns=3)
    maze = Maze(layout, locked_rooms, CORNERS[:number], agent_room)
    colors = (target_color, blocking_color, box_color)
    return _generator(name, maze, num_rooms_visited, key_in_box, blocked, keys_last, colors)


def _generator(
    name: str,
    maze: Maze,
    num_rooms_visited: int,
    key_in_box: bool,
    blocked: bool,
    keys_last: bool,
    colors: tuple[int, int, int],
) -> Generator:
    target_color, blocking_color, box_color = colors
    if blocked and target_color == blocking_color:
        raise ValueError("the ball to find must not have the colour of those that block doors")
    layout, target = maze.layout, c.ball(target_color)
    max_steps = 4 * num_rooms_visited * ROOM_SIZE**2
    holder = (c.KIND_BOX_KEY << 3) | box_color if key_in_box else None

    def draw_one(key: PRNGKeyArray) -> r.Drawn:
        keys = jax.random.split(key, 5 + len(maze.locked_rooms))
        door_colors = jax.random.permutation(keys[0], len(c.COLORS))
        rooms = r.empty_rooms(layout, keys[1])
        for room, room_key in zip(maze.locked_rooms, keys[5:], strict=True):
            rooms = _add_locked_room(
                layout, rooms, room_key, room, door_colors, holder, keys_last,
                c.ball(blocking_color) if blocked else None,
            )  # fmt: skip
        target_rooms = jnp.array(maze.target_rooms)
        column, row = target_rooms[jax.random.randint(keys[2], (), 0, len(target_rooms))]
        rooms = r.place_in_room(layout, rooms, keys[3], (column, row), target)
        rooms = r.place_agent(layout, rooms, keys[4], maze.agent_room)
        return r.finish(rooms, PICK_UP, jnp.asarray(target), max_steps)

    return one_by_one(name, layout.width, layout.height, max_steps, PICK_UP, draw_one)


def _add_locked_room(
    layout: r.Layout,
    rooms: r.Rooms,
    key: PRNGKeyArray,
    locked: LockedRoom,
    door_colors: Int[Array, "6"],
    holder: int | None,
    keys_last: bool,
    blocking_ball: int | None,
) -> r.Rooms:
    """Adds a room's doors, the balls before them and their keys (`add_door` of MiniGrid's maze)."""
    if locked.entrance is not None:
        color = door_colors[locked.entrance]
        rooms = r.add_door(layout, rooms, MIDDLE, locked.entrance, color, locked=False)
    key_places = list(zip(jax.random.split(key, len(locked.doors)), locked.doors, strict=True))
    for place_key, (side, which) in key_places:
        color = door_colors[which]
        rooms = r.add_door(layout, rooms, locked.room, side, color, locked=True)
        if blocking_ball is not None:
            before = r.doorway(layout, rooms, locked.room, side) - jnp.array(DIRECTIONS[side])
            rooms = rooms._replace(cells=put(rooms.cells, before, blocking_ball))
        if not keys_last:
            rooms = _place_key(layout, rooms, place_key, locked.room, color, holder)
    if keys_last:
        for place_key, (_, which) in key_places:
            rooms = _place_key(layout, rooms, place_key, locked.room, door_colors[which], holder)
    return rooms


def _place_key(
    layout: r.Layout,
    rooms: r.Rooms,
    key: PRNGKeyArray,
    room: r.Room,
    color: Int[Array, ""],
    holder: int | None,
) -> r.Rooms:
    """Places a key, or the box that holds it."""
    lying = c.KIND_KEY << 3 | color
    return r.place_in_room(
        layout, rooms, key, room, lying if holder is None else holder + (color << 3)
    )
