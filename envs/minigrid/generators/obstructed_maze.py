"""ObstructedMaze: a ball behind locked doors, with keys in boxes and balls that block doors.

MiniGrid's first layouts (v0, those of the paper) place the ball that blocks a door after the key
of the previous door. The ball may replace the box with that key: one level in 15 of 2Dlhb and
1Q, and one in 30 of 2Q, cannot be solved. (Full always has another way.) The corrected layouts
(v1) place the keys last, and all their levels can be solved.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from envs.minigrid import cells as c
from envs.minigrid.generators import generator as g
from envs.minigrid.generators import room_grid as r
from envs.minigrid.level import DIRECTIONS, PICK_UP, RIGHT

ROOM_SIZE = 6
TARGET, BLOCKING_BALL = c.ball(c.BLUE), c.ball(c.GREEN)
BOX_WITH_KEY = c.box(c.GREY, c.key(c.RED))
MIDDLE = (1, 1)
SIDE_ROOMS = ((2, 1), (1, 2), (0, 1), (1, 0))  # to the right of the middle one, below, ...
CORNERS = ((2, 0), (2, 2), (0, 2), (0, 0))


class LockedRoom(NamedTuple):
    """A room with locked doors and their keys."""

    room: tuple[int, int]  # (column, row)
    doors: tuple[tuple[int, int], ...]  # (side, index of its colour in the level)
    entrance: int | None = None  # index of the colour of the door to the middle room, if any


class Maze(NamedTuple):
    """The rooms of one ObstructedMaze, where it hides keys, and what blocks its doors."""

    layout: r.Layout
    locked_rooms: tuple[LockedRoom, ...]
    target_rooms: tuple[tuple[int, int], ...]  # rooms that may hold the target ball
    agent_room: tuple[int, int]
    num_rooms_visited: int  # length of a long path in rooms, which sets the time limit
    key_in_box: bool  # keys are hidden in boxes ("h")
    blocked: bool  # a ball is in front of each locked door ("b")
    keys_last: bool = False  # as in MiniGrid's corrected v1 layouts


def one_door(name: str, *, key_in_box: bool, blocked: bool) -> g.Generator:
    """Return ObstructedMaze-1D*: two rooms, one locked door (MiniGrid's `ObstructedMaze_1Dlhb`).

    Args:
        name: the environment's name.
        key_in_box: whether keys are hidden in boxes ("h").
        blocked: whether a ball is in front of each locked door ("b").
    """
    maze = Maze(
        layout=r.Layout(ROOM_SIZE, rows=1, columns=2),
        locked_rooms=(LockedRoom((0, 0), ((RIGHT, 0),)),),
        target_rooms=((1, 0),),
        agent_room=(0, 0),
        num_rooms_visited=2,
        key_in_box=key_in_box,
        blocked=blocked,
    )
    return _generator(name, maze)


def quarters(
    name: str,
    number: int,
    *,
    agent_room: tuple[int, int],
    num_rooms_visited: int,
    key_in_box: bool = True,
    blocked: bool = True,
    keys_last: bool = False,
) -> g.Generator:
    """Return ObstructedMaze-2D*, -1Q, -2Q or -Full: 3x3 rooms (`ObstructedMaze_Full`).

    Args:
        name: the environment's name.
        number: number of side rooms with doors, and of corner rooms that may hold the ball, 1 to 4.
        agent_room: (column, row) of the agent's first room.
        num_rooms_visited: length of a long path in rooms, which sets the time limit.
        key_in_box: whether keys are hidden in boxes ("h").
        blocked: whether a ball is in front of each locked door ("b").
        keys_last: whether to use MiniGrid's corrected v1 layouts.
    """
    locked_rooms = tuple(
        LockedRoom(
            room=SIDE_ROOMS[side],
            doors=tuple(((side + turn) % 4, (side + turn) % len(c.COLORS)) for turn in (-1, 1)),
            entrance=side,
        )
        for side in range(number)
    )
    maze = Maze(
        layout=r.Layout(ROOM_SIZE, rows=3, columns=3),
        locked_rooms=locked_rooms,
        target_rooms=CORNERS[:number],
        agent_room=agent_room,
        num_rooms_visited=num_rooms_visited,
        key_in_box=key_in_box,
        blocked=blocked,
        keys_last=keys_last,
    )
    return _generator(name, maze)


def _generator(name: str, maze: Maze) -> g.Generator:
    layout, max_steps = maze.layout, 4 * maze.num_rooms_visited * ROOM_SIZE**2

    def sample_level(key: PRNGKeyArray) -> g.SampledLevel:
        seeds = g.split(key, 5 + len(maze.locked_rooms))
        door_colors = jax.random.permutation(seeds[0].key, len(c.COLORS))
        rooms = r.empty_rooms(layout, seeds[1].key)
        for room, room_seed in zip(maze.locked_rooms, seeds[5:], strict=True):
            rooms = _add_locked_room(maze, rooms, room_seed.key, room, door_colors)
        target_rooms = jnp.array(maze.target_rooms)
        column, row = target_rooms[g.randint(seeds[2], 0, len(target_rooms))]
        rooms = r.place_in_room(layout, rooms, seeds[3], (column, row), TARGET)
        rooms = r.place_agent(layout, rooms, seeds[4], maze.agent_room)
        return r.finish(rooms, PICK_UP, TARGET, max_steps)

    return g.make_generator(name, layout.width, layout.height, max_steps, PICK_UP, sample_level)


def _add_locked_room(
    maze: Maze, rooms: r.Rooms, key: PRNGKeyArray, locked: LockedRoom, door_colors: Int[Array, "6"]
) -> r.Rooms:
    """Add a room's doors, the balls in front of them, and their keys (the maze's `add_door`)."""
    layout = maze.layout
    if locked.entrance is not None:
        color = door_colors[locked.entrance]
        rooms = r.add_door(layout, rooms, MIDDLE, locked.entrance, color, locked=False)
    doors = list(zip(g.split(key, len(locked.doors)), locked.doors, strict=True))
    for place_seed, (side, color_index) in doors:
        color = door_colors[color_index]
        rooms = r.add_door(layout, rooms, locked.room, side, color, locked=True)
        if maze.blocked:
            in_front = r.doorway(layout, rooms, locked.room, side) - jnp.array(DIRECTIONS[side])
            rooms = rooms._replace(cells=g.set_cell(rooms.cells, in_front, BLOCKING_BALL))
        if not maze.keys_last:
            rooms = _place_key(maze, rooms, place_seed, locked.room, color)
    for place_seed, (_, color_index) in doors if maze.keys_last else ():
        rooms = _place_key(maze, rooms, place_seed, locked.room, door_colors[color_index])
    return rooms


def _place_key(
    maze: Maze, rooms: r.Rooms, seed: g.Seed, room: r.Room, color: Int[Array, ""]
) -> r.Rooms:
    """Place a key, or the box that holds it."""
    cell = BOX_WITH_KEY + (color << 3) if maze.key_in_box else c.key(color)
    return r.place_in_room(maze.layout, rooms, seed, room, cell)
