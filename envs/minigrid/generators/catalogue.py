"""Environments by name: the paper's, many of MiniGrid's, and any size of each family."""

import re
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from envs.errors import (
    ImpossibleEnvironment,
    UnknownEnvironment,
    UnsupportedEnvironment,
    is_own,
)
from envs.minigrid import cells as c
from envs.minigrid.generators.crossing import crossing, gap
from envs.minigrid.generators.door_key import door_key
from envs.minigrid.generators.generator import Generator
from envs.minigrid.generators.key_corridor import key_corridor
from envs.minigrid.generators.multi_room import multi_room
from envs.minigrid.generators.obstructed_maze import one_door, quarters
from envs.minigrid.generators.own_worlds import find_own, is_whole_world
from envs.minigrid.generators.unlock import blocked_unlock_pickup, unlock, unlock_pickup
from envs.minigrid.level import MAX_SIDE, Level
from envs.names import NAMES, our_name

_2D = partial(quarters, number=1, agent_room=(2, 1), num_rooms_visited=4)
_1Q = partial(quarters, number=1, agent_room=(1, 1), num_rooms_visited=5)
_2Q = partial(quarters, number=2, agent_room=(2, 1), num_rooms_visited=11)
_FULL = partial(quarters, number=4, agent_room=(1, 1), num_rooms_visited=25)

SINGLES: dict[str, Callable[[str], Generator]] = {
    "Unlock": unlock,
    "UnlockPickup": unlock_pickup,
    "BlockedUnlockPickup": blocked_unlock_pickup,
    "ObstructedMaze-1Dl": partial(one_door, key_in_box=False, blocked=False),
    "ObstructedMaze-1Dlh": partial(one_door, key_in_box=True, blocked=False),
    "ObstructedMaze-1Dlhb": partial(one_door, key_in_box=True, blocked=True),
    "ObstructedMaze-2Dl": partial(_2D, key_in_box=False, blocked=False),
    "ObstructedMaze-2Dlh": partial(_2D, blocked=False),
    "ObstructedMaze-2Dlhb": _2D,
    "ObstructedMaze-1Q": _1Q,
    "ObstructedMaze-2Q": _2Q,
    "ObstructedMaze-Full": _FULL,
    "ObstructedMaze-2Dlhb-v1": partial(_2D, keys_last=True),
    "ObstructedMaze-1Q-v1": partial(_1Q, keys_last=True),
    "ObstructedMaze-2Q-v1": partial(_2Q, keys_last=True),
    "ObstructedMaze-Full-v1": partial(_FULL, keys_last=True),
}


def _square_door_key(name: str, width: int, height: int) -> Generator:
    if width != height:
        raise ValueError(f"its grid must be square, not {width}x{height}")
    return door_key(name, width)


# Each `#` stands for a number; the numbers are passed to the function in this order.
FAMILIES: dict[str, Callable[..., Generator]] = {
    "DoorKey-#x#": _square_door_key,
    "KeyCorridorS#R#": key_corridor,
    "MultiRoom-N#": multi_room,
    "MultiRoom-N#-S#": multi_room,
    "MultiRoomNoisyTV-N#-S#": partial(multi_room, noisy_ball=True),
    "LavaCrossingS#N#": crossing,
    "SimpleCrossingS#N#": partial(crossing, obstacle=c.WALL),
    "LavaGapS#": gap,
}

# MiniGrid's families that its other rules and our views do not cover.
_IN_WORDS = "each episode's mission is in words, which no view here shows"
OTHER_RULES = {
    "Dynamic-Obstacles": "its balls move by themselves, and here nothing but the agent acts",
    "Fetch": f"{_IN_WORDS}, and picking up another object ends the episode",
    "GoToDoor": _IN_WORDS,
    "GoToObject": _IN_WORDS,
    "PutNear": _IN_WORDS,
    "Memory": "its task is to recall what the agent saw at the start",
    "RedBlueDoors": "its task is to open two doors in order",
}
NOT_PLAYED = OTHER_RULES | dict.fromkeys(
    ("Empty", "FourRooms", "LockedRoom", "DistShift", "Playground"),
    "it is navix's: say Navix-, as in Navix-Empty-8x8-v0",
)
_LIMIT = re.compile(r"max_steps=([1-9]\d{0,6})")


def find(name: str) -> Generator:
    """Return the generator of an environment.

    Args:
        name: one of `NAMES`, another size of `FAMILIES` (`MultiRoom-N5-S7`), MiniGrid's name of
            one (`MiniGrid-Unlock-v0`), one of navix's (`Navix-FourRooms-v0`; imports navix, which
            takes seconds), or your own gridworld (`my_world.py:make@1a2b3c4d`), if added. With
            `?max_steps=500` at its end, episodes have this time limit.

    Raises:
        UnknownEnvironment: no environment has that name; the message suggests similar names.
        ImpossibleEnvironment: no level of that size can be sampled, or the time limit is invalid.
        UnsupportedEnvironment: the world has rules or a task of its own.
    """
    if not isinstance(name, str):
        raise ImpossibleEnvironment(str(name), "the name of one environment is needed")
    name, mark, limit = our_name(name).partition("?")
    found = find_own(name) if is_own(name) or is_whole_world(name) else _find(name)
    return _limited(found, limit) if mark else found


@cache
def _limited(generator: Generator, limit: str) -> Generator:
    """Return the generator with a time limit, `max_steps=500`."""
    name = f"{generator.name}?{limit}"
    if not (found := _LIMIT.fullmatch(limit)):
        raise ImpossibleEnvironment(name, "after ? stands max_steps=N, with N in 1..9999999")
    max_steps = int(found[1])

    def advance(drafts: Any, key: PRNGKeyArray, count: int) -> tuple[Any, Level, Array]:
        drafts, levels, ready = generator.advance(drafts, key, count)
        return drafts, levels._replace(max_steps=jnp.full_like(levels.max_steps, max_steps)), ready

    return generator._replace(name=name, max_steps=max_steps, advance=advance)


@cache
def _find(name: str) -> Generator:
    if name.lower().startswith("navix-"):
        from envs.minigrid.generators.navix_levels import navix_levels

        return navix_levels(name)
    try:
        generator = _make(name)
    except ValueError as error:
        raise ImpossibleEnvironment(name, str(error)) from None
    if generator is None:
        for family, reason in NOT_PLAYED.items():
            if re.match(rf"{family}(S?\d|-|$)", name):
                raise UnsupportedEnvironment(name, reason)
        raise UnknownEnvironment(name, NAMES)
    if max(generator.width, generator.height) > MAX_SIDE:
        raise ImpossibleEnvironment(name, f"a grid has at most {MAX_SIDE} cells along a side")
    return generator


def _make(name: str) -> Generator | None:
    if name in SINGLES:
        return SINGLES[name](name)
    for pattern, make in FAMILIES.items():
        match = re.fullmatch(pattern.replace("#", r"([1-9]\d{0,3})"), name)
        if match:
            return make(name, *(int(number) for number in match.groups()))
    return None


GENERATORS = {name: find(name) for name in NAMES}
