"""The phases of an iteration: their times, operations and bytes."""

import pytest

from envs.minigrid import make_world
from experiments.benchmarks import phases
from experiments.common.presets import PRESETS

SETTINGS = PRESETS["smoke"].train
SECONDS = {  # that each program takes
    "network": 2, "rules": 1, "worlds": 3, "counted": 4, "fresh": 6, "acting": 9,
    "forward": 5, "gradient": 15, "learning": 14, "iteration": 30,
}  # fmt: skip


@pytest.fixture(scope="module")
def found() -> tuple[list[phases.Phase], phases.Phase]:
    """The phases of an iteration in a gridworld, and the whole."""
    world = make_world(("Unlock",), SETTINGS.worlds, explore=True)
    speeds = {name: 1 / seconds for name, seconds in SECONDS.items()}
    return phases.phases(speeds, SETTINGS, world)


def test_the_bytes_of_an_iteration(found):
    """Acting reads the recurrent weights at every step; backward is two products for one."""
    parts, whole = found
    moved = {part.name.split(": ")[1]: part.bytes for part in parts if part.bytes}
    worlds = {"rules", "resets and views", "counts"}
    assert moved.keys() == {"network", "forward", "backward", "optimizer", *worlds}
    recurrent = 4 * (4 * SETTINGS.network.lstm_units**2)  # bytes of the weights
    steps = SETTINGS.iteration_frames // SETTINGS.worlds
    assert moved["network"] > steps * recurrent
    assert moved["forward"] < moved["backward"] < 2 * moved["forward"]  # no gradient of views
    assert whole.bytes == sum(moved.values())


def test_phases_are_differences_of_programs(found):
    parts, whole = found
    assert {part.name: round(part.seconds, 9) for part in (*parts, whole)} == {
        "acting: network": 2,
        "acting: rules": 1,
        "acting: resets and views": 2,
        "acting: counts": 1,
        "acting: fresh levels": 2,
        "acting: all else": 1,
        "learning: forward": 5,
        "learning: backward": 10,
        "learning: optimizer": 0,  # it would be negative
        "an iteration": 30,
    }


def test_the_operations_of_an_iteration(found):
    parts, whole = found
    products = [part.operations for part in parts if part.unit == phases.FLOP]
    assert sum(products) == whole.operations > 0
    worlds = {part.name: part.operations for part in parts if part.unit == phases.OPERATION}
    assert min(worlds.values()) > 0
    assert worlds["acting: resets and views"] > 5 * worlds["acting: rules"]  # of sight
    optimized = worlds["learning: optimizer"] / SETTINGS.updates
    assert 5 < optimized / 10_000 < 50  # some operations for each of the network's weights
