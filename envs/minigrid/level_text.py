"""Levels as text, so that a person can draw one and read one.

Two characters a cell, as in MiniGrid's `pprint_grid`: first what it is, then its colour.

    WG wall   FB floor   KR key   AB ball   BY box   GG goal   VR lava   (two blanks) empty
    DR closed door   LR locked door   _R open door   >> VV << ^^ the agent

Three things that `pprint_grid` leaves out are told here. Colours other than a wall's are R, G,
B, P, Y, and E for grey. An open door keeps its colour. And lines below the grid tell what cannot
be seen: `(3, 2) holds KR` for a box, `(1, 1) under _R` for what the agent stands on.
"""

import re

import jax
import jax.numpy as jnp
import numpy as np

from envs.minigrid import cells as c
from envs.minigrid.export import content_of, trim
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


def to_text(level: Level) -> str:
    """Draws a level: its grid and where the agent is."""
    cells, size, agent_position, agent_direction, *_ = jax.device_get(level)
    grid = trim(cells, size).tolist()
    agent_x, agent_y = agent_position.tolist()
    lines, notes = [], []
    for y, row in enumerate(grid):
        line = []
        for x, cell in enumerate(row):
            shown = _shown(cell)
            if shown != cell:
                notes.append(f"({x}, {y}) holds {_TEXTS[content_of(cell)]}")
            if (x, y) == (agent_x, agent_y):
                notes += [f"({x}, {y}) under {_TEXTS[shown]}"] if shown != c.EMPTY else []
                line.append(_AGENT[int(agent_direction)])
            else:
                line.append(_TEXTS[shown])
        lines.append("".join(line))
    return "\n".join(lines + notes)


def from_text(text: str, *, task: int = NO_TASK, target: int = 0, max_steps: int = 100) -> Level:
    """Reads a level as `to_text` draws it.

    Args:
        text: the drawing; every line of the grid has the same length.
        task: one of `level.TASKS`, by index.
        target: as in `make_level`.
        max_steps: time limit in steps.

    Raises:
        ValueError: the drawing is not well formed; the message says where.
    """
    lines = [line for line in text.split("\n") if line]
    notes = [match for line in lines if (match := _NOTE.fullmatch(line))]
    drawn = lines[: len(lines) - len(notes)]
    if not drawn or len({len(line) for line in drawn}) != 1 or len(drawn[0]) % 2:
        raise ValueError("the lines of a level have one even length")
    grid = np.zeros((len(drawn), len(drawn[0]) // 2), np.uint8)
    agents = []
    for y, x in np.ndindex(*grid.shape):
        pair = drawn[y][2 * x : 2 * x + 2]
        if pair in _AGENT:
            agents.append((x, y, _AGENT.index(pair)))
        elif pair in _CELLS:
            grid[y, x] = _CELLS[pair]
        else:
            raise ValueError(f"no cell is written {pair!r}, as at {(x, y)}")
    if len(agents) != 1:
        raise ValueError(f"a level has one agent, not {len(agents)}")
    for note in notes:
        x, y, cell = int(note[1]), int(note[2]), _CELLS[note[4]]
        grid[y, x] = cell if note[3] == "under" else c.box(int(grid[y, x]) & 7, cell)
    return make_level(
        jnp.asarray(grid),
        jnp.array(agents[0][:2]),
        agents[0][2],
        task=task,
        target=target,
        max_steps=max_steps,
    )


def _shown(cell: int) -> int:
    """Returns the cell as it looks: a box does not show what it holds."""
    return cell if cell >> 3 <= c.KIND_BOX else c.box(cell & 7)
