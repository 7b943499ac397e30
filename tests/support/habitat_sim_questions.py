"""Questions to habitat-sim, or to its stand-in, about a room of 4 m by 4 m around the origin.

The answers do not depend on the room's exact floor. Those of habitat-sim 0.3.4 are kept in
`tests/envs/habitat/habitat_sim/answers.json`.
"""

import json
import math
import sys
import types
from pathlib import Path

import numpy as np

FAR = 9.0  # metres


def ask(simulator) -> dict:
    """Return the answers of a simulator with two agents: a walker and one with four cameras."""
    paths = simulator.pathfinder
    floor = paths.get_island(np.zeros(3, np.float32))
    centre = np.array(paths.snap_point(np.zeros(3, np.float32), floor))
    east = np.array(paths.snap_point(centre + np.array((2.1, 0, 0), np.float32), floor))
    stand(simulator, centre, 0.0)
    observed, stepped = simulator.get_sensor_observations(0), simulator.step("move_forward")
    low, high = (np.array(corner) for corner in paths.get_bounds())
    view = np.array(paths.get_topdown_island_view(0.5, float(centre[1])))
    point = np.array(paths.get_random_navigable_point(island_index=floor))
    return {
        "observation": sorted(observed),
        "observation of the second agent": sorted(simulator.get_sensor_observations(1)),
        "observation after a step": sorted(stepped),
        "image": [list(observed["rgb"].shape), str(observed["rgb"].dtype)],
        "own image": not np.shares_memory(observed["rgb"], stepped["rgb"]),
        "collided in the middle": bool(stepped["collided"]),
        "steps": [step(simulator, centre, heading) for heading in (0.0, 30.0, 90.0, 200.0)],
        "at the wall": wall(simulator, centre, east),
        "far away": np.isnan(paths.snap_point(np.array((FAR, 0, FAR), np.float32), floor)).tolist(),
        "not a number": error(simulator),
        "map": [view.ndim, view.dtype.kind, int(view.min()) in (-1, floor)],
        "map's shape": [
            view.shape[k] - int((high - low)[axis] / 0.5) for k, axis in enumerate((2, 0))
        ],
        "point": [list(point.shape), str(point.dtype)],
        "islands": [type(paths.num_islands).__name__, type(paths.island_area(floor)).__name__],
        "area of the floor": 12 < paths.island_area(floor) <= 16,
    }


def stand(simulator, position, heading: float) -> None:
    state = simulator.get_agent(0).get_state()
    half = math.radians(heading) / 2
    state.position = np.array(position, np.float32)
    state.rotation = [0.0, math.sin(half), 0.0, math.cos(half)]
    simulator.get_agent(0).set_state(state, is_initial=True)


def step(simulator, position, heading: float) -> list[float]:
    """Return how a step forward moves the agent."""
    stand(simulator, position, heading)
    simulator.step("move_forward")
    moved = np.array(simulator.get_agent(0).get_state().position) - position
    return [round(number, 3) + 0.0 for number in moved.tolist()]


def wall(simulator, centre, east) -> dict:
    """Return what happens to an agent that walks against a wall, straight and slanted."""
    stand(simulator, centre, 270.0)
    collided = [bool(simulator.step("move_forward")["collided"]) for _ in range(12)]
    stopped = np.array(simulator.get_agent(0).get_state().position)
    slid = step(simulator, stopped, 240.0)
    return {
        "collided": [collided[0], collided[-1]],
        "stopped at the edge": bool(np.abs(stopped - east).max() < 2e-3),
        "slid along it": [round(number, 2) for number in slid],
    }


def error(simulator) -> str:
    try:
        stand(simulator, (math.nan, 0.0, 0.0), 0.0)
    except Exception as raised:
        return type(raised).__name__
    return ""


if __name__ == "__main__":  # with habitat-sim's interpreter: SCENE and the file of the answers
    package = types.ModuleType("envs")
    package.__path__ = [str(Path(__file__).resolve().parents[2] / "envs")]
    sys.modules["envs"] = package
    from envs.habitat.habitat_sim.adapter import open_scene

    opened = open_scene(sys.argv[1], None)
    Path(sys.argv[2]).write_text(json.dumps(ask(opened._sim), indent=1) + "\n")
