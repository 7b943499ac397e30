"""Write a level as text, and read it back.

Each cell takes two characters, as in MiniGrid's `pprint_grid`: its kind, then its colour.

    WG wall   FB floor   KR key   AB ball   BY box   GG goal   VR lava   (two blanks) empty
    DR closed door   LR locked door   _R open door   >> VV << ^^ the agent

The colours are R, G, B, P, Y, and E for grey, except that a wall is always written `WG`. Unlike
`pprint_grid`, the text keeps the colour of an open door, and notes below the grid list hidden
cells: `(3, 2) holds KR` for a box, `(1, 1) under _R` for the cell below the agent.

`pprint_grid` writes G for green and for grey. So a text with a G but no E needs the note
`G is green`.
"""

import re

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import UInt8

from envs.minigrid import cells as c
from envs.minigrid.export import unpack_box, without_margin
from envs.minigrid.level import NO_TASK, Level, make_level

_AGENT = (">>", "VV", "<<", "^^")
_COLORS = "RGBPYE"
_COLORED = {
    "F": c.KIND_FLOOR, "_": c.KIND_OPEN, "D": c.KIND_CLOSED, "L": c.KIND_LOCKED,
    "K": c.KIND_KEY, "A": c.KIND_BALL, "B": c.KIND_BOX,
}  # fmt: skip
_CELLS = {"  ": c.EMPTY, "WG": c.WALL, "GG": c.GOAL, "VR": c.LAVA} | {
    letter + _COLORS[color]: c.cell(kind, color)
    for letter, kind in _COLORED.items()
    for color in range(len(c.COLORS))
}
_TEXTS = {cell: text for text, cell in _CELLS.items()}
_NOTE = re.compile(r"\((\d+), (\d+)\) (holds|under) (..)")
_GREEN = "G is green"


def to_text(level: Level) -> str:
    """Write the grid of a level, and its agent, as text."""
    cells, size, agent_position, agent_direction, *_ = jax.device_get(level)
    grid = without_margin(cells, size)
    agent_x, agent_y = agent_position.tolist()
    lines, notes = [], []
    for y, row in enumerate(grid.tolist()):
        line = []
        for x, cell in enumerate(row):
            shown = _shown(cell)
            if shown != cell:
                notes.append(f"({x}, {y}) holds {_TEXTS[unpack_box(cell)]}")
            if (x, y) == (agent_x, agent_y):
                notes += [f"({x}, {y}) under {_TEXTS[shown]}"] if shown != c.EMPTY else []
                line.append(_AGENT[int(agent_direction)])
            else:
                line.append(_TEXTS[shown])
        lines.append("".join(line))
    notes += [_GREEN] if _unclear(grid) else []
    return "\n".join(lines + notes)


def from_text(text: str, *, task: int = NO_TASK, target: int = 0, max_steps: int = 100) -> Level:
    """Read a level from text in the format of `to_text`.

    Args:
        text: the grid, in lines of equal length, then the notes.
        task: an index into `level.TASKS`.
        target: as in `make_level`.
        max_steps: time limit in steps.

    Raises:
        ValueError: the text is not a level; the message says where.
    """
    grid, (x, y, direction) = read_grid(text)
    return make_level(
        jnp.asarray(grid),
        jnp.array((x, y)),
        direction,
        task=task,
        target=target,
        max_steps=max_steps,
    )


def read_grid(text: str) -> tuple[UInt8[np.ndarray, "height width"], tuple[int, int, int]]:
    """Read the grid of a level, and the agent's x, y and direction.

    Raises:
        ValueError: the text is not a level; the message says where.
    """
    lines = [line for line in text.split("\n") if line]
    told = _GREEN in lines
    lines = [line for line in lines if line != _GREEN]
    notes = [match for line in lines if (match := _NOTE.fullmatch(line))]
    drawn = [line for line in lines if not _NOTE.fullmatch(line)]
    for line in drawn:
        if line.startswith("("):
            raise ValueError(f"{line!r} is not '(x, y) holds KR' or '(x, y) under FB'")
        if len(line) != len(drawn[0]) and line[:2] not in {*_AGENT, *_CELLS}:
            raise ValueError(f"{line!r} is neither a row of cells nor a statement that is known")
    lengths = [len(line) for line in drawn]
    if len({*lengths}) != 1 or lengths[0] % 2:
        raise ValueError(f"the lines of a level must have the same even length, not {lengths}")
    grid = np.zeros((len(drawn), len(drawn[0]) // 2), np.uint8)
    agents = []
    for y, x in np.ndindex(*grid.shape):
        pair = drawn[y][2 * x : 2 * x + 2]
        if pair in _AGENT:
            agents.append((x, y, _AGENT.index(pair)))
        elif pair in _CELLS:
            grid[y, x] = _CELLS[pair]
        else:
            raise ValueError(f"unknown cell {pair!r} at {(x, y)}")
    if len(agents) != 1:
        raise ValueError(f"a level must have one agent, not {len(agents)}")
    for note in notes:
        _apply(note, grid, agents[0][:2])
    if not told and (unclear := _unclear(grid)):
        raise ValueError(
            f"{unclear} is green here, but green or grey in MiniGrid's pprint_grid: write E for "
            f"each grey one, or add the line {_GREEN!r}"
        )
    return grid, agents[0]


def cell_of(text: str) -> int:
    """Return the byte of a cell from its two characters."""
    return _CELLS[text]


def _apply(
    note: re.Match[str], grid: UInt8[np.ndarray, "height width"], agent: tuple[int, int]
) -> None:
    """Apply a note to the grid, in place; raise ValueError if it does not fit.

    Args:
        note: the note.
        grid: the grid.
        agent: the agent's (x, y).
    """
    x, y, cell = int(note[1]), int(note[2]), _CELLS.get(note[4], c.WALL)
    inside = x < grid.shape[1] and y < grid.shape[0]
    if note[3] == "under":
        if (x, y) != agent or cell >> 3 not in (c.KIND_FLOOR, c.KIND_OPEN, c.KIND_GOAL):
            raise ValueError(f"{note[0]!r}: no agent is there that can stand on it")
        grid[y, x] = cell
        return
    if not inside or grid[y, x] >> 3 != c.KIND_BOX or cell >> 3 not in (c.KIND_KEY, c.KIND_BALL):
        raise ValueError(f"{note[0]!r}: no box is there that can hold it")
    grid[y, x] = c.box(int(grid[y, x]) & 7, cell)


def _unclear(grid: UInt8[np.ndarray, "height width"]) -> str:
    """Return a cell whose G may mean grey: one with a G, if no cell has an E; or ''."""
    texts = [_TEXTS[_shown(cell)] for cell in grid.ravel().tolist()]
    greens = [text for text in texts if text[0] in _COLORED and text[1] == "G"]
    return greens[0] if greens and not any(text[1] == "E" for text in texts) else ""


def has_text(cell: int) -> bool:
    """Return whether a cell can be written as text."""
    return _shown(cell) in _TEXTS


def _shown(cell: int) -> int:
    """Return the cell without the contents of a box."""
    return cell if cell >> 3 <= c.KIND_BOX else c.box(cell & 7)
