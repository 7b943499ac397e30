"""Farama's `minigrid`: our exported worlds rebuilt there, and what is read from them."""

import warnings
from typing import NamedTuple

import gymnasium
import minigrid  # noqa: F401  (registers its environments)
import numpy as np
from minigrid.core.grid import Grid
from minigrid.core.world_object import Ball, Box, Key, WorldObj
from minigrid.envs.multiroom import MultiRoomEnv
from minigrid.minigrid_env import MiniGridEnv

from envs.minigrid.export import Export

# Of each task, one environment of MiniGrid that has it.
TASK_ENVIRONMENTS = {
    "reach the goal": "DoorKey-5x5",
    "pick up the object": "BlockedUnlockPickup",
    "open the door": "Unlock",
}
# Environments that are not registered as `MiniGrid-<name>-v0`: rooms and their greatest size.
MULTI_ROOMS = {"MultiRoom-N4-S5": (4, 5), "MultiRoom-N7-S4": (7, 4), "MultiRoom-N12-S10": (12, 10)}
NOISY = {"MultiRoomNoisyTV-N7-S4": (7, 4)}


class MultiRoomNoisyTV(MultiRoomEnv):
    """MultiRoom with a ball in the first room; `drop` does nothing but change its colour."""

    next_color: str | None = None  # of the ball at the next `drop`, if not drawn at random

    def _gen_grid(self, width, height):
        super()._gen_grid(width, height)
        first = self.rooms[0]
        self.ball = Ball(self._rand_color())
        self.place_obj(self.ball, first.top, first.size)

    def step(self, action):
        if action != self.actions.drop:
            return super().step(action)
        self.ball.color = self.next_color or self._rand_color()
        return super().step(self.actions.done)


def make(name: str) -> MiniGridEnv:
    """Make MiniGrid's environment of the name that the paper uses, and reset it once."""
    if name in MULTI_ROOMS or name in NOISY:
        kind = MultiRoomNoisyTV if name in NOISY else MultiRoomEnv
        rooms, size = (MULTI_ROOMS | NOISY)[name]
        env = kind(minNumRooms=rooms, maxNumRooms=rooms, maxRoomSize=size)
    else:
        version = "" if name.endswith("-v1") else "-v0"
        with warnings.catch_warnings(action="ignore"):  # that there is a v1 of some
            env = gymnasium.make(f"MiniGrid-{name}{version}", disable_env_checker=True).unwrapped
    env.reset(seed=0)
    return env


class Moment(NamedTuple):
    """What is compared with our own state at every step."""

    panorama: np.ndarray  # [4, 7, 7, 3]
    view: np.ndarray  # [7, 7, 3]
    grid: np.ndarray  # [W, H, 3]
    contents: np.ndarray  # [W, H, 2]
    agent: tuple[int, int, int]  # x, y, direction
    carrying: tuple[int, int, int, int]  # (type, colour) carried, (type, colour) in it; or zeros
    step_count: int


def rebuild(export: Export, env: MiniGridEnv) -> None:
    """Turn `env` into the exported world."""
    env.max_steps = export.max_steps
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
    if isinstance(env, MultiRoomNoisyTV):
        env.ball = next(thing for thing in env.grid.grid if isinstance(thing, Ball))


def export_from(env: MiniGridEnv, task: str) -> Export:
    """Describe a world of `minigrid` as ours are exported, so that both can be measured alike."""
    return Export(
        grid=env.grid.encode(),
        contents=contents_of(env),
        agent_pos=(int(env.agent_pos[0]), int(env.agent_pos[1])),
        agent_dir=int(env.agent_dir),
        carrying=None,
        step_count=env.step_count,
        max_steps=env.max_steps,
        task=task,
        target=_target(env, task),
        carrying_contents=None,
    )


def _target(env: MiniGridEnv, task: str) -> tuple[int, int] | None:
    if task == "pick up the object":
        return env.obj.encode()[:2]
    return tuple(map(int, env.door.cur_pos)) if task == "open the door" else None


def build_object(triple, contents) -> WorldObj | None:
    """Build one object from MiniGrid's encoding and the encoding of what is inside it."""
    built = WorldObj.decode(*(int(value) for value in triple))
    if contents[0]:
        assert isinstance(built, Box)
        built.contains = WorldObj.decode(int(contents[0]), int(contents[1]), 0)
    return built


def _find(env: MiniGridEnv, target: tuple[int, int]) -> WorldObj | None:
    things = [env.carrying, *env.grid.grid]
    return next((thing for thing in things if thing and thing.encode()[:2] == target), None)


def look(env: MiniGridEnv, view: np.ndarray, before: Moment | None = None) -> Moment:
    """Read the whole state, given the view that the last step returned.

    Args:
        env: the world.
        view: what the agent sees.
        before: a moment since which nothing was handled, so that the grid is still the same.
    """
    carried = (0, 0, 0, 0)
    if env.carrying:
        carried = (*env.carrying.encode()[:2], *_inside(env.carrying))
    return Moment(
        panorama=panorama(env, view),
        view=view,
        grid=env.grid.encode() if before is None else before.grid,
        contents=contents_of(env) if before is None else before.contents,
        agent=(int(env.agent_pos[0]), int(env.agent_pos[1]), int(env.agent_dir)),
        carrying=carried,
        step_count=env.step_count,
    )


def panorama(env: MiniGridEnv, view: np.ndarray) -> np.ndarray:
    """Return the views to the four directions; `view` is the one the agent has now."""
    direction = env.agent_dir
    views = []
    for env.agent_dir in range(4):
        views.append(view if env.agent_dir == direction else env.gen_obs()["image"])
    env.agent_dir = direction
    return np.stack(views)


def contents_of(env: MiniGridEnv) -> np.ndarray:
    """Return the type and colour of what is inside each box."""
    contents = np.zeros((env.width, env.height, 2), np.uint8)
    for index, thing in enumerate(env.grid.grid):
        if isinstance(thing, Box):
            contents[index % env.width, index // env.width] = _inside(thing)
    return contents


def _inside(thing: WorldObj) -> tuple[int, int]:
    inside = thing.contains
    assert inside is None or isinstance(inside, Key | Ball)
    return inside.encode()[:2] if inside else (0, 0)
