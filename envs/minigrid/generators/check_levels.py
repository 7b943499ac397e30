"""The level contract, checked on samples of a generator."""

from collections.abc import Iterator

import jax
import numpy as np
from jaxtyping import UInt8
from scipy import ndimage

from envs.errors import ContractError
from envs.minigrid import cells as c
from envs.minigrid.export import unpack_box, without_margin
from envs.minigrid.generators.generator import Generator, sample_levels
from envs.minigrid.level import OPEN_DOOR, PICK_UP, REACH_GOAL, TASKS, Level, unpack_position
from envs.minigrid.level_text import has_text

LEVELS = 64  # levels sampled
QUICKLY = {"xla_backend_optimization_level": 0}  # compile fast: the program runs once
GROUND = (c.KIND_EMPTY, c.KIND_FLOOR, c.KIND_OPEN, c.KIND_GOAL)


def check_levels(generator: Generator, levels: int = LEVELS) -> None:
    """Sample levels; raise ContractError for the first invalid one. They may be unsolvable."""
    sample = jax.jit(lambda key: sample_levels(generator, key, levels), compiler_options=QUICKLY)
    sampled, ready = jax.device_get(sample(jax.random.key(0)))
    if not ready.all():
        raise ContractError(f"only {int(ready.sum())} of {levels} levels may be played")
    for number in range(levels):
        level = jax.tree.map(lambda leaf, number=number: leaf[number], sampled)
        for problem in _problems(generator, level):
            raise ContractError(f"level {number}: {problem}")


def _problems(generator: Generator, level: Level) -> Iterator[str]:
    """Yield the problems of a level."""
    width, height = level.size.tolist()
    if not 3 <= width <= generator.width or not 3 <= height <= generator.height:
        yield f"its size is {width} x {height}, not within {generator.width} x {generator.height}"
        return
    grid = without_margin(np.asarray(level.cells), np.asarray(level.size))
    kinds = grid >> 3
    if (kinds >= c.NUM_KINDS).any() or not all(map(has_text, grid.ravel().tolist())):
        yield "a cell has no kind or colour of MiniGrid's: walls are grey, goals green, lava red"
    x, y = level.agent_position.tolist()
    if not (0 <= x < width and 0 <= y < height) or kinds[y, x] not in GROUND:
        yield f"the agent, at {(x, y)}, must stand on a cell that is empty, or that it can enter"
        return
    areas, _ = ndimage.label(grid != c.WALL)
    border = np.concatenate([areas[0], areas[-1], areas[:, 0], areas[:, -1]])
    if areas[y, x] in border:
        yield "there must be a wall all around the cells that the agent can reach"
    if not 0 <= level.agent_direction < 4:
        yield f"the agent's direction must be 0..3, not {level.agent_direction}"
    if not 1 <= level.max_steps <= generator.max_steps:
        yield f"max_steps must be 1..{generator.max_steps}, not {level.max_steps}"
    if level.task != generator.task:
        yield f"its task must be {TASKS[generator.task]!r} ({generator.task}), not {level.task}"
    elif problem := _task_problem(level, grid):
        yield problem
    if (grid == c.LAVA).any() and not generator.deadly:
        yield "it has lava: say deadly=True"


def _task_problem(level: Level, grid: UInt8[np.ndarray, "height width"]) -> str:
    """Return the problem of a level's task, or '' if its object is present."""
    task, target, present = int(level.task), int(level.target), set(grid.flat)
    if task == REACH_GOAL and c.GOAL not in present:
        return "its task is to reach the goal, and it has none"
    if task == PICK_UP:
        boxes = {int(cell) for cell in present if cell >> 3 >= c.KIND_BOX}
        can_be_carried = target >> 3 in (c.KIND_KEY, c.KIND_BALL) or target >> 3 >= c.KIND_BOX
        if target not in present | set(map(unpack_box, boxes)) or not can_be_carried:
            return f"its task is to pick up the object {target}, which is not there"
    if task == OPEN_DOOR:
        x, y = unpack_position(target)
        inside = y < grid.shape[0] and x < grid.shape[1]
        if not inside or grid[y, x] >> 3 not in (c.KIND_CLOSED, c.KIND_LOCKED):
            return f"its task is to open the door at {(x, y)}, and none is there that is not open"
    return ""
