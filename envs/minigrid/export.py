"""A moment of a gridworld as plain numpy, in MiniGrid's own terms."""

from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs.minigrid import cells as c
from envs.minigrid.level import MARGIN, OPEN_DOOR, PICK_UP, TASKS
from envs.minigrid.rules import State

Thing = tuple[int, int]  # MiniGrid's (type, colour)


class Export(NamedTuple):
    """All that is needed to build the same world in Farama's `minigrid` and play on."""

    grid: np.ndarray  # uint8[W, H, 3], as MiniGrid's `Grid.encode()`: (type, colour, state)
    contents: np.ndarray  # uint8[W, H, 2], (type, colour) inside a box, zeros elsewhere
    agent_pos: tuple[int, int]  # (x, y)
    agent_dir: int  # 0 right, 1 down, 2 left, 3 up
    carrying: Thing | None
    step_count: int
    max_steps: int
    task: str  # one of `level.TASKS`
    target: Thing | tuple[int, int] | None  # the object to pick up, or (x, y) of the door to open
    carrying_contents: Thing | None  # what is inside the carried box


def export(state: Any) -> Export:
    """Exports one world.

    Args:
        state: a `dynamics.State`, or the state of a navix `Timestep` of ours; not a batch.

    Raises:
        ValueError: the state is a batch.
    """
    world = jax.device_get(world_of(state))
    level = world.level
    if level.cells.ndim != 2:
        raise ValueError("export takes one state, not a batch: pick one with jax.tree.map")
    grid, contents = decode(trim(level.cells, level.size))
    return Export(
        grid=grid,
        contents=contents,
        agent_pos=(int(level.agent_position[0]), int(level.agent_position[1])),
        agent_dir=int(level.agent_direction),
        carrying=_thing(world.carrying),
        step_count=int(world.step_count),
        max_steps=int(level.max_steps),
        task=TASKS[level.task],
        target=_target(int(level.task), int(level.target)),
        carrying_contents=_inside(world.carrying),
    )


def world_of(state: Any) -> State:
    """Returns our own state, which the states of navix's timesteps carry as `world`."""
    return getattr(state, "world", state)


def trim(cells: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Returns the grid proper, without margin: `uint8[H, W]`, H and W as `size` tells."""
    width, height = int(size[0]), int(size[1])
    return cells[..., MARGIN : MARGIN + height, MARGIN : MARGIN + width]


def decode(cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns MiniGrid's `uint8[..., W, H, 3]` and the contents `uint8[..., W, H, 2]`."""
    triples, contents = code_tables()
    by_column = np.swapaxes(cells, -1, -2)
    return triples[by_column], contents[by_column]


@cache
def code_tables() -> tuple[np.ndarray, np.ndarray]:
    """Returns the triple and the contents of every possible byte."""
    every = jnp.arange(256, dtype=jnp.uint8)
    triples, inside = np.asarray(c.encode(every)), np.asarray(c.contents_of(every))
    contents = triples[inside][:, :2] * (inside != c.EMPTY)[:, None]
    return triples, contents.astype(np.uint8)


def content_of(box: int) -> int:
    """Returns what a box leaves behind when it is unpacked (`cells.contents_of`, on the host)."""
    kind = box >> 3
    if kind >= c.KIND_BOX_BALL:
        return c.ball(kind - c.KIND_BOX_BALL)
    return c.key(kind - c.KIND_BOX_KEY) if kind >= c.KIND_BOX_KEY else c.EMPTY


def _thing(cell: Any) -> Thing | None:
    kind, color = code_tables()[0][int(cell), :2]
    return None if int(cell) == c.EMPTY else (int(kind), int(color))


def _inside(cell: Any) -> Thing | None:
    kind, color = code_tables()[1][int(cell)]
    return (int(kind), int(color)) if kind else None


def _target(task: int, target: int) -> tuple[int, int] | None:
    if task == PICK_UP:
        return _thing(target)
    return (target & 255, target >> 8) if task == OPEN_DOOR else None
