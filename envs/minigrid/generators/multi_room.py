"""MultiRoom: a chain of rooms with a door between each two, and the goal in the last.

MiniGrid places the first room anywhere on a 25 x 25 grid, tries each next room up to 8 times
behind a random wall of the last one, and starts again from nothing when all 8 tries fail
(`MultiRoomEnv._placeRoom`; it never goes back by one room only). Its asymmetries are kept: a
room may touch the right edge of the grid but not the lower one, and is not tested against the
room it hangs on.

Here many chains grow side by side, one room each at a time. A chain that fails starts anew, a
chain that is complete is handed out and starts anew, until enough are complete. Thus no draw
waits for another one's bad luck. Whether a chain is handed out depends on nothing but its
being complete, and all take the same time from their start, so the distribution is MiniGrid's.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray, UInt8, UInt32

from envs.minigrid import cells as c
from envs.minigrid.generators.generator import Generator, coordinates, put, random_color
from envs.minigrid.level import DIRECTIONS, REACH_GOAL, Level, make_level, place

SIZE = 25  # of the grid
MIN_ROOM_SIZE = 4  # walls included
MAX_ROOM_SIZE = 10  # MiniGrid's default
TRIES = 8  # for each next room
CHAINS_PER_LEVEL = 2  # chains that grow side by side, for each level asked for
MAX_ROUNDS = 1_000_000  # far beyond what any draw takes; then a level is not `ok`
STEPS_PER_ROOM = 20
WORDS = 9  # random words that one try takes
LEFT = 2  # the side at which MiniGrid has the first room entered


class Room(NamedTuple):
    """One room of a chain, or (with a leading axis) several."""

    top: Int[Array, "*rooms 2"]  # (x, y) of its upper left corner
    size: Int[Array, "*rooms 2"]  # (width, height), walls included
    door: Int[Array, "*rooms 2"]  # (x, y) of the door it is entered by
    entry: Int[Array, "*rooms"]  # the side of that door: 0 right, 1 down, 2 left, 3 up


class Chain(NamedTuple):
    """A chain of rooms while it grows."""

    rooms: Room  # [num_rooms], of which the first `length` are placed
    length: Int[Array, ""]


class Growth(NamedTuple):
    """Many chains growing side by side."""

    key: PRNGKeyArray
    chains: Chain  # arrays [chains, ...]
    complete: Room  # arrays [count, num_rooms, ...], of which the first `done` are filled
    done: Int[Array, ""]  # may exceed `count`: the last round may complete too many
    rounds: Int[Array, ""]


def multi_room(
    name: str, num_rooms: int, max_room_size: int = MAX_ROOM_SIZE, *, noisy_ball: bool = False
) -> Generator:
    """MultiRoom with a fixed number of rooms, as all of MiniGrid's registered ones have.

    Args:
        name: the environment's name.
        num_rooms: rooms in the chain.
        max_room_size: greatest width and height of a room, walls included (at least 4).
        noisy_ball: a ball in the first room changes its colour at every `drop` (MultiRoomNoisyTV;
            paper, appendix "noisy environment").

    Raises:
        ValueError: fewer than two rooms, or rooms too small.
    """
    if num_rooms < 2 or max_room_size < MIN_ROOM_SIZE:
        raise ValueError(f"no chain of {num_rooms} rooms of size {max_room_size}")
    max_steps = num_rooms * STEPS_PER_ROOM
    furnish = partial(_furnish, max_steps=max_steps, noisy_ball=noisy_ball)

    def draw(key: PRNGKeyArray, count: int) -> tuple[Level, Bool[Array, " count"]]:
        key_chains, key_levels = jax.random.split(key)
        chains, ok = _draw_chains(key_chains, count, num_rooms, max_room_size)
        keys = jax.random.split(key_levels, count)
        return jax.vmap(furnish)(keys, chains), ok

    return Generator(name, SIZE, SIZE, max_steps, REACH_GOAL, draw)


def _draw_chains(
    key: PRNGKeyArray, count: int, num_rooms: int, max_room_size: int
) -> tuple[Room, Bool[Array, " count"]]:
    """Grows chains until `count` of them are complete: rooms `[count, num_rooms]`, and which."""
    num_chains = CHAINS_PER_LEVEL * count
    pair = jnp.zeros((num_chains, num_rooms, 2), jnp.int32)
    chains = Chain(Room(pair, pair, pair, pair[..., 0]), jnp.zeros(num_chains, jnp.int32))
    complete = jax.tree.map(lambda leaf: leaf[:count], chains.rooms)

    def unfinished(growth: Growth) -> Bool[Array, ""]:
        return (growth.done < count) & (growth.rounds < MAX_ROUNDS)

    def next_round(growth: Growth) -> Growth:
        key, chains, complete, done, rounds = growth
        key, key_bits = jax.random.split(key)
        bits = jax.random.bits(key_bits, (num_chains, TRIES, WORDS))
        chains = jax.vmap(_grow, (0, 0, None))(bits, chains, max_room_size)
        ready = chains.length == num_rooms
        slot = jnp.where(ready, done + jnp.cumsum(ready) - 1, count)
        complete = jax.tree.map(
            lambda old, new: old.at[slot].set(new, mode="drop"), complete, chains.rooms
        )
        chains = chains._replace(length=jnp.where(ready, 0, chains.length))
        return Growth(key, chains, complete, done + ready.sum(dtype=jnp.int32), rounds + 1)

    start = Growth(key, chains, complete, jnp.int32(0), jnp.int32(0))
    grown = jax.lax.while_loop(unfinished, next_round, start)
    return grown.complete, jnp.arange(count) < grown.done


def _grow(bits: UInt32[Array, "TRIES WORDS"], chain: Chain, max_room_size: int) -> Chain:
    """Adds one room to a chain, or empties the chain where none fits."""
    last = jax.tree.map(lambda leaf: leaf[chain.length - 1], chain.rooms)
    tries = jax.vmap(_try_room, (0, None, None, None))(bits, last, chain.length == 0, max_room_size)
    fits = jax.vmap(_fits, (0, None))(tries, chain)
    # The first room has one try only: MiniGrid draws its size once for each chain.
    fits &= (chain.length > 0) | (jnp.arange(TRIES) == 0)
    room = jax.tree.map(lambda leaf: leaf[jnp.argmax(fits)], tries)
    length = jnp.where(fits.any(), chain.length + 1, 0)
    rooms = jax.tree.map(lambda all_, one: all_.at[chain.length].set(one), chain.rooms, room)
    return Chain(rooms, length)


def _try_room(
    bits: UInt32[Array, " WORDS"], last: Room, is_first: Bool[Array, ""], max_room_size: int
) -> Room:
    """Draws a room behind a random wall of `last`, or anywhere if it is the first."""
    size = MIN_ROOM_SIZE + _below(bits[0:2], max_room_size - MIN_ROOM_SIZE + 1)
    # MiniGrid leaves by any side but the one it came in by, which is the left one at first.
    exit_side = (last.entry + 1 + _below(bits[2], 3)) % 4
    along = 1 + _below(bits[3:5], last.size - 2)
    right, down = last.top + last.size - 1
    door_x, door_y = last.top + along
    door = jnp.stack([
        jnp.stack([right, door_y]), jnp.stack([door_x, down]),
        jnp.stack([last.top[0], door_y]), jnp.stack([door_x, last.top[1]]),
    ])[exit_side]  # fmt: skip
    entry = (exit_side + 2) % 4
    ends_at_door = door - size + 1
    beside_x, beside_y = ends_at_door + 1 + _below(bits[5:7], size - 2)
    top = jnp.stack([
        jnp.stack([ends_at_door[0], beside_y]), jnp.stack([beside_x, ends_at_door[1]]),
        jnp.stack([door[0], beside_y]), jnp.stack([beside_x, door[1]]),
    ])[entry]  # fmt: skip
    anywhere = _below(bits[7:9], SIZE - 2)
    first = Room(anywhere, size, anywhere, jnp.int32(LEFT))
    return jax.tree.map(lambda a, b: jnp.where(is_first, a, b), first, Room(top, size, door, entry))


def _below(
    bits: UInt32[Array, "*shape"], limit: Int[Array, "*shape"] | int
) -> Int[Array, "*shape"]:
    """Turns random words into integers below `limit`, even to 1 in 10^8 as it is small."""
    return (bits % jnp.asarray(limit).astype(jnp.uint32)).astype(jnp.int32)


def _fits(room: Room, chain: Chain) -> Bool[Array, ""]:
    """True where a room lies on the grid and clear of all rooms before the last."""
    end = room.top + room.size
    on_grid = (room.top >= 0).all() & (end[0] <= SIZE) & (end[1] < SIZE)
    others = chain.rooms
    clear = (end < others.top).any(-1) | (others.top + others.size <= room.top).any(-1)
    tested = jnp.arange(len(others.entry)) < chain.length - 1
    return on_grid & (clear | ~tested).all()


def _furnish(key: PRNGKeyArray, rooms: Room, *, max_steps: int, noisy_ball: bool) -> Level:
    """Builds walls and doors, and places the agent, the goal and the noisy ball if there is one."""
    keys = jax.random.split(key, 7)
    goal = _inside(keys[2], rooms, -1)
    colors = _door_colors(keys[3], len(rooms.entry))
    x, y = coordinates(SIZE, SIZE)
    grid = _walls(rooms)
    for_each = (slice(None), None, None)
    is_door = (x == rooms.door[1:, 0][for_each]) & (y == rooms.door[1:, 1][for_each])
    doors = (is_door * (c.KIND_CLOSED << 3 | colors[1:])[for_each]).sum(0)
    grid = jnp.where(doors > 0, doors, grid)
    grid = put(grid.astype(jnp.uint8), goal, c.GOAL)
    ball = jnp.zeros(2, jnp.int32)
    if noisy_ball:
        ball = _inside(keys[4], rooms, 0)
        grid = put(grid, ball, c.KIND_BALL << 3 | random_color(keys[5]))
    return make_level(
        grid,
        _inside(keys[0], rooms, 0, away_from=ball),
        jax.random.randint(keys[1], (), 0, len(DIRECTIONS)),
        task=REACH_GOAL,
        max_steps=max_steps,
        noisy_ball=place(ball[0], ball[1]),
        seed=jax.random.bits(keys[6]),
    )


def _inside(
    key: PRNGKeyArray, rooms: Room, which: int, away_from: Int[Array, "2"] | None = None
) -> Int[Array, "2"]:
    """Draws a cell of one room, its walls and one other cell excluded: (x, y)."""
    width, height = rooms.size[which] - 2
    corner = rooms.top[which] + 1
    cells = width * height
    taken = cells
    if away_from is not None:
        x, y = away_from - corner
        is_here = (x >= 0) & (x < width) & (y >= 0) & (y < height)
        taken = jnp.where(is_here, y * width + x, cells)
    number = jax.random.randint(key, (), 0, cells - (taken < cells))
    number = number + (number >= taken)
    return corner + jnp.stack([number % width, number // width])


def _walls(rooms: Room) -> UInt8[Array, "SIZE SIZE"]:
    """Returns a grid with the walls of all rooms; what lies outside the rooms is empty."""
    x, y = coordinates(SIZE, SIZE)
    left, top = rooms.top[:, 0, None, None], rooms.top[:, 1, None, None]
    right = left + rooms.size[:, 0, None, None] - 1
    bottom = top + rooms.size[:, 1, None, None] - 1
    within = (x >= left) & (x <= right) & (y >= top) & (y <= bottom)
    on_edge = (x == left) | (x == right) | (y == top) | (y == bottom)
    return jnp.where((within & on_edge).any(0), c.WALL, c.EMPTY).astype(jnp.uint8)


def _door_colors(key: PRNGKeyArray, num_rooms: int) -> Int[Array, " num_rooms"]:
    """Draws the colour of each room's entry door, never that of the door before it."""
    key_first, key_next = jax.random.split(key)
    first = random_color(key_first, (1,))
    shifts = jax.random.randint(key_next, (num_rooms - 1,), 1, len(c.COLORS))
    return jnp.cumsum(jnp.concatenate([first, shifts])) % len(c.COLORS)
