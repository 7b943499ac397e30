"""Export the state of a gridworld as numpy arrays in MiniGrid's encoding."""

from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs.minigrid import cells as c
from envs.minigrid.level import MARGIN, OPEN_DOOR, PICK_UP, TASKS, unpack_position
from envs.minigrid.rules import State

Thing = tuple[int, int]  # MiniGrid's (type, colour)


class Export(NamedTuple):
    """Everything needed to rebuild the world in Farama's `minigrid` and continue there."""

    grid: np.ndarray  # uint8[W, H, 3], (type, colour, state) as in MiniGrid's `Grid.encode()`
    contents: np.ndarray  # uint8[W, H, 2], (type, colour) of what a box holds, zeros elsewhere
    agent_pos: tuple[int, int]  # (x, y)
    agent_dir: int  # 0 right, 1 down, 2 left, 3 up
    carrying: Thing | None
    step_count: int
    max_steps: int
    task: str  # one of `level.TASKS`
    target: Thing | tuple[int, int] | None  # the object to pick up, or (x, y) of the door to open
    carrying_contents: Thing | None  # contents of the carried box


def export(state: Any) -> Export:
    """Export one world.

    Args:
        state: a `rules.State`, or the `state` of a navix `Timestep`; not a batch.

    Raises:
        ValueError: the state is a batch.
    """
    world = jax.device_get(state_of(state))
    level = world.level
    if level.cells.ndim != 2:
        raise ValueError("export takes one state, not a batch: select one with jax.tree.map")
    grid, contents = to_minigrid(without_margin(level.cells, level.size))
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


def state_of(state: Any) -> State:
    """Return the `rules.State`, which the state of a navix `Timestep` holds as `world`."""
    return getattr(state, "world", state)


def without_margin(cells: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return the grid without its margin, `uint8[..., H, W]` with `(W, H) = size`."""
    width, height = int(size[0]), int(size[1])
    return cells[..., MARGIN : MARGIN + height, MARGIN : MARGIN + width]


def to_minigrid(cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return MiniGrid's grid `uint8[..., W, H, 3]` and the contents `uint8[..., W, H, 2]`."""
    triples, contents = encoding_tables()
    by_column = np.swapaxes(cells, -1, -2)
    return triples[by_column], contents[by_column]


@cache
def encoding_tables() -> tuple[np.ndarray, np.ndarray]:
    """Return two tables: MiniGrid's triple and the box contents of every possible byte."""
    tables = jax.jit(lambda cells: (c.encode(cells), c.contents_of(cells)))
    triples, inside = map(np.asarray, tables(jnp.arange(256, dtype=jnp.uint8)))
    contents = triples[inside][:, :2] * (inside != c.EMPTY)[:, None]
    return triples, contents.astype(np.uint8)


def unpack_box(box: int) -> int:
    """Return the contents of a box (`cells.contents_of` on the host)."""
    kind = box >> 3
    if kind >= c.KIND_BOX_BALL:
        return c.ball(kind - c.KIND_BOX_BALL)
    return c.key(kind - c.KIND_BOX_KEY) if kind >= c.KIND_BOX_KEY else c.EMPTY


def _thing(cell: Any) -> Thing | None:
    kind, color = encoding_tables()[0][int(cell), :2]
    return None if int(cell) == c.EMPTY else (int(kind), int(color))


def _inside(cell: Any) -> Thing | None:
    kind, color = encoding_tables()[1][int(cell)]
    return (int(kind), int(color)) if kind else None


def _target(task: int, target: int) -> tuple[int, int] | None:
    if task == PICK_UP:
        return _thing(target)
    return unpack_position(target) if task == OPEN_DOOR else None
