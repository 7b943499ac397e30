"""Environments from levels drawn as text (maps), sampled uniformly.

A map is a grid in the format of `envs.minigrid.level_text`, with an outer wall and one agent. Lines
below the grid add:

    within 60 steps     the time limit (default: 4 x greatest width x greatest height)
    pick up BY          the task: pick up an object of the map (default: reach the goal GG)
    open (5, 2)         the task: open a closed or locked door of the map
    no task             no task
    (3, 2) holds KR     the contents of a box
    (1, 1) under FB     the cell below the agent
    G is green          needed where a cell has a G and none has an E
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray, UInt8

from envs.minigrid import cells as c
from envs.minigrid.export import unpack_box
from envs.minigrid.generators.generator import Generator, SampledLevel, make_generator
from envs.minigrid.level import (
    MARGIN,
    MAX_SIDE,
    NO_TASK,
    OPEN_DOOR,
    PICK_UP,
    REACH_GOAL,
    TASKS,
    enlarge,
    pack_position,
)
from envs.minigrid.level_text import cell_of, from_text, read_grid

MAX_STEPS = 10**6
STEPS_FOR_EACH_CELL = 4  # default time limit per cell, as in MiniGrid's Empty

_WITHIN = re.compile(r"within (\d+) steps")
_PICK_UP = re.compile(r"pick up ([KAB][RGBPYE])")
_OPEN = re.compile(r"open \((\d+), (\d+)\)")
_NO_TASK = re.compile("no task")
_TASKS = {_PICK_UP: PICK_UP, _OPEN: OPEN_DOOR, _NO_TASK: NO_TASK}


class _Map(NamedTuple):
    """A parsed map."""

    text: str  # the grid and its notes, for `from_text`
    grid: UInt8[np.ndarray, "height width"]
    task: int
    target: int  # as in `make_level`
    max_steps: int | None


def text_levels(name: str, texts: Sequence[str]) -> Generator:
    """Return an environment whose episodes sample one of the maps uniformly.

    Args:
        name: the environment's name.
        texts: one or more maps with the same task and time limit.

    Raises:
        ValueError: a map is invalid; the message says which, and why.
    """
    maps = []
    for number, text in enumerate(texts, 1):
        try:
            maps.append(_read(text))
        except ValueError as error:
            which = f"map {number}: " if len(texts) > 1 else ""
            raise ValueError(f"{which}{error}") from None
    height = max(drawn.grid.shape[0] for drawn in maps)
    width = max(drawn.grid.shape[1] for drawn in maps)
    task = _common("tasks", [TASKS[drawn.task] for drawn in maps])
    limit = _common("time limits", [drawn.max_steps for drawn in maps])
    max_steps = limit or STEPS_FOR_EACH_CELL * width * height
    levels = [
        enlarge(
            from_text(each.text, task=each.task, target=each.target, max_steps=max_steps),
            height + 2 * MARGIN,
            width + 2 * MARGIN,
        )
        for each in maps
    ]
    stacked = jax.tree.map(lambda *leaves: np.stack(jax.device_get(leaves)), *levels)

    def sample_level(key: PRNGKeyArray) -> SampledLevel:
        index = jax.random.randint(key, (), 0, len(levels))
        return jax.tree.map(lambda leaf: jnp.asarray(leaf)[index], stacked), jnp.bool_(True)

    deadly = any((drawn.grid == c.LAVA).any() for drawn in maps)
    return make_generator(
        name, width, height, max_steps, TASKS.index(task), sample_level, deadly=deadly
    )


def _read(text: str) -> _Map:
    """Parse a map; raise ValueError if it is invalid."""
    lines = [line.strip() for line in text.split("\n")]  # walls end every line of a grid
    drawn, limits, aims = [], [], []
    for line in filter(None, lines):
        if found := _WITHIN.fullmatch(line):
            limits.append(int(found[1]))
        elif matches := [(p, found) for p in _TASKS if (found := p.fullmatch(line))]:
            aims += matches
        else:
            drawn.append(line)
    if len(limits) > 1 or len(aims) > 1:
        raise ValueError("it has more than one line for its " + ("task" if aims[1:] else "limit"))
    if limits and not 1 <= limits[0] <= MAX_STEPS:
        raise ValueError(f"its time limit must be 1 to {MAX_STEPS} steps, not {limits[0]}")
    grid, _ = read_grid("\n".join(drawn))
    _check_walls(grid)
    has_goal = bool((grid == c.GOAL).any())
    if has_goal and aims:
        raise ValueError(f"it has a goal GG, and also a line {aims[0][1][0]!r}: one task is played")
    if not has_goal and not aims:
        raise ValueError(
            "it has no task: it needs a goal GG, or a line such as 'pick up BY', 'open (5, 2)' or "
            "'no task'"
        )
    task, target = (REACH_GOAL, 0) if has_goal else _aim(grid, *aims[0])
    return _Map("\n".join(drawn), grid, task, target, limits[0] if limits else None)


def _aim(
    grid: UInt8[np.ndarray, "height width"], pattern: re.Pattern[str], found: re.Match[str]
) -> tuple[int, int]:
    """Return the task and target of a line; raise ValueError if the grid lacks the target.

    Args:
        grid: the map's grid.
        pattern: the pattern that the line matches.
        found: the match.
    """
    target = 0
    if pattern is _PICK_UP:
        shown = cell_of(found[1])
        present = {int(cell) for cell in np.unique(grid)}
        boxes = {cell for cell in present if cell >> 3 >= c.KIND_BOX}
        alike = {cell for cell in boxes if c.box(cell & 7) == shown}
        alike |= {shown} & (present | set(map(unpack_box, boxes)))
        if len(alike) != 1:
            fault = "no such object" if not alike else "boxes of that colour that differ inside"
            raise ValueError(f"{found[0]!r}: it has {fault}")
        (target,) = alike
    elif pattern is _OPEN:
        x, y = int(found[1]), int(found[2])
        within = y < grid.shape[0] and x < grid.shape[1]
        if not within or int(grid[y, x]) >> 3 not in (c.KIND_CLOSED, c.KIND_LOCKED):
            raise ValueError(f"{found[0]!r}: there is no closed or locked door")
        target = int(pack_position(x, y))
    return _TASKS[pattern], target


def _check_walls(grid: UInt8[np.ndarray, "height width"]) -> None:
    """Raise ValueError for a grid of a wrong size or without an outer wall."""
    height, width = grid.shape
    if not 3 <= min(height, width) <= max(height, width) <= MAX_SIDE:
        raise ValueError(f"a grid has 3 to {MAX_SIDE} cells along a side, not {width} x {height}")
    for y, x in np.ndindex(height, width):
        at_border = y in (0, height - 1) or x in (0, width - 1)
        if at_border and grid[y, x] != c.WALL:
            raise ValueError(f"there must be a wall WG all around, but not at {(x, y)}")


def _common[T](what: str, each: Sequence[T]) -> T:
    """Return the value shared by all maps; raise ValueError if they differ."""
    if len(set(each)) > 1:
        raise ValueError(
            f"its maps have different {what}: {' and '.join(map(str, dict.fromkeys(each)))}"
        )
    return each[0]
