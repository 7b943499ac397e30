"""Farama's `minigrid`: our exported worlds rebuilt there, and what is read from them."""

from functools import partial
from typing import NamedTuple

import numpy as np
from minigrid.core.grid import Grid
from minigrid.core.world_object import Ball, Box, Key, WorldObj
from minigrid.envs.blockedunlockpickup import BlockedUnlockPickupEnv
from minigrid.envs.keycorridor import KeyCorridorEnv
from minigrid.envs.multiroom import MultiRoomEnv
from minigrid.envs.unlock import UnlockEnv
from minigrid.minigrid_env import MiniGridEnv

from envs.minigrid.export import Export

ENVIRONMENTS = {
    "MultiRoom-N4-S5": partial(MultiRoomEnv, minNumRooms=4, maxNumRooms=4, maxRoomSize=5),
    "KeyCorridorS3R3": partial(KeyCorridorEnv, room_size=3, num_rows=3),
    "BlockedUnlockPickup": BlockedUnlockPickupEnv,
}
# Of each task, one environment of MiniGrid that has it.
TASK_ENVIRONMENTS = {
    "reach the goal": ENVIRONMENTS["MultiRoom-N4-S5"],
    "pick up the object": BlockedUnlockPickupEnv,
    "open the door": UnlockEnv,
}


class Moment(NamedTuple):
    """What is compared with our own state at every step."""

    panorama: np.ndarray  # [4, 7, 7, 3]
    view: np.ndarray  # [7, 7, 3]
    grid: np.ndarray  # [W, H, 3]
    contents: np.ndarray  # [W, H, 2]
    agent: tuple[int, int, int]  # x, y, direction
    carrying: tuple[int, int, int, int]  # (type, colour) carried, (type, colour) in it; or zeros
    step_count: int


def rebuild(export: Export, make=None) -> MiniGridEnv:
    """Builds the exported world in `minigrid`."""
    env = (make or TASK_ENVIRONMENTS[export.task])(max_steps=export.max_steps)
    env.reset(seed=0)
    env.width, env.height = export.grid.shape[:2]
    env.grid = Grid(env.width, env.height)
    for x, y in np.ndindex(env.width, env.height):
        env.grid.set(x, y, build_object(export.grid[x, y], export.contents[x, y]))
    env.agent_pos, env.agent_dir = export.agent_pos, export.agent_dir
    env.carrying = None
    if export.carrying:
        env.carrying = build_object((*export.carrying, 0), export.carrying_contents or (0, 0))
    env.step_count = export.step_count
    if export.task == "pick up the object":
        env.obj = _find(env, export.target)
    if export.task == "open the door":
        env.door = env.grid.get(*export.target)
    return env


def export_from(env: MiniGridEnv, task: str) -> Export:
    """Describes a world of `minigrid` as ours are exported, so that both can be measured alike."""
    return Export(
        grid=env.grid.encode(),
        contents=contents_of(env),
        agent_pos=(int(env.agent_pos[0]), int(env.agent_pos[1])),
        agent_dir=int(env.agent_dir),
        carrying=None,
        step_count=env.step_count,
        max_steps=env.max_steps,
        task=task,
        target=env.obj.encode()[:2] if task == "pick up the object" else None,
        carrying_contents=None,
    )


def build_object(triple, contents) -> WorldObj | None:
    """Builds one object from MiniGrid's encoding and the encoding of what is inside it."""
    built = WorldObj.decode(*(int(value) for value in triple))
    if contents[0]:
        assert isinstance(built, Box)
        built.contains = WorldObj.decode(int(contents[0]), int(contents[1]), 0)
    return built


def _find(env: MiniGridEnv, target: tuple[int, int]) -> WorldObj | None:
    things = [env.carrying, *env.grid.grid]
    return next((thing for thing in things if thing and thing.encode()[:2] == target), None)


def look(env: MiniGridEnv, view: np.ndarray) -> Moment:
    """Reads the whole state, given the view that the last step returned."""
    carried = (0, 0, 0, 0)
    if env.carrying:
        carried = (*env.carrying.encode()[:2], *_inside(env.carrying))
    return Moment(
        panorama=panorama(env, view),
        view=view,
        grid=env.grid.encode(),
        contents=contents_of(env),
        agent=(int(env.agent_pos[0]), int(env.agent_pos[1]), int(env.agent_dir)),
        carrying=carried,
        step_count=env.step_count,
    )


def panorama(env: MiniGridEnv, view: np.ndarray) -> np.ndarray:
    """Returns the views to the four directions; `view` is the one the agent has now."""
    direction = env.agent_dir
    views = []
    for env.agent_dir in range(4):
        views.append(view if env.agent_dir == direction else env.gen_obs()["image"])
    env.agent_dir = direction
    return np.stack(views)


def contents_of(env: MiniGridEnv) -> np.ndarray:
    """Returns the type and colour of what is inside each box."""
    contents = np.zeros((env.width, env.height, 2), np.uint8)
    for index, thing in enumerate(env.grid.grid):
        if isinstance(thing, Box):
            contents[index % env.width, index // env.width] = _inside(thing)
    return contents


def _inside(thing: WorldObj) -> tuple[int, int]:
    inside = thing.contains
    assert inside is None or isinstance(inside, Key | Ball)
    return inside.encode()[:2] if inside else (0, 0)
