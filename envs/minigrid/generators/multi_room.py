"""MultiRoom: a chain of rooms connected by doors, with the goal in the last room."""

from functools import cache, partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray, UInt8, UInt32

from envs.minigrid import cells as c
from envs.minigrid.generators import room_chains
from envs.minigrid.generators.generator import Generator, set_cell
from envs.minigrid.generators.room_chains import MIN_ROOM_SIZE, SIZE, Chains, randint_below
from envs.minigrid.level import DIRECTIONS, REACH_GOAL, Level, make_level, pack_position

MAX_ROOM_SIZE = 10  # MiniGrid's default
STEPS_PER_ROOM = 20
CHAINS_PER_LEVEL = 32  # chains in the batch for each level requested

# Each room after the first has at least 3 x 4 cells of its own, and the lowest row stays free.
MAX_ROOMS = 1 + (SIZE * (SIZE - 1) - 4 * 4) // (3 * 4)
EASY_ROOMS, EASY_ROOM_SIZE = 12, 10  # takes 12,000 tries per level; smaller sizes take fewer
PROBE_CHAINS = 2048  # chains that test whether a harder size is feasible


def multi_room(
    name: str, num_rooms: int, max_room_size: int = MAX_ROOM_SIZE, *, noisy_ball: bool = False
) -> Generator:
    """Return MultiRoom with a fixed number of rooms, like all those that MiniGrid registers.

    Args:
        name: the environment's name.
        num_rooms: rooms in the chain.
        max_room_size: greatest width and height of a room, including both walls (at least 4).
        noisy_ball: whether a ball in the first room changes its colour at every `drop`
            (MultiRoomNoisyTV; paper, appendix "noisy environment").

    Raises:
        ValueError: no level of that size exists, or two million tries (a second, only for sizes
            beyond MiniGrid's) found none.
    """
    _refuse_impossible(num_rooms, max_room_size)
    if num_rooms > EASY_ROOMS or max_room_size > EASY_ROOM_SIZE:
        _refuse_hopeless(num_rooms, max_room_size)
    max_steps = num_rooms * STEPS_PER_ROOM
    build_level = partial(_build_level, max_steps=max_steps, noisy_ball=noisy_ball)

    def begin(count: int) -> Chains:
        return room_chains.empty_chains(num_rooms, CHAINS_PER_LEVEL * count)

    def advance(
        chains: Chains, key: PRNGKeyArray, count: int
    ) -> tuple[Chains, Level, Bool[Array, " count"]]:
        key_rooms, key_levels = jax.random.split(key)
        chains = room_chains.grow(chains, key_rooms, count, max_room_size)
        chains, walls, doors, ready = room_chains.hand_out(chains, count)
        levels = jax.vmap(build_level)(jax.random.split(key_levels, count), walls, doors)
        return chains, levels, ready

    return Generator(name, SIZE, SIZE, max_steps, REACH_GOAL, begin, advance)


def _refuse_impossible(num_rooms: int, max_room_size: int) -> None:
    """Raise ValueError for sizes that cannot fit the grid."""
    if num_rooms < 2 or max_room_size < MIN_ROOM_SIZE:
        raise ValueError(
            f"a chain has at least two rooms of size {MIN_ROOM_SIZE}, "
            f"not {num_rooms} of {max_room_size}"
        )
    if max_room_size > SIZE:
        raise ValueError(f"no room of size {max_room_size} fits its {SIZE}x{SIZE} grid")
    if num_rooms > MAX_ROOMS:
        raise ValueError(f"at most {MAX_ROOMS} rooms fit its {SIZE}x{SIZE} grid, not {num_rooms}")


def _refuse_hopeless(num_rooms: int, max_room_size: int) -> None:
    """Raise ValueError for sizes of which many tries complete no chain."""
    if not _completes(num_rooms, max_room_size):
        tries = PROBE_CHAINS * room_chains.MAX_PASSES * room_chains.ROUNDS_PER_PASS
        raise ValueError(
            f"not one chain of {num_rooms} rooms of size up to {max_room_size} "
            f"was completed in {tries:,} tries"
        )


@cache
def _completes(num_rooms: int, max_room_size: int) -> bool:
    """Return whether at least one of many chains is completed in one call."""
    grow = jax.jit(partial(room_chains.grow, count=1, max_room_size=max_room_size))
    with jax.ensure_compile_time_eval():  # also while another function is traced
        chains = grow(room_chains.empty_chains(num_rooms, PROBE_CHAINS), jax.random.key(0))
        return bool(room_chains.ready(chains).any())


def _build_level(
    key: PRNGKeyArray,
    walls: UInt32[Array, " rooms"],
    doors: Int[Array, " rooms"],
    *,
    max_steps: int,
    noisy_ball: bool,
) -> Level:
    """Build walls and doors, and place the agent, the goal and any noisy ball."""
    words = jax.random.bits(key, (6 + len(doors),))
    boxes = room_chains.unpack_walls(walls)
    first, last = boxes[:, 0], boxes[:, -1]
    ball = _random_cell(words[1], first) if noisy_ball else jnp.zeros(2, jnp.int32)
    agent = _random_cell(words[3], first, away_from=ball)
    goal = _random_cell(words[0], last)
    closed = c.closed_door(_door_colors(words[6:]).astype(jnp.uint8))
    boxes, goal, ball, closed = jax.lax.optimization_barrier((boxes, goal, ball, closed))
    grid = _walls(boxes)
    grid = grid.at[doors[1:] >> 8, doors[1:] & 0xFF].set(closed[1:])
    grid = set_cell(grid, goal, c.GOAL)
    if noisy_ball:
        grid = set_cell(grid, ball, c.ball(randint_below(len(c.COLORS), words[2])[0]))
    return make_level(
        grid,
        agent,
        randint_below(len(DIRECTIONS), words[4])[0],
        task=REACH_GOAL,
        max_steps=max_steps,
        noisy_ball=pack_position(ball[0], ball[1]),
        seed=words[5],
    )


def _walls(boxes: Int[Array, "4 rooms"]) -> UInt8[Array, "SIZE SIZE"]:
    """Return a grid with the walls of all rooms; cells outside the rooms are empty."""
    left, top, right, bottom = boxes[..., None]
    x = y = jnp.arange(SIZE)
    both, all_between = 1 << left | 1 << right, (2 << right) - (1 << left)  # a bit for each x
    inside, edge = (top < y) & (y < bottom), (y == top) | (y == bottom)
    rows = jnp.where(inside, both, 0) | jnp.where(edge, all_between, 0)
    rows = jnp.bitwise_or.reduce(rows, axis=0)
    return jnp.where(rows[:, None] >> x & 1, c.WALL, c.EMPTY).astype(jnp.uint8)


def _random_cell(
    word: UInt32[Array, ""], box: Int[Array, "4"], away_from: Int[Array, "2"] | None = None
) -> Int[Array, "2"]:
    """Sample a cell (x, y) inside the walls of one room, but not `away_from`."""
    left, top, right, bottom = box
    width, height = right - left - 1, bottom - top - 1
    corner = jnp.stack([left, top]) + 1
    cells = width * height
    taken = cells
    if away_from is not None:
        x, y = away_from - corner
        is_here = (x >= 0) & (x < width) & (y >= 0) & (y < height)
        taken = jnp.where(is_here, y * width + x, cells)
    number, _ = randint_below(cells - (taken < cells), word)
    number = number + (number >= taken)
    return corner + jnp.stack([number % width, number // width])


def _door_colors(words: UInt32[Array, " rooms"]) -> Int[Array, " rooms"]:
    """Sample the colour of each room's entry door, different from that of the door before it."""
    anything, _ = randint_below(len(c.COLORS), words[:1])
    another, _ = randint_below(len(c.COLORS) - 1, words[1:])
    return jnp.cumsum(jnp.concatenate([anything, 1 + another])) % len(c.COLORS)
