"""The environments of the paper, by name, and how their levels are drawn."""

from jaxtyping import Array, Bool, PRNGKeyArray

from envs.errors import UnknownEnvironment
from envs.minigrid.generators.generator import Generator
from envs.minigrid.generators.multi_room import multi_room
from envs.minigrid.generators.room_grid import blocked_unlock_pickup, key_corridor
from envs.minigrid.level import Level

__all__ = [
    "GENERATORS",
    "Generator",
    "blocked_unlock_pickup",
    "draw",
    "find",
    "key_corridor",
    "multi_room",
]

GENERATORS = {
    generator.name: generator
    for generator in (
        multi_room("MultiRoom-N4-S5", num_rooms=4, max_room_size=5),
        key_corridor("KeyCorridorS3R3", room_size=3, rows=3),
        blocked_unlock_pickup("BlockedUnlockPickup"),
    )
}


def find(name: str) -> Generator:
    """Returns the generator of the environment of that name.

    Raises:
        UnknownEnvironment: there is none; the message names the nearest.
    """
    if name not in GENERATORS:
        raise UnknownEnvironment(name, GENERATORS)
    return GENERATORS[name]


def draw(
    generator: Generator, key: PRNGKeyArray, count: int
) -> tuple[Level, Bool[Array, " count"]]:
    """Draws `count` levels in bulk.

    Returns:
        Levels with a leading axis `[count]`, and which of them may be played. All of them may,
        short of an accident that no run will ever see; whoever keeps levels checks all the same.
    """
    return generator.draw(key, count)
