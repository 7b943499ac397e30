"""MiniGrid's `RoomGrid` as pure functions on a grid of rooms under construction.

A room is `(column, row)`. Its sides are numbered like the agent's directions: 0 right, 1 down,
2 left, 3 up. Two neighbours share one wall. Every function takes the layout and the rooms, and
returns new rooms.

MiniGrid samples until a sample is allowed, and raises `RecursionError` after 1000 samples (5000
in `connect_all`). These functions choose among allowed samples, and set `complete` to False if
there are none.
"""

from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, PRNGKeyArray, UInt8

from envs.minigrid import cells as c
from envs.minigrid.generators import generator as g
from envs.minigrid.level import DIRECTIONS, DOWN, RIGHT, make_level

Room = tuple[int | Int[Array, ""], int | Int[Array, ""]]  # (column, row)


class Layout(NamedTuple):
    """The shape of a grid of rooms."""

    room_size: int  # cells along a room's side, including both walls
    rows: int
    columns: int

    @property
    def width(self) -> int:
        return self.columns * (self.room_size - 1) + 1

    @property
    def height(self) -> int:
        return self.rows * (self.room_size - 1) + 1


class Walls(NamedTuple):
    """The walls shared by two rooms, as constants."""

    rooms: np.ndarray  # [walls, 2] the two rooms, numbered row by row
    corner: np.ndarray  # [walls, 2] (x, y) of the corner where the wall starts
    along: np.ndarray  # [walls, 2] one step along the wall
    at_side: np.ndarray  # [columns, rows, 4] the wall at each side of a room, -1 for outer walls


class Rooms(NamedTuple):
    """A grid of rooms under construction."""

    cells: UInt8[Array, "height width"]
    doorways: Int[Array, "walls 2"]  # (x, y) of each wall's (possible) door
    connected: Bool[Array, " walls"]  # whether the wall has a door or is removed
    locked: Bool[Array, "columns rows"]  # MiniGrid's `room.locked`
    agent_position: Int[Array, "2"]
    agent_direction: Int[Array, ""]
    complete: Bool[Array, ""]  # whether everything so far found a free cell


@cache
def shared_walls(layout: Layout) -> Walls:
    """List the shared walls, in the order in which MiniGrid samples the positions of doors."""
    step = layout.room_size - 1
    at_side = np.full((layout.columns, layout.rows, 4), -1, np.int32)
    rooms: list[list[int]] = []
    corner: list[list[int]] = []
    along: list[tuple[int, int]] = []
    for row, column, side in np.ndindex(layout.rows, layout.columns, 2):
        other = (column + DIRECTIONS[side][0], row + DIRECTIONS[side][1])
        if other[0] < layout.columns and other[1] < layout.rows:
            at_side[column, row, side] = at_side[*other, side + 2] = len(rooms)
            rooms.append([row * layout.columns + column, other[1] * layout.columns + other[0]])
            corner.append([other[0] * step, other[1] * step])
            along.append(DIRECTIONS[DOWN if side == RIGHT else RIGHT])
    return Walls(np.array(rooms), np.array(corner), np.array(along), at_side)


def empty_rooms(layout: Layout, key: PRNGKeyArray) -> Rooms:
    """Return closed, empty rooms with sampled door positions, and the agent in the middle."""
    walls, step = shared_walls(layout), layout.room_size - 1
    x, y = g.coordinates(layout.height, layout.width)
    is_wall = (x % step == 0) | (y % step == 0)
    offset = g.randints(key, (len(walls.rooms), 1), 1, step)
    middle = [size // 2 * step + layout.room_size // 2 for size in (layout.columns, layout.rows)]
    return Rooms(
        cells=jnp.where(is_wall, c.WALL, c.EMPTY).astype(jnp.uint8),
        doorways=walls.corner + walls.along * offset,
        connected=jnp.zeros(len(walls.rooms), bool),
        locked=jnp.zeros((layout.columns, layout.rows), bool),
        agent_position=jnp.array(middle, jnp.int32),
        agent_direction=jnp.int32(RIGHT),
        complete=jnp.array(True),
    )


def doorway(layout: Layout, rooms: Rooms, room: Room, side: int) -> Int[Array, "2"]:
    """Return (x, y) of the (possible) door of `room` on `side`."""
    return rooms.doorways[jnp.asarray(shared_walls(layout).at_side)[room[0], room[1], side]]


def add_door(
    layout: Layout, rooms: Rooms, room: Room, side: int, color: Int[Array, ""], *, locked: bool
) -> Rooms:
    """Add a closed or locked door (`RoomGrid.add_door`).

    Args:
        layout: the shape of the grid.
        rooms: the rooms under construction.
        room: (column, row) of the room that gets the door.
        side: side of that room.
        color: colour of the door.
        locked: whether the door is locked. Also becomes the `locked` flag of `room`.
    """
    wall = jnp.asarray(shared_walls(layout).at_side)[room[0], room[1], side]
    door = c.locked_door(color) if locked else c.closed_door(color)
    return rooms._replace(
        cells=g.set_cell(rooms.cells, rooms.doorways[wall], door),
        connected=rooms.connected | (jnp.arange(len(rooms.connected)) == wall),
        locked=rooms.locked.at[room[0], room[1]].set(locked),
    )


def remove_wall(layout: Layout, rooms: Rooms, room: tuple[int, int], side: int) -> Rooms:
    """Remove a wall except for its two ends (`RoomGrid.remove_wall`).

    Args:
        layout: the shape of the grid.
        rooms: the rooms under construction.
        room: (column, row) of a room at the wall.
        side: side of that room.
    """
    walls = shared_walls(layout)
    wall = walls.at_side[room[0], room[1], side]
    places = walls.corner[wall] + walls.along[wall] * np.arange(1, layout.room_size - 1)[:, None]
    return rooms._replace(
        cells=rooms.cells.at[places[:, 1], places[:, 0]].set(c.EMPTY),
        connected=rooms.connected.at[wall].set(True),
    )


def place_in_room(
    layout: Layout, rooms: Rooms, seed: g.Seed, room: Room, cell: Int[Array, ""] | int
) -> Rooms:
    """Place an object on a free cell of a room, at least two steps from the agent.

    Args:
        layout: the shape of the grid.
        rooms: the rooms under construction.
        seed: random seed of the position.
        room: (column, row) of the room.
        cell: byte of the object.
    """
    x, y = g.coordinates(layout.height, layout.width)
    agent_x, agent_y = rooms.agent_position
    distance = jnp.abs(x - agent_x) + jnp.abs(y - agent_y)
    allowed = (rooms.cells == c.EMPTY) & _inside(layout, room) & (distance >= 2)
    (row, column), found = g.choose(seed, allowed)
    placed = g.set_cell(rooms.cells, jnp.stack([column, row]), cell)
    return rooms._replace(
        cells=jnp.where(found, placed, rooms.cells), complete=rooms.complete & found
    )


def place_agent(layout: Layout, rooms: Rooms, seed: g.Seed, room: Room) -> Rooms:
    """Place the agent in a room, facing a free cell or a wall (`RoomGrid.place_agent`).

    Args:
        layout: the shape of the grid.
        rooms: the rooms under construction.
        seed: random seed of position and direction.
        room: (column, row) of the room.
    """
    free = rooms.cells == c.EMPTY
    can_face = free | (c.kind_of(rooms.cells) == c.KIND_WALL)
    faces = jnp.stack([jnp.roll(can_face, (-dy, -dx), (0, 1)) for dx, dy in DIRECTIONS])
    (direction, row, column), found = g.choose(seed, free & _inside(layout, room) & faces)
    return rooms._replace(
        agent_position=jnp.stack([column, row]).astype(jnp.int32),
        agent_direction=direction.astype(jnp.int32),
        complete=rooms.complete & found,
    )


def connect_all(layout: Layout, rooms: Rooms, key: PRNGKeyArray) -> Rooms:
    """Add doors to random walls until every room can be reached (`RoomGrid.connect_all`).

    MiniGrid samples walls, skips those connected already or of a locked room, and stops
    once all rooms are connected. All walls are equally likely. The walls that get a door are
    therefore the shortest prefix of a random order of the free walls that connects all rooms:
    every free wall up to the greatest rank on the way between any two rooms.
    """
    walls = shared_walls(layout)
    key_order, key_colors = jax.random.split(key)
    num_walls = len(walls.rooms)
    locked = rooms.locked.T.reshape(-1)[walls.rooms].any(1)
    free = ~rooms.connected & ~locked
    order = jax.random.bits(key_order, (num_walls,))
    rank = 1 + (order[None, :] < order[:, None]).sum(1, where=free[None, :])
    rank = jnp.where(rooms.connected, 0, jnp.where(free, rank, num_walls + 1))

    greatest = _greatest_rank_between_rooms(walls, rank, layout.rows * layout.columns)
    added = free & (rank <= greatest)
    x, y = g.coordinates(layout.height, layout.width)
    here = (x == rooms.doorways[:, 0, None, None]) & (y == rooms.doorways[:, 1, None, None])
    doors = c.closed_door(g.randints(key_colors, (num_walls,), 0, len(c.COLORS)))
    door_cells = jnp.where(here & added[:, None, None], doors[:, None, None], 0).max(0)
    return rooms._replace(
        cells=jnp.where(door_cells > 0, door_cells, rooms.cells).astype(jnp.uint8),
        connected=rooms.connected | added,
        complete=rooms.complete & (greatest <= num_walls),
    )


def finish(rooms: Rooms, task: int, target: Array | int, max_steps: int) -> g.SampledLevel:
    """Return the level, and whether it may be played, i.e. everything found a free cell."""
    level = make_level(
        rooms.cells,
        rooms.agent_position,
        rooms.agent_direction,
        task=task,
        target=target,
        max_steps=max_steps,
    )
    return level, rooms.complete


def _greatest_rank_between_rooms(
    walls: Walls, rank: Int[Array, " walls"], num_rooms: int
) -> Int[Array, ""]:
    """Return the smallest rank up to which walls must get doors to connect all rooms."""
    between = jnp.full((num_rooms, num_rooms), len(walls.rooms) + 1)
    between = between.at[walls.rooms[:, 0], walls.rooms[:, 1]].set(rank)
    between = between.at[walls.rooms[:, 1], walls.rooms[:, 0]].set(rank)
    between = jnp.where(jnp.eye(num_rooms, dtype=bool), 0, between)

    def through(room: Int[Array, ""] | int, between: Array) -> Array:
        return jnp.minimum(between, jnp.maximum(between[:, room, None], between[None, room, :]))

    return jax.lax.fori_loop(0, num_rooms, through, between).max()


def _inside(layout: Layout, room: Room) -> Bool[Array, "height width"]:
    """Return the mask of a room, including its walls."""
    x, y = g.coordinates(layout.height, layout.width)
    left, top = room[0] * (layout.room_size - 1), room[1] * (layout.room_size - 1)
    in_columns = (x >= left) & (x < left + layout.room_size)
    return in_columns & (y >= top) & (y < top + layout.room_size)
