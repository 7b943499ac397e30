"""Levels as the planner takes them: one byte for each cell, places numbered `y * width + x`."""

from functools import cache
from typing import NamedTuple

from envs.minigrid import cells as c
from envs.minigrid.export import Export, encoding_tables
from envs.minigrid.level import OPEN_DOOR, PICK_UP, TASKS


class Moment(NamedTuple):
    """Everything that actions change."""

    cells: bytes
    place: int
    direction: int
    carrying: int


class Puzzle(NamedTuple):
    """Everything that stays the same while a level is solved."""

    width: int
    steps: tuple[int, int, int, int]  # the number that a step in each direction adds to a place
    task: int
    target: int  # PICK_UP: the byte of the object; OPEN_DOOR: the place of the door


def read(export: Export) -> tuple[Puzzle, Moment]:
    """Pack an export back into one byte per cell."""
    codes = _codes()
    width, height = export.grid.shape[:2]
    cells = bytes(
        codes[*export.grid[x, y].tolist(), *export.contents[x, y].tolist()]
        for y in range(height)
        for x in range(width)
    )
    task, target = TASKS.index(export.task), 0
    if export.target is not None and task == PICK_UP:
        target = codes[*export.target, 0, 0, 0]
    if export.target is not None and task == OPEN_DOOR:
        target = export.target[1] * width + export.target[0]
    carrying = c.EMPTY
    if export.carrying is not None:
        carrying = codes[*export.carrying, 0, *(export.carrying_contents or (0, 0))]
    x, y = export.agent_pos
    start = Moment(cells, y * width + x, export.agent_dir, carrying)
    return Puzzle(width, (1, width, -1, -width), task, target), start


@cache
def _codes() -> dict[tuple[int, ...], int]:
    """Return the byte of each (type, colour, state, type inside, colour inside)."""
    triples, contents = encoding_tables()
    used = [cell for cell in range(c.NUM_KINDS << 3) if cell & 7 < len(c.COLORS)]
    return {(*triples[cell].tolist(), *contents[cell].tolist()): cell for cell in reversed(used)}
