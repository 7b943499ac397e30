"""The environments of the paper, by name, and how their levels are drawn."""

from jaxtyping import Array, Bool, PRNGKeyArray

from envs.minigrid.generators.catalogue import FAMILIES, GENERATORS, NAMES, TRANSFER, find
from envs.minigrid.generators.crossing import crossing, gap
from envs.minigrid.generators.door_key import door_key
from envs.minigrid.generators.generator import Generator
from envs.minigrid.generators.multi_room import multi_room
from envs.minigrid.generators.obstructed_maze import one_door, quarters
from envs.minigrid.generators.room_grid import (
    blocked_unlock_pickup,
    key_corridor,
    unlock,
    unlock_pickup,
)
from envs.minigrid.level import Level

__all__ = [
    "FAMILIES",
    "GENERATORS",
    "NAMES",
    "TRANSFER",
    "Generator",
    "blocked_unlock_pickup",
    "crossing",
    "door_key",
    "draw",
    "find",
    "gap",
    "key_corridor",
    "multi_room",
    "one_door",
    "quarters",
    "unlock",
    "unlock_pickup",
]


def draw(
    generator: Generator, key: PRNGKeyArray, count: int
) -> tuple[Level, Bool[Array, " count"]]:
    """Draws `count` levels in bulk.

    Returns:
        Levels with a leading axis `[count]`, and which of them may be played. All of them may,
        short of an accident that no run will ever see; whoever keeps levels checks all the same.
    """
    return generator.draw(key, count)
