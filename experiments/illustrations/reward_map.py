"""Play one level of a gridworld, and draw the reward of each action in each of its cells."""

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from rich.console import Console

from cbet_jax.agent import Agent, AgentParams, uniform
from cbet_jax.analysis import figures
from cbet_jax.config import SettingsError
from cbet_jax.runs.directory import RunDirectory
from cbet_jax.runs.saved_policies import load_policies
from cbet_jax.settings.ranges import check_between
from envs.minigrid import cells as c
from envs.minigrid import rules
from envs.minigrid.export import without_margin
from envs.minigrid.generators import find, sample_levels
from envs.minigrid.level import Level
from envs.minigrid.render import whole_grid
from envs.types import World
from experiments.common import opening, outputs
from experiments.common.gridworlds import gridworld_settings
from experiments.illustrations import visits
from experiments.illustrations.illustration_options import FACING, RewardMapOptions
from experiments.illustrations.visits import Probe

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAME = "reward_maps"
CHARACTERS_AN_INCH = 14  # of the caption
LABELS = {
    "count": r"$1 / \sqrt{N(s')}$",
    "change_norm": r"$\|c\|^2 / \sqrt{N(s')}$",
    "cbet": r"C-BET: $1 / (N(s') + N(c))$",
}
TITLES = {
    "left": "turn left",
    "right": "turn right",
    "forward": "move forward",
    "pickup": "pick up",
}
#: kind of a cell that cannot be reached yet -> its grey; others are drawn as the game does
PLAIN = {c.KIND_WALL: 0.35, c.KIND_EMPTY: 0.85, c.KIND_GOAL: 0.85}
TILE = 32  # pixels


def play_and_draw(options: RewardMapOptions, console: Console) -> tuple[Path, Path]:
    """Play, and return the files of the table and the figure."""
    level = draw_level(options)
    world = visits.one_level(level, options.worlds)
    agent, params = player(options, world, console)
    folder = outputs.new_folder(options.out, NAME)
    with console.status("playing"):
        key = jax.random.key(options.seed)
        seen = visits.count_visits(world, agent, params, options.steps, key)
    facing = FACING.index(options.facing)
    probes = visits.probe(seen, level, facing, options.actions)
    return write(folder, level, probes, caption(options))


def draw_level(options: RewardMapOptions) -> Level:
    """Return the level of the seed, or refuse a seed that yields no level."""
    levels, ready = sample_levels(find(options.env), jax.random.key(options.level_seed), 1)
    if not ready[0]:
        raise SettingsError(f"{options.env} has no level with level_seed {options.level_seed}")
    level: Level = jax.tree.map(lambda leaf: leaf[0], levels)
    return level


def player(options: RewardMapOptions, world: World, console: Console) -> tuple[Agent, AgentParams]:
    """Return the agent that visits the level: a run's policy, or a uniformly random one."""
    if options.source is None:
        return uniform(world.num_actions), AgentParams(())
    directory = RunDirectory(outputs.given_run(options.source))
    settings = gridworld_settings(directory)
    check_between("seed_index", options.seed_index, 0, settings.seeds - 1)
    policies = load_policies(directory, settings, world, options.checkpoint)
    opening.tell_damaged(policies.loaded, console)
    return policies.agent, jax.tree.map(lambda leaf: leaf[options.seed_index], policies.params)


def caption(options: RewardMapOptions) -> str:
    """Return the text below the figure."""
    who = f"the policy of {options.source}" if options.source else "a random policy"
    return (
        f"{options.env}, counts of {options.worlds * options.steps:,} steps of {who}. In every "
        f"cell the agent faces {options.facing}; light grey: cannot be reached yet."
    )


def write(folder: Path, level: Level, probes: Sequence[Probe], caption: str) -> tuple[Path, Path]:
    """Write one row for each cell and action, and the figure; return both files."""
    rewards = visits.rewards(probes)
    rows = [
        (*probe, *map(float, values))
        for probe, *values in zip(probes, *rewards.values(), strict=True)
    ]
    table = outputs.write_table(folder / f"{NAME}.csv", (*Probe._fields, *rewards), rows)
    return table, draw(folder / f"{NAME}.png", level, probes, rewards, caption)


def draw(
    path: Path,
    level: Level,
    probes: Sequence[Probe],
    rewards: Mapping[str, np.ndarray],
    caption: str,
) -> Path:
    """Draw one map for each reward (row: name -> a number for each probe) and action (column)."""
    from matplotlib.figure import Figure  # imported here: it takes more than a second

    actions = tuple(dict.fromkeys(probe.action for probe in probes))
    state = jax.device_get(rules.start(level))
    width, height = level.size.tolist()
    size = (1.2 + 2.1 * len(actions), 0.6 + 2.1 * height / width * len(rewards))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(len(rewards), len(actions), squeeze=False)
    for (name, values), row in zip(rewards.items(), axes, strict=True):
        highest = float(values.max())
        row[0].set_ylabel(f"{LABELS[name]}\nhighest: {highest:.3g}", fontsize=10)
        for action, axis in zip(actions, row, strict=True):
            chosen = [(p, v) for p, v in zip(probes, values, strict=True) if p.action == action]
            shown = np.full((height, width), np.nan)
            for each, value in chosen:
                shown[each.y, each.x] = value / highest if highest else 0.0
            image = _draw_map(axis, state, shown)
    for action, axis in zip(actions, axes[0], strict=True):
        axis.set_title(TITLES.get(action, action), fontsize=11)
    bar = figure.colorbar(image, ax=axes, shrink=0.8, pad=0.02)
    bar.set_label("reward, as a share of the highest of its row")
    lines = textwrap.fill(caption, int(CHARACTERS_AN_INCH * size[0]))
    figure.supxlabel(figures.plain(lines), fontsize=9)
    return figures.save(path, figure)


def _draw_map(axis: "Axes", state: Any, shown: np.ndarray) -> Any:
    """Draw rewards in the cells that have one, and the level in the others."""
    height, width = shown.shape
    tiles = whole_grid(state, TILE)
    grid = without_margin(state.level.cells, state.level.size)
    axis.imshow(np.zeros((height, width)), cmap="Greys_r", vmin=0, vmax=1)
    for y, x in np.ndindex(height, width):
        box = (x - 0.5, x + 0.5, y + 0.5, y - 0.5)
        if np.isnan(shown[y, x]):
            plain = PLAIN.get(int(grid[y, x]) >> 3)
            tile = tiles[y * TILE : (y + 1) * TILE, x * TILE : (x + 1) * TILE]
            axis.imshow(tile if plain is None else np.full((1, 1, 3), plain), extent=box)
    image = axis.imshow(shown, cmap="inferno", vmin=0, vmax=1)
    axis.set(xlim=(-0.5, width - 0.5), ylim=(height - 0.5, -0.5), xticks=[], yticks=[])
    return image
