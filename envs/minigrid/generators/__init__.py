"""Generators of levels, and the catalogue of environments by name."""

from envs.minigrid.generators.catalogue import FAMILIES, GENERATORS, NAMES, TRANSFER, find
from envs.minigrid.generators.crossing import crossing, gap
from envs.minigrid.generators.door_key import door_key
from envs.minigrid.generators.generator import (
    MAX_CALLS,
    Generator,
    placeholder_level,
    sample_levels,
)
from envs.minigrid.generators.key_corridor import key_corridor
from envs.minigrid.generators.multi_room import multi_room
from envs.minigrid.generators.obstructed_maze import one_door, quarters
from envs.minigrid.generators.unlock import blocked_unlock_pickup, unlock, unlock_pickup

__all__ = [
    "FAMILIES",
    "GENERATORS",
    "MAX_CALLS",
    "NAMES",
    "TRANSFER",
    "Generator",
    "blocked_unlock_pickup",
    "crossing",
    "door_key",
    "find",
    "gap",
    "key_corridor",
    "multi_room",
    "one_door",
    "placeholder_level",
    "quarters",
    "sample_levels",
    "unlock",
    "unlock_pickup",
]
