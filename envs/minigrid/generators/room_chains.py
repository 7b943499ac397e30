"""MultiRoom's chains of rooms, sampled in a large batch.

MiniGrid places the first room anywhere on a 25 x 25 grid. It tries each next room up to 8 times
behind a random wall of the last one, and starts again with no rooms when all 8 tries fail
(`MultiRoomEnv._placeRoom`; it never removes only the last room). Its asymmetries are kept: a room
may touch the right edge of the grid but not the lower one, and is not tested against the room
before it.

Here every chain of a batch makes one try per round. A chain that fails starts again. A complete
chain waits until it is as old as the slowest possible chain, is handed out, and starts again.
The round in which a chain is handed out therefore depends only on earlier failures, not on the
chain itself, and taking ready chains first does not bias the distribution.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray, UInt32

from envs.minigrid.level import pack_position

SIZE = 25  # cells along a side of the grid
MIN_ROOM_SIZE = 4  # cells, including both walls
TRIES = 8  # tries for each next room
LEFT = 2  # the side at which MiniGrid enters the first room

ROUNDS_PER_PASS = 32  # rounds between checks for enough ready chains
MAX_PASSES = 32  # passes per call of `grow`, to bound its work

FIELD_BITS = 6  # bits of a number below 32 in a packed word: five, and a spare one above
SPARE_BITS = sum(1 << (FIELD_BITS * index + FIELD_BITS - 1) for index in range(4))
FAR = 31  # greater than every coordinate


class Room(NamedTuple):
    """One room of each chain, including its walls."""

    left: Int[Array, " chains"]
    top: Int[Array, " chains"]
    right: Int[Array, " chains"]
    bottom: Int[Array, " chains"]
    door: Int[Array, " chains"]  # packed position of the entry door
    entry: Int[Array, " chains"]  # side of the entry door: 0 right, 1 down, 2 left, 3 up


class Chains(NamedTuple):
    """Chains of rooms under construction."""

    walls: UInt32[Array, "rooms chains"]  # packed walls of each room; the first `length` are placed
    doors: Int[Array, "rooms chains"]  # `Room.door` of each room
    last: Room  # the room placed last
    length: Int[Array, " chains"]  # rooms placed
    failures: Int[Array, " chains"]  # failed tries for the next room
    age: Int[Array, " chains"]  # rounds since the chain started, at most `_max_age`


def empty_chains(num_rooms: int, num_chains: int) -> Chains:
    """Return chains without any room."""
    zeros = jnp.zeros((num_rooms, num_chains), jnp.int32)
    none = zeros[0]
    return Chains(
        walls=zeros.astype(jnp.uint32),
        doors=zeros,
        last=Room(none, none, none, none, none, none),
        length=none,
        failures=none,
        age=none,
    )


def _max_age(num_rooms: int) -> int:
    """Return the rounds of the slowest chain: each room is placed at its last try."""
    return 1 + TRIES * (num_rooms - 1)


def ready(chains: Chains) -> Bool[Array, " chains"]:
    """Return which chains are complete and as old as the slowest possible chain."""
    num_rooms = chains.walls.shape[0]
    return (chains.length == num_rooms) & (chains.age == _max_age(num_rooms))


def grow(chains: Chains, key: PRNGKeyArray, count: int, max_room_size: int) -> Chains:
    """Grow chains until `count` are ready, for at most `MAX_PASSES` passes.

    Args:
        chains: the chains so far.
        key: random key.
        count: number of chains that must be ready.
        max_room_size: greatest width and height of a room, including both walls.
    """

    def unfinished(carry: tuple[Chains, Int[Array, ""]]) -> Bool[Array, ""]:
        chains, passes = carry
        return (ready(chains).sum() < count) & (passes < MAX_PASSES)

    def next_pass(carry: tuple[Chains, Int[Array, ""]]) -> tuple[Chains, Int[Array, ""]]:
        chains, passes = carry
        return _next_pass(chains, jax.random.fold_in(key, passes), max_room_size), passes + 1

    return jax.lax.while_loop(unfinished, next_pass, (chains, jnp.int32(0)))[0]


def _next_pass(chains: Chains, key: PRNGKeyArray, max_room_size: int) -> Chains:
    """Let every chain make `ROUNDS_PER_PASS` tries."""
    try_once = partial(_try_once, max_room_size=max_room_size)
    words = jax.random.bits(key, (ROUNDS_PER_PASS, *chains.length.shape))
    return jax.lax.scan(lambda chains, now: (try_once(chains, now), None), chains, words)[0]


def hand_out(
    chains: Chains, count: int
) -> tuple[Chains, UInt32[Array, "count rooms"], Int[Array, "count rooms"], Bool[Array, " count"]]:
    """Hand out up to `count` ready chains.

    Returns:
        The chains, of which those handed out start again; packed walls and doors of `count`
        chains; and which of these were ready.
    """
    num_chains = len(chains.length)
    (index,) = jnp.nonzero(ready(chains), size=count, fill_value=num_chains)
    walls, doors = (leaf.at[:, index].get(mode="clip").T for leaf in (chains.walls, chains.doors))
    length, age = (leaf.at[index].set(0, mode="drop") for leaf in (chains.length, chains.age))
    return chains._replace(length=length, age=age), walls, doors, index < num_chains


def _try_once(chains: Chains, words: UInt32[Array, " chains"], max_room_size: int) -> Chains:
    """Try to add one room to each chain, and empty a chain whose last try fails."""
    num_rooms = len(chains.walls)
    is_complete, is_empty = chains.length == num_rooms, chains.length == 0
    room = _try_room(words, chains.last, is_empty, max_room_size)
    fits = _fits(room, chains) & ~is_complete
    walls = _pack_four(room.left, room.top, FAR - room.right, FAR - room.bottom)
    room, walls, fits = jax.lax.optimization_barrier((room, walls, fits))
    here = (jnp.arange(num_rooms)[:, None] == chains.length) & fits
    # The first room has only one try: MiniGrid samples its size once per chain.
    fails = ~fits & ~is_complete & (is_empty | (chains.failures + 1 == TRIES))
    return Chains(
        walls=jnp.where(here, walls, chains.walls),
        doors=jnp.where(here, room.door, chains.doors),
        last=jax.tree.map(lambda new, old: jnp.where(fits, new, old), room, chains.last),
        length=jnp.where(fails, 0, chains.length + fits),
        failures=jnp.where(fits | fails, 0, chains.failures + 1),
        age=jnp.where(fails, 0, jnp.minimum(chains.age + 1, _max_age(num_rooms))),
    )


def _try_room(
    bits: UInt32[Array, " chains"], last: Room, is_first: Bool[Array, " chains"], max_room_size: int
) -> Room:
    """Sample a room behind a random wall of `last`, or anywhere if it is the first."""
    number_of_sizes = max_room_size - MIN_ROOM_SIZE + 1
    width, bits = randint_below(number_of_sizes, bits)
    height, bits = randint_below(number_of_sizes, bits)
    width, height = MIN_ROOM_SIZE + width, MIN_ROOM_SIZE + height
    first = _first_room(bits, width, height)
    following = _next_room(bits, width, height, last)
    return jax.tree.map(lambda a, b: jnp.where(is_first, a, b), first, following)


def _first_room(bits: UInt32[Array, " chains"], width: Array, height: Array) -> Room:
    left, bits = randint_below(SIZE - 2, bits)
    top, _ = randint_below(SIZE - 2, bits)
    door = jnp.zeros_like(left)  # the first room has no door
    return Room(left, top, left + width - 1, top + height - 1, door, jnp.full_like(left, LEFT))


def _next_room(bits: UInt32[Array, " chains"], width: Array, height: Array, last: Room) -> Room:
    # MiniGrid leaves a room by any side except the one by which it entered.
    turn, bits = randint_below(3, bits)
    side = (last.entry + 1 + turn) % 4
    sideways = side % 2 == 0
    inside = jnp.where(sideways, last.bottom - last.top, last.right - last.left) - 1
    along, bits = randint_below(inside, bits)
    beside, _ = randint_below(jnp.where(sideways, height, width) - 2, bits)
    right, down = side == 0, side == 1
    x = jnp.where(sideways, jnp.where(right, last.right, last.left), last.left + 1 + along)
    y = jnp.where(sideways, last.top + 1 + along, jnp.where(down, last.bottom, last.top))
    left = x - jnp.where(sideways, jnp.where(right, 0, width - 1), width - 2 - beside)
    top = y - jnp.where(sideways, height - 2 - beside, jnp.where(down, 0, height - 1))
    door, entry = jnp.asarray(jax.vmap(pack_position)(x, y)), (side + 2) % 4
    return Room(left, top, left + width - 1, top + height - 1, door, entry)


def randint_below(
    limit: Int[Array, "*shape"] | int, bits: UInt32[Array, "*shape"]
) -> tuple[Int[Array, "*shape"], UInt32[Array, "*shape"]]:
    """Sample an integer below `limit`: the integer part of `limit` x `bits` / 2^32.

    Returns:
        The integer, and the fractional part as bits for the next sample. If one word chooses among
        `n` outcomes, each has probability 1 / n within `n` parts in 2^32 (6 parts in a million for
        a room of size up to 10).
    """
    factor = jnp.asarray(limit).astype(jnp.uint32)
    high = (bits >> 16) * factor + ((bits & 0xFFFF) * factor >> 16)
    return (high >> 16).astype(jnp.int32), bits * factor


def _fits(room: Room, chains: Chains) -> Bool[Array, " chains"]:
    """Return whether a room is on the grid and clear of all rooms before the last."""
    on_grid = (room.left >= 0) & (room.top >= 0) & (room.right < SIZE) & (room.bottom < SIZE - 1)
    # MiniGrid requires a free line to the right of a new room and below it, and on no other side.
    ends = _pack_four(room.right + 1, room.bottom + 1, FAR - room.left, FAR - room.top)
    # Another room overlaps if none of the four differences is negative: no spare bit is borrowed.
    overlaps = ((ends | SPARE_BITS) - chains.walls) & SPARE_BITS == SPARE_BITS
    tested = jnp.arange(len(chains.walls))[:, None] < chains.length - 1
    return on_grid & ~(overlaps & tested).any(0)


def _pack_four(*numbers: Int[Array, "*shape"]) -> UInt32[Array, "*shape"]:
    """Pack four numbers below 32 into one word, to compare all four in one instruction."""
    shifted = (number.astype(jnp.uint32) << FIELD_BITS * i for i, number in enumerate(numbers))
    return jnp.asarray(sum(shifted))


def unpack_walls(walls: UInt32[Array, " rooms"]) -> Int[Array, "4 rooms"]:
    """Return the left, top, right and bottom coordinates of packed walls."""
    left, top, right, bottom = (walls >> FIELD_BITS * index & FAR for index in range(4))
    return jnp.stack([left, top, FAR - right, FAR - bottom]).astype(jnp.int32)
