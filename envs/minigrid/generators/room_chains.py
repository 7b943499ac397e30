"""Chains of rooms as MultiRoom has them, many of them growing side by side.

MiniGrid places the first room anywhere on a 25 x 25 grid, tries each next room up to 8 times
behind a random wall of the last one, and starts again from nothing when all 8 tries fail
(`MultiRoomEnv._placeRoom`; it never goes back by one room only). Its asymmetries are kept: a
room may touch the right edge of the grid but not the lower one, and is not tested against the
room it hangs on.

Here every chain makes one try a round. A chain that fails starts anew; one that is complete
waits until it is as old as the slowest could be, is handed out, and starts anew. So when a chain
is handed out depends on the failures before it and on nothing in the chain itself: to take first
what is ready first favours no chain, from the first round on.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray, UInt32

from envs.minigrid.level import place

SIZE = 25  # of the grid
MIN_ROOM_SIZE = 4  # walls included
TRIES = 8  # for each next room
LEFT = 2  # the side at which MiniGrid has the first room entered

ROUNDS = 32  # in one go; whether enough chains are ready is seen to in between
MOST_GOES = 32  # in one call: the bound on its work

FIELD = 6  # bits that a number below 32 takes in a word with others, a spare one above it
SPARE = sum(1 << (FIELD * index + FIELD - 1) for index in range(4))
FAR = 31  # beyond every coordinate


class Room(NamedTuple):
    """One room of each chain, its walls included."""

    left: Int[Array, " chains"]
    top: Int[Array, " chains"]
    right: Int[Array, " chains"]
    bottom: Int[Array, " chains"]
    door: Int[Array, " chains"]  # `place(x, y)` of the door it is entered by
    entry: Int[Array, " chains"]  # the side of that door: 0 right, 1 down, 2 left, 3 up


class Chains(NamedTuple):
    """Chains of rooms while they grow."""

    walls: UInt32[Array, "rooms chains"]  # of the rooms, of which `length` are placed, packed
    doors: Int[Array, "rooms chains"]  # `Room.door` of each
    last: Room  # the room placed last
    length: Int[Array, " chains"]
    failures: Int[Array, " chains"]  # tries for the next room that failed
    age: Int[Array, " chains"]  # rounds since it began, at most `_oldest`


def no_chains(num_rooms: int, number: int) -> Chains:
    """Returns chains that have yet to begin."""
    zeros = jnp.zeros((num_rooms, number), jnp.int32)
    none = zeros[0]
    return Chains(
        walls=zeros.astype(jnp.uint32),
        doors=zeros,
        last=Room(none, none, none, none, none, none),
        length=none,
        failures=none,
        age=none,
    )


def _oldest(num_rooms: int) -> int:
    """Returns the rounds that the slowest chain takes: each room at its last try."""
    return 1 + TRIES * (num_rooms - 1)


def ready(chains: Chains) -> Bool[Array, " chains"]:
    """Returns which chains are complete and have waited for as long as the slowest takes."""
    num_rooms = chains.walls.shape[0]
    return (chains.length == num_rooms) & (chains.age == _oldest(num_rooms))


def grow(chains: Chains, key: PRNGKeyArray, count: int, max_room_size: int) -> Chains:
    """Grows chains until `count` are ready, for `MOST_GOES` times `ROUNDS` rounds at most."""
    try_once = partial(_try_once, max_room_size=max_room_size)

    def unfinished(growth: tuple[Chains, Int[Array, ""]]) -> Bool[Array, ""]:
        chains, goes = growth
        enough: Array = ready(chains).sum() >= count
        return ~enough & (goes < MOST_GOES)

    def go_on(growth: tuple[Chains, Int[Array, ""]]) -> tuple[Chains, Int[Array, ""]]:
        chains, goes = growth
        words = jax.random.bits(jax.random.fold_in(key, goes), (ROUNDS, *chains.length.shape))
        chains, _ = jax.lax.scan(lambda chains, now: (try_once(chains, now), None), chains, words)
        return chains, goes + 1

    return jax.lax.while_loop(unfinished, go_on, (chains, jnp.int32(0)))[0]


def hand_out(
    chains: Chains, count: int
) -> tuple[Chains, UInt32[Array, "count rooms"], Int[Array, "count rooms"], Bool[Array, " count"]]:
    """Takes up to `count` chains that are ready, which start anew: walls, doors, and which."""
    number = len(chains.length)
    (which,) = jnp.nonzero(ready(chains), size=count, fill_value=number)
    walls, doors = (leaf.at[:, which].get(mode="clip").T for leaf in (chains.walls, chains.doors))
    length, age = (leaf.at[which].set(0, mode="drop") for leaf in (chains.length, chains.age))
    return chains._replace(length=length, age=age), walls, doors, which < number


def _try_once(chains: Chains, words: UInt32[Array, " chains"], max_room_size: int) -> Chains:
    """Tries to add one room to each chain, and empties a chain whose last try fails."""
    num_rooms = len(chains.walls)
    is_complete, is_empty = chains.length == num_rooms, chains.length == 0
    room = _try_room(words, chains.last, is_empty, max_room_size)
    fits = _fits(room, chains) & ~is_complete
    walls = _side_by_side(room.left, room.top, FAR - room.right, FAR - room.bottom)
    # Or all of the above would be computed again for every room of a chain.
    room, walls, fits = jax.lax.optimization_barrier((room, walls, fits))
    here = (jnp.arange(num_rooms)[:, None] == chains.length) & fits
    # The first room has one try only: MiniGrid draws its size once for each chain.
    fails = ~fits & ~is_complete & (is_empty | (chains.failures + 1 == TRIES))
    return Chains(
        walls=jnp.where(here, walls, chains.walls),
        doors=jnp.where(here, room.door, chains.doors),
        last=jax.tree.map(lambda new, old: jnp.where(fits, new, old), room, chains.last),
        length=jnp.where(fails, 0, chains.length + fits),
        failures=jnp.where(fits | fails, 0, chains.failures + 1),
        age=jnp.where(fails, 0, jnp.minimum(chains.age + 1, _oldest(num_rooms))),
    )


def _try_room(
    chance: UInt32[Array, " chains"],
    last: Room,
    is_first: Bool[Array, " chains"],
    max_room_size: int,
) -> Room:
    """Draws a room behind a random wall of `last`, or anywhere if it is the first."""
    number_of_sizes = max_room_size - MIN_ROOM_SIZE + 1
    width, chance = below(number_of_sizes, chance)
    height, chance = below(number_of_sizes, chance)
    width, height = MIN_ROOM_SIZE + width, MIN_ROOM_SIZE + height
    first = _first_room(chance, width, height)
    following = _next_room(chance, width, height, last)
    return jax.tree.map(lambda a, b: jnp.where(is_first, a, b), first, following)


def _first_room(chance: UInt32[Array, " chains"], width: Array, height: Array) -> Room:
    left, chance = below(SIZE - 2, chance)
    top, _ = below(SIZE - 2, chance)
    door = jnp.zeros_like(left)  # it has none
    return Room(left, top, left + width - 1, top + height - 1, door, jnp.full_like(left, LEFT))


def _next_room(chance: UInt32[Array, " chains"], width: Array, height: Array, last: Room) -> Room:
    # MiniGrid leaves by any side but the one it came in by.
    turn, chance = below(3, chance)
    side = (last.entry + 1 + turn) % 4
    sideways = side % 2 == 0
    inside = jnp.where(sideways, last.bottom - last.top, last.right - last.left) - 1
    along, chance = below(inside, chance)
    beside, _ = below(jnp.where(sideways, height, width) - 2, chance)
    right, down = side == 0, side == 1
    x = jnp.where(sideways, jnp.where(right, last.right, last.left), last.left + 1 + along)
    y = jnp.where(sideways, last.top + 1 + along, jnp.where(down, last.bottom, last.top))
    left = x - jnp.where(sideways, jnp.where(right, 0, width - 1), width - 2 - beside)
    top = y - jnp.where(sideways, height - 2 - beside, jnp.where(down, 0, height - 1))
    door, entry = jnp.asarray(jax.vmap(place)(x, y)), (side + 2) % 4
    return Room(left, top, left + width - 1, top + height - 1, door, entry)


def below(
    limit: Int[Array, "*shape"] | int, chance: UInt32[Array, "*shape"]
) -> tuple[Int[Array, "*shape"], UInt32[Array, "*shape"]]:
    """Draws an integer below `limit`: the whole part of `limit` x `chance` / 2^32.

    Returns:
        The integer, and as the next chance what the whole part left over. Where one word decides
        among `n` outcomes in this way, the chance of each is 1 / n to `n` parts in 2^32: for a
        room of size up to 10 that is 6 parts in a million.
    """
    factor = jnp.asarray(limit).astype(jnp.uint32)
    high = (chance >> 16) * factor + ((chance & 0xFFFF) * factor >> 16)
    return (high >> 16).astype(jnp.int32), chance * factor


def _fits(room: Room, chains: Chains) -> Bool[Array, " chains"]:
    """True where a room lies on the grid and clear of all rooms before the last."""
    on_grid = (room.left >= 0) & (room.top >= 0) & (room.right < SIZE) & (room.bottom < SIZE - 1)
    # MiniGrid wants a free line to the right of a new room and below it, on no other side.
    ends = _side_by_side(room.right + 1, room.bottom + 1, FAR - room.left, FAR - room.top)
    # Another room is in the way where none of four differences is negative: spare bits stay.
    in_the_way = ((ends | SPARE) - chains.walls) & SPARE == SPARE
    tested = jnp.arange(len(chains.walls))[:, None] < chains.length - 1
    return on_grid & ~(in_the_way & tested).any(0)


def _side_by_side(*numbers: Int[Array, "*shape"]) -> UInt32[Array, "*shape"]:
    """Packs four numbers below 32 into one word, so that four compare as fast as one."""
    shifted = (number.astype(jnp.uint32) << FIELD * i for i, number in enumerate(numbers))
    return jnp.asarray(sum(shifted))


def boxes(walls: UInt32[Array, " rooms"]) -> Int[Array, "4 rooms"]:
    """Returns the left, top, right and bottom coordinates of packed walls."""
    left, top, right, bottom = (walls >> FIELD * index & FAR for index in range(4))
    return jnp.stack([left, top, FAR - right, FAR - bottom]).astype(jnp.int32)
