"""MultiRoom: a chain of rooms with a door between each two, and the goal in the last."""

from functools import cache, partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray, UInt8, UInt32

from envs.minigrid import cells as c
from envs.minigrid.generators import room_chains
from envs.minigrid.generators.generator import Generator, put
from envs.minigrid.generators.room_chains import MIN_ROOM_SIZE, SIZE, Chains, below
from envs.minigrid.level import DIRECTIONS, REACH_GOAL, Level, make_level, place

MAX_ROOM_SIZE = 10  # MiniGrid's default
STEPS_PER_ROOM = 20
CHAINS_PER_LEVEL = 32  # chains that grow side by side, for each level asked for

# Every room but the first has at least 3 x 4 cells that no other has; the lowest row stays free.
MOST_ROOMS = 1 + (SIZE * (SIZE - 1) - 4 * 4) // (3 * 4)
EASY_ROOMS, EASY_ROOM_SIZE = 12, 10  # no smaller size is harder; it takes 12,000 tries a level
PROBE_CHAINS = 2048  # that a harder size is tried with


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
        ValueError: no level of that size exists, or none was drawn in two million tries (which
            takes about a second, and is done for sizes beyond MiniGrid's alone).
    """
    _refuse_impossible(num_rooms, max_room_size)
    if num_rooms > EASY_ROOMS or max_room_size > EASY_ROOM_SIZE:
        _refuse_hopeless(num_rooms, max_room_size)
    max_steps = num_rooms * STEPS_PER_ROOM
    furnish = partial(_furnish, max_steps=max_steps, noisy_ball=noisy_ball)

    def begin(count: int) -> Chains:
        return room_chains.no_chains(num_rooms, CHAINS_PER_LEVEL * count)

    def advance(
        chains: Chains, key: PRNGKeyArray, count: int
    ) -> tuple[Chains, Level, Bool[Array, " count"]]:
        key_rooms, key_levels = jax.random.split(key)
        chains = room_chains.grow(chains, key_rooms, count, max_room_size)
        chains, walls, doors, ready = room_chains.hand_out(chains, count)
        levels = jax.vmap(furnish)(jax.random.split(key_levels, count), walls, doors)
        return chains, levels, ready

    return Generator(name, SIZE, SIZE, max_steps, REACH_GOAL, begin, advance)


def _refuse_impossible(num_rooms: int, max_room_size: int) -> None:
    """Raises ValueError for sizes of which no level, or not every room, fits the grid."""
    if num_rooms < 2 or max_room_size < MIN_ROOM_SIZE:
        raise ValueError(
            f"a chain has at least two rooms of size {MIN_ROOM_SIZE}, "
            f"not {num_rooms} of {max_room_size}"
        )
    if max_room_size > SIZE:
        raise ValueError(f"no room of size {max_room_size} fits its {SIZE}x{SIZE} grid")
    if num_rooms > MOST_ROOMS:
        raise ValueError(f"at most {MOST_ROOMS} rooms fit its {SIZE}x{SIZE} grid, not {num_rooms}")


def _refuse_hopeless(num_rooms: int, max_room_size: int) -> None:
    """Raises ValueError for sizes so hard that no chain is completed in many tries."""
    if not _completes(num_rooms, max_room_size):
        tries = PROBE_CHAINS * room_chains.MOST_GOES * room_chains.ROUNDS
        raise ValueError(
            f"not one chain of {num_rooms} rooms of size up to {max_room_size} "
            f"was completed in {tries:,} tries"
        )


@cache
def _completes(num_rooms: int, max_room_size: int) -> bool:
    """Returns whether one of many chains is completed in one call."""
    grow = jax.jit(partial(room_chains.grow, count=1, max_room_size=max_room_size))
    chains = grow(room_chains.no_chains(num_rooms, PROBE_CHAINS), jax.random.key(0))
    return bool(room_chains.ready(chains).any())


def _furnish(
    key: PRNGKeyArray,
    walls: UInt32[Array, " rooms"],
    doors: Int[Array, " rooms"],
    *,
    max_steps: int,
    noisy_ball: bool,
) -> Level:
    """Builds walls and doors, and places the agent, the goal and the noisy ball if there is one."""
    words = jax.random.bits(key, (6 + len(doors),))
    boxes = room_chains.boxes(walls)
    first, last = boxes[:, 0], boxes[:, -1]
    ball = _inside(words[1], first) if noisy_ball else jnp.zeros(2, jnp.int32)
    agent = _inside(words[3], first, away_from=ball)
    goal = _inside(words[0], last)
    closed = c.KIND_CLOSED << 3 | _door_colors(words[6:]).astype(jnp.uint8)
    # Or each of these would be computed again for every cell of the grid.
    boxes, goal, ball, closed = jax.lax.optimization_barrier((boxes, goal, ball, closed))
    grid = _walls(boxes)
    grid = grid.at[doors[1:] >> 8, doors[1:] & 0xFF].set(closed[1:])
    grid = put(grid, goal, c.GOAL)
    if noisy_ball:
        grid = put(grid, ball, c.KIND_BALL << 3 | below(len(c.COLORS), words[2])[0])
    return make_level(
        grid,
        agent,
        below(len(DIRECTIONS), words[4])[0],
        task=REACH_GOAL,
        max_steps=max_steps,
        noisy_ball=place(ball[0], ball[1]),
        seed=words[5],
    )


def _walls(boxes: Int[Array, "4 rooms"]) -> UInt8[Array, "SIZE SIZE"]:
    """Returns a grid with the walls of all rooms; what lies outside the rooms is empty."""
    left, top, right, bottom = boxes[..., None]
    x = y = jnp.arange(SIZE)
    both, all_between = 1 << left | 1 << right, (2 << right) - (1 << left)  # a bit for each x
    inside, edge = (top < y) & (y < bottom), (y == top) | (y == bottom)
    rows = jnp.where(inside, both, 0) | jnp.where(edge, all_between, 0)
    rows = jnp.bitwise_or.reduce(rows, axis=0)
    return jnp.where(rows[:, None] >> x & 1, c.WALL, c.EMPTY).astype(jnp.uint8)


def _inside(
    word: UInt32[Array, ""], box: Int[Array, "4"], away_from: Int[Array, "2"] | None = None
) -> Int[Array, "2"]:
    """Draws a cell of one room, its walls and one other cell excluded: (x, y)."""
    left, top, right, bottom = box
    width, height = right - left - 1, bottom - top - 1
    corner = jnp.stack([left, top]) + 1
    cells = width * height
    taken = cells
    if away_from is not None:
        x, y = away_from - corner
        is_here = (x >= 0) & (x < width) & (y >= 0) & (y < height)
        taken = jnp.where(is_here, y * width + x, cells)
    number, _ = below(cells - (taken < cells), word)
    number = number + (number >= taken)
    return corner + jnp.stack([number % width, number // width])


def _door_colors(words: UInt32[Array, " rooms"]) -> Int[Array, " rooms"]:
    """Draws the colour of each room's entry door, never that of the door before it."""
    anything, _ = below(len(c.COLORS), words[:1])
    another, _ = below(len(c.COLORS) - 1, words[1:])
    return jnp.cumsum(jnp.concatenate([anything, 1 + another])) % len(c.COLORS)
