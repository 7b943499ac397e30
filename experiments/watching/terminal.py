"""Show an episode as text: MiniGrid's two letters a cell, in colour."""

import itertools
import time
from collections.abc import Iterable, Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from envs.minigrid import cells as c
from envs.minigrid import views
from envs.minigrid.level import NO_TASK, Level, make_level
from envs.minigrid.level_text import to_text
from envs.minigrid.render import UP, in_sight, seen_ahead
from experiments.watching.crop import Window, bounding_box
from experiments.watching.playing import Moment, facts

UNSEEN = ".."
COLORS = {
    "R": "bright_red", "G": "bright_green", "B": "bright_blue", "P": "magenta",
    "Y": "bright_yellow", "E": "grey70",
}  # fmt: skip
LEGEND = (
    "WG wall  D door  _ open  L locked  K key  A ball  B box  GG goal  VR lava\n"
    ">> agent; colours: R red  G green  B blue  P purple  Y yellow  E grEy"
)
LABEL_WIDTH = 17  # characters
LIT, AGENT = " on grey23", "bold bright_white"


def show(
    console: Console,
    title: str,
    players: Sequence[str],
    scenes: Iterable[tuple[Moment, ...]],
    fps: int,
) -> None:
    """Animate scenes, a moment for each player, in a terminal; else print frame after frame."""
    console.print(LEGEND, highlight=False)
    frames = (frame(title, players, scene) for scene in scenes)
    if not console.is_terminal:
        for drawn in frames:
            console.print(drawn)
        return
    with console.status("compiling"):
        first = tuple(itertools.islice(frames, 1))
    with Live(console=console, auto_refresh=False) as live:
        for drawn in itertools.chain(first, frames):
            live.update(drawn, refresh=True)
            time.sleep(1 / fps)


def frame(title: str, players: Sequence[str], scene: tuple[Moment, ...]) -> Group:
    """Draw one player's grid beside its view and the facts, or the grids of several players."""
    if len(scene) == 1:
        (moment,), (player,) = scene, players
        beside = Text("\n").join([_view(moment), _facts(moment)])
        return Group(Text(f"{title}: {player}"), _row([_grid(moment), beside]))
    each = [
        Text("\n").join([Text(player), _grid(moment), _facts(moment)])
        for player, moment in zip(players, scene, strict=True)
    ]
    return Group(Text(title), _row(each))


def _row(cells: Sequence[Text]) -> Table:
    table = Table.grid(padding=(0, 2))
    for _ in cells:
        table.add_column(no_wrap=True)
    table.add_row(*cells)
    return table


def _grid(moment: Moment) -> Text:
    """Write the part of the grid that the level uses."""
    level = moment.state.level
    return _letters(level, in_sight(moment.state), bounding_box(level))


def _view(moment: Moment) -> Text:
    """Write what the agent sees."""
    seen = seen_ahead(moment.state)
    shown = jnp.asarray(np.where(seen == c.HIDDEN, c.EMPTY, seen))
    agent = jnp.array((views.AGENT_X, views.AGENT_Y))
    level = make_level(shown, agent, UP, task=NO_TASK, max_steps=0)
    return _letters(level, seen != c.HIDDEN, (slice(None), slice(None)), UNSEEN)


def _facts(moment: Moment) -> Text:
    return Text("\n".join(f"{label:<{LABEL_WIDTH}}{value}" for label, value in facts(moment)))


def _letters(
    level: Level, lit: Bool[np.ndarray, "height width"], window: Window, dark: str = ""
) -> Text:
    """Write a window of a level's grid, with `dark` (unless empty) for cells that are not lit."""
    text = Text()
    lines = to_text(level).splitlines()[: lit.shape[0]]  # the rest describes hidden things
    rows, columns = window
    for line, lit_row in list(zip(lines, lit, strict=True))[rows]:
        text.append("\n" if text else "")
        for x in range(len(lit_row))[columns]:
            pair = line[2 * x : 2 * x + 2]
            shown = dark if dark and not lit_row[x] else pair
            text.append(shown, _style(pair) + LIT * bool(lit_row[x]))
    return text


def _style(pair: str) -> str:
    if pair[0] in "><V^" and pair != "VR":
        return AGENT
    return COLORS["E"] if pair == "WG" else COLORS.get(pair[1], "default")
