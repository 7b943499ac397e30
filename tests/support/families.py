"""Which environments the tests play by default: one of each family. The others are slow."""

from collections.abc import Iterable
from functools import partial

import pytest

from envs.minigrid.generators import GENERATORS

slow = partial(pytest.param, marks=pytest.mark.slow)  # a case of a test
# Each has a generator of its own, or other cells or rules than the rest of its family.
ONE_PER_FAMILY = (
    "MultiRoom-N4-S5",
    "MultiRoomNoisyTV-N7-S4",
    "KeyCorridorS3R3",
    "BlockedUnlockPickup",
    "Unlock",
    "DoorKey-6x6",
    "ObstructedMaze-2Dlhb",
    "LavaCrossingS9N2",
    "LavaGapS6",
)


def others_slow(
    names: Iterable[str] = tuple(GENERATORS), default: Iterable[str] = ONE_PER_FAMILY
) -> list:
    """Return `names` as parameters of a test; those that are not in `default` are marked slow."""
    default = set(default)
    return [name if name in default else slow(name) for name in names]
