"""Walks about scenes with a run's policies: `python -m experiments.habitat_evaluate RUN`.

Plays episodes in scenes without any learning (paper, section "Habitat transfer results"), and
as many with the networks before training and with uniformly random actions. Counts distinct
positions, rounded to 0.05 m.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, NamedTuple

import jax
import numpy as np
import tyro
from rich import box
from rich.console import Console
from rich.table import Table

from cbet_jax import statistics
from cbet_jax.agent import AgentParams, uniform
from cbet_jax.config import HabitatSettings, SettingsError
from cbet_jax.policies import Policies, load_policies
from cbet_jax.run_directory import RunDirectory, RunSettings
from cbet_jax.statistics import Estimate
from cbet_jax.train import seed_keys
from envs.habitat.apartments import NAMES
from envs.habitat.simulator import FloorMap, SimulatorError
from experiments import cli, habitat, training, walk_pictures, walks
from experiments.outputs import write_table
from experiments.walks import Places

PROGRAM = habitat.EVALUATE
UNTRAINED = "untrained"  # the network before training ("random" in the published evaluation)
UNIFORM = "uniform"  # every action with the same chance
# What the paper evaluates in, after pre-training in apartment_0.
REPLICA = (
    *("apartment_1", "office_3", "room_0", "room_1", "room_2", "frl_apartment_0", "hotel_0"),
)
MAP_CELL = 0.1  # metres a cell of the maps
HEADER = (
    *("policy", "seed", "scene", "episodes", "positions", "positions_low", "positions_high"),
    *("positions_of_all_episodes", "times_uniform", "simulator", "steps", "random_starts"),
    *("checkpoint_frames", "evaluation_seed"),
)


@dataclass(frozen=True)
class Options:
    """Walks about scenes with a run's policies, and with uniformly random actions."""

    directory: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    scenes: tuple[str, ...] = ()  # paths or names (default: the package's others than the run's; of
    # a data set, Replica's seven of the paper)
    episodes: int = 100  # of each policy in each scene
    steps: int = 500  # of an episode
    random_starts: bool = False  # every episode begins somewhere else, not where the seed says
    workers: int | None = None  # simulators at once (default: as many as the run had)
    seed: int = 0  # of the starts and the actions
    checkpoint: int | None = None  # frames of the checkpoint (default: the newest)
    simulator_python: str | None = None  # the interpreter that the simulator is installed in

    def __post_init__(self) -> None:
        for name, least in (("episodes", 1), ("steps", 1), ("workers", 1), ("seed", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise SettingsError(f"{name} must be at least {least}, not {value}")


class Walked(NamedTuple):
    """What was played in one scene."""

    scene: str
    drawn: FloorMap
    places: dict[str, list[Places]]  # policy -> of each of its seeds


class Row(NamedTuple):
    """How far one policy came in one scene."""

    policy: str
    seed: str
    scene: str
    episodes: int
    positions: Estimate  # distinct ones, an episode
    together: int  # distinct ones, of all episodes
    times_uniform: float  # of the mean an episode


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the evaluation that the command line asks for."""
    arguments = sys.argv[1:] if arguments is None else arguments
    console = Console()
    with cli.user_errors(SimulatorError):
        options: Options = cli.parse(Options, arguments, prog=PROGRAM)
        directory = RunDirectory(options.directory)
        settings, played = habitat.habitat_settings(directory)
        played = replace(played, max_steps=options.steps + 1, random_starts=options.random_starts)
        walked: list[Walked] = []
        frames = 0
        for scene in chosen_scenes(options, settings, played):
            with console.status(f"playing {scene}"):
                found, policies = walk(directory, settings, played, options, scene)
            if not walked:
                training.tell_damaged(policies.loaded, console)
            walked.append(found)
            frames = policies.loaded.position.frames
        table = [row for each in walked for row in rows(each, settings)]
        show(console, table, f"{directory.root}, {frames:,} frames")
        told = (played.simulator, options.steps, options.random_starts, frames, options.seed)
        for path in save(directory, settings, walked, table, told):
            console.print(f"saved: {path}", soft_wrap=True, highlight=False)


def chosen_scenes(
    options: Options, settings: RunSettings, played: HabitatSettings
) -> tuple[str, ...]:
    """Returns the scenes to play.

    Raises:
        SettingsError: none are named, and there is no saying which.
    """
    if options.scenes:
        return tuple(dict.fromkeys(options.scenes))
    if played.folder is not None:
        return REPLICA
    if played.simulator == habitat.EMBEDDED:
        return tuple(name for name in NAMES if name not in settings.environments)
    raise SettingsError(f"name the scenes for {played.simulator}: --scenes PATH ...")


def walk(
    directory: RunDirectory,
    settings: RunSettings,
    played: HabitatSettings,
    options: Options,
    scene: str,
) -> tuple[Walked, Policies]:
    """Plays every policy in one scene, all from the same starts.

    Raises:
        SimulatorError: the scene cannot be played. RunDirectoryError: there is no policy.
    """
    number = min(options.workers or settings.train.worlds, options.episodes)
    process = habitat.process_settings(scene, played, options.simulator_python)
    with habitat.simulators(process, number) as simulators:
        world = habitat.worlds(played, simulators)
        policies = load_policies(directory, settings, world, options.checkpoint)
        players = {
            settings.train.method: by_seed(policies.params, settings.seeds),
            UNTRAINED: by_seed(fresh_params(policies, settings), settings.seeds),
            UNIFORM: [AgentParams(())],
        }
        # Compiled once, a program walks for the networks before and after training.
        walker = walks.make_walker(world, policies.agent, options.steps)
        random_walker = walks.make_walker(world, uniform(world.num_actions), options.steps)
        places = {}
        for name, params in players.items():
            places[name] = [
                walks.play(
                    random_walker if name == UNIFORM else walker,
                    of_seed,
                    jax.random.key(options.seed),
                    options.episodes,
                    random_starts=options.random_starts,
                )
                for of_seed in params
            ]
        return Walked(simulators.scene_name, simulators.floor_map(MAP_CELL), places), policies


def fresh_params(policies: Policies, settings: RunSettings) -> AgentParams:
    """Returns untrained networks for each seed: `[seeds, ...]`."""
    keys = seed_keys(settings.seeds, settings.first_seed)
    return jax.vmap(policies.agent.init)(keys)


def by_seed(params: AgentParams, seeds: int) -> list[AgentParams]:
    """Returns the parameters of each seed."""
    return [jax.tree.map(lambda leaf: leaf[seed], params) for seed in range(seeds)]  # noqa: B023


def rows(walked: Walked, settings: RunSettings) -> Iterator[Row]:
    """Yields a row for each policy and seed in a scene."""
    (random,) = walked.places[UNIFORM]
    usual = float(np.mean([walks.distinct(episode) for episode in random]))
    for policy, seeds in walked.places.items():
        first = 0 if policy == UNIFORM else settings.first_seed
        for seed, places in enumerate(seeds, first):
            found = statistics.mean(np.array([walks.distinct(episode) for episode in places]))
            yield Row(
                policy,
                str(seed),
                walked.scene,
                len(places),
                found,
                walks.distinct(places),
                found.value / usual,
            )


def show(console: Console, table: Sequence[Row], title: str) -> None:
    """Prints how far the policies came."""
    shown = Table(
        title=f"{title} (intervals: 95 % confidence)", box=box.SIMPLE_HEAD, pad_edge=False
    )
    for heading in ("scene", "policy", "seed"):
        shown.add_column(heading, no_wrap=True)
    for heading in ("positions an episode", "in all", "x uniform"):
        shown.add_column(heading, no_wrap=True, justify="right")
    for row in table:
        numbers = (row.positions.text(1), f"{row.together:,}", f"{row.times_uniform:.2f}")
        shown.add_row(row.scene, row.policy, row.seed, *numbers)
    console.print(shown)


def save(
    directory: RunDirectory,
    settings: RunSettings,
    walked: Sequence[Walked],
    table: Sequence[Row],
    told: tuple,
) -> Iterator[Path]:
    """Writes the table and its pictures under new names, and yields them.

    Args:
        directory: of the run.
        settings: of the run.
        walked: what was played.
        table: its rows.
        told: simulator, steps, random starts, frames of the checkpoint, seed of the evaluation.
    """
    path = new_path(directory.root)
    lines = ((*row[:4], *row.positions, row.together, row.times_uniform, *told) for row in table)
    yield write_table(path, HEADER, lines)
    frames = f"after {told[3]:,} frames"
    title = f"Distinct positions {frames} (whiskers: 95 % confidence intervals)"
    scenes = [each.scene for each in walked]
    yield walk_pictures.bars(path.with_suffix(".png"), title, panels(table, scenes), scenes)
    first = {
        each.scene: (each.drawn, {name: seeds[0] for name, seeds in each.places.items()})
        for each in walked
    }
    picture = path.with_name(f"{path.stem}-maps.png")
    yield walk_pictures.heat_maps(picture, first, f"Where the policies were {frames}")
    picture = path.with_name(f"{path.stem}-coverage.png")
    trained_in = Path(settings.environments[0]).name.partition(".")[0]
    curves = walk_pictures.coverage(picture, directory.metrics, settings.train.method, trained_in)
    if curves is not None:
        yield curves


def panels(table: Sequence[Row], scenes: Sequence[str]) -> dict[str, dict[str, list[Estimate]]]:
    """Returns the bars: of each policy, or of each seed where it has several."""
    together = "distinct positions of all episodes"
    found: dict[str, dict[str, list[Estimate]]] = {
        "distinct positions an episode": {},
        together: {},
    }
    several = {row.policy for row in table if row.seed != table[0].seed}
    for row in table:
        name = f"{row.policy}, seed {row.seed}" if row.policy in several else row.policy
        value = float(row.together)
        for panel, bar in zip(found, (row.positions, Estimate(value, value, value)), strict=True):
            found[panel].setdefault(name, []).append(bar)
    return found


def new_path(root: Path) -> Path:
    """Returns the name of a table that does not exist yet."""
    number, path = 1, root / "habitat-evaluation.csv"
    while path.exists():
        number += 1
        path = root / f"habitat-evaluation-{number}.csv"
    return path


if __name__ == "__main__":
    main()
