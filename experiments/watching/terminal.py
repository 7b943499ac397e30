"""A played episode as text: MiniGrid's two letters a cell, in colour where there is any."""

import time
from collections.abc import Iterable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, UInt8
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from envs.minigrid import cells as c
from envs.minigrid import views
from envs.minigrid.level import NO_TASK, Level, make_level
from envs.minigrid.level_text import to_text
from envs.minigrid.render import UP, in_sight, seen_ahead
from experiments.watching.playing import Moment, facts

UNSEEN = ".."
COLORS = {
    "R": "bright_red", "G": "bright_green", "B": "bright_blue", "P": "magenta",
    "Y": "bright_yellow", "E": "grey70",
}  # fmt: skip
LIT, AGENT = " on grey23", "bold bright_white"


def show(console: Console, title: str, moments: Iterable[Moment], fps: int) -> None:
    """Plays in place where that can be, else prints one frame below the other.

    Args:
        console: where to.
        title: stands above each frame.
        moments: to show.
        fps: frames a second, in place.
    """
    if not console.is_terminal:
        for moment in moments:
            console.print(frame(title, moment))
        return
    with Live(console=console, auto_refresh=False) as live:
        for moment in moments:
            live.update(frame(title, moment), refresh=True)
            time.sleep(1 / fps)


def frame(title: str, moment: Moment) -> Table:
    """Draws the whole grid, beside it what the agent sees and what the last action brought."""
    level = moment.state.level
    grid = _letters(level, in_sight(moment.state))
    seen = seen_ahead(moment.state)
    view = _letters(_as_level(np.where(seen == c.HIDDEN, c.EMPTY, seen)), seen != c.HIDDEN, UNSEEN)
    beside = Text("\n".join(f"{label:<17}{value}" for label, value in facts(moment)), no_wrap=True)
    table = Table(title=title, title_justify="left", box=None, show_header=False, pad_edge=False)
    table.add_row(grid, Group(view, Text(), beside))
    return table


def _letters(level: Level, lit: Bool[np.ndarray, "height width"], dark: str = "") -> Text:
    """Writes a grid; cells that the agent does not see are written as `dark`, if it is given."""
    text = Text(no_wrap=True)
    lines = to_text(level).splitlines()[: lit.shape[0]]  # what follows tells of hidden things
    for line, lit_row in zip(lines, lit, strict=True):
        text.append("\n" if text else "")
        for x, is_lit in enumerate(lit_row):
            pair = line[2 * x : 2 * x + 2]
            shown = dark if dark and not is_lit else pair
            text.append(shown, _style(pair) + LIT * bool(is_lit))
    return text


def _style(pair: str) -> str:
    if pair[0] in "><V^" and pair != "VR":
        return AGENT
    return COLORS["E"] if pair == "WG" else COLORS.get(pair[1], "default")


def _as_level(view: UInt8[np.ndarray, "7 7"]) -> Level:
    """Returns what the agent sees as a level, which can be written."""
    agent = jnp.array((views.AGENT_X, views.AGENT_Y))
    return make_level(jnp.asarray(view), agent, UP, task=NO_TASK, max_steps=0)
