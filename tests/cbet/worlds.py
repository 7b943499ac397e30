"""Worlds for the tests: the paper's three, few of them."""

from envs.minigrid.generators import GENERATORS
from envs.minigrid.world import gridworld
from envs.types import World

MULTI_ENV = ("MultiRoom-N4-S5", "KeyCorridorS3R3", "BlockedUnlockPickup")


def multi_env(num_worlds: int, *, explore: bool = True) -> World:
    return gridworld([GENERATORS[name] for name in MULTI_ENV], num_worlds, explore=explore)


def single_env(name: str, num_worlds: int, *, explore: bool = True) -> World:
    return gridworld([GENERATORS[name]], num_worlds, explore=explore)
