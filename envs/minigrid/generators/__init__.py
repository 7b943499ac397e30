"""The environments of the paper, by name, and how their levels are drawn."""

from envs.minigrid.generators.catalogue import FAMILIES, GENERATORS, NAMES, TRANSFER, find
from envs.minigrid.generators.crossing import crossing, gap
from envs.minigrid.generators.door_key import door_key
from envs.minigrid.generators.generator import PATIENCE, Generator, draw, no_level
from envs.minigrid.generators.key_corridor import key_corridor
from envs.minigrid.generators.multi_room import multi_room
from envs.minigrid.generators.obstructed_maze import one_door, quarters
from envs.minigrid.generators.unlock import blocked_unlock_pickup, unlock, unlock_pickup

__all__ = [
    "FAMILIES",
    "GENERATORS",
    "NAMES",
    "PATIENCE",
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
    "no_level",
    "one_door",
    "quarters",
    "unlock",
    "unlock_pickup",
]
