"""Explore scenes with a run's policies: `python -m experiments.habitat_evaluate RUN`.

Plays episodes in scenes without any learning (paper, section "Habitat transfer results"), and
as many with untrained networks and with uniformly random actions. Counts distinct positions,
rounded to 0.05 m.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import jax
import tyro

from cbet_jax.agent import AgentParams, uniform
from cbet_jax.config import Axis, HabitatSettings, RunSettings, SettingsError
from cbet_jax.runs.directory import RunDirectory
from cbet_jax.runs.saved_policies import UNIFORM, UNTRAINED, Policies, load_policies, untrained
from cbet_jax.setting_types import Episodes, Processes, Seed, Steps, check_fields
from envs.habitat.apartments import NAMES
from envs.habitat.simulator import SimulatorError
from experiments.common import cli, habitat, opening
from experiments.common.outputs import given_run, results_folder
from experiments.common.screen import Screen
from experiments.evaluation import walk_table, walks
from experiments.evaluation.walk_table import WalkConditions, Walked

MODULE = habitat.EVALUATE
# The scenes that the paper evaluates in, after pre-training in apartment_0.
REPLICA = (
    *("apartment_1", "office_3", "room_0", "room_1", "room_2", "frl_apartment_0", "hotel_0"),
)
MAP_CELL_METRES = 0.1


@dataclass(frozen=True)
class HabitatEvaluateOptions:
    """Explore scenes with a run's policies, and with uniformly random actions."""

    directory: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    #: paths or names (default: the package's others than the run's; of a data set, Replica's seven
    #: of the paper)
    scenes: tuple[str, ...] = ()
    episodes: Episodes = 100  # of each policy in each scene
    steps: Steps = 500  # of an episode
    random_starts: bool = False  # every episode begins in another place
    workers: Processes | None = None  # simulators at once (default: as many as the run had)
    seed: Seed = 0  # of the starts and the actions
    checkpoint: int | None = None  # frames of the checkpoint (default: the newest)
    #: folder of the table and its pictures (default: the run's directory)
    out: Path | None = None
    up: Axis | None = None  # axis that points up in the files (None: as in the run)
    #: the run's simulator again, where it is a file: a file is code, which no run names by itself
    simulator: str | None = None
    simulator_python: str | None = None  # the interpreter that the simulator is installed in

    def __post_init__(self) -> None:
        check_fields(self)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the evaluation that the command line asks for."""
    arguments = sys.argv[1:] if arguments is None else arguments
    console = Screen()
    with cli.user_errors(SimulatorError):
        options: HabitatEvaluateOptions = cli.parse(HabitatEvaluateOptions, arguments, MODULE)
        directory = RunDirectory(given_run(options.directory))
        settings, played = habitat.habitat_settings(directory)
        played = replace(
            habitat.trusted(played, options.simulator),
            up=options.up or played.up,
            max_steps=options.steps + 1,
            random_starts=options.random_starts,
            shared_start=True,  # one place in an evaluation, as in the published code
        )
        folder = results_folder(options.out, directory.root)
        walked: list[Walked] = []
        frames = 0
        for scene in chosen_scenes(options, settings, played):
            with console.status(f"playing {scene}"):
                found, policies = walk(directory, settings, played, options, scene)
            if not walked:
                opening.tell_damaged(policies.loaded, console)
            walked.append(found)
            frames = policies.loaded.position.frames
            console.print(walk_table.line(found, settings), soft_wrap=True, highlight=False)
        table = [row for each in walked for row in walk_table.rows(each, settings)]
        walk_table.show(console, table, f"{directory.root}, {frames:,} frames")
        conditions = WalkConditions(
            played.simulator, options.steps, options.random_starts, frames, options.seed
        )
        for path in walk_table.save(folder, directory, settings, walked, table, conditions):
            console.print(f"saved: {path}", soft_wrap=True, highlight=False)


def chosen_scenes(
    options: HabitatEvaluateOptions, settings: RunSettings, played: HabitatSettings
) -> tuple[str, ...]:
    """Return the scenes to play.

    Raises:
        SettingsError: none are named, and this simulator has no defaults.
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
    options: HabitatEvaluateOptions,
    scene: str,
) -> tuple[Walked, Policies]:
    """Play every policy in one scene, all from the same starts.

    Args:
        directory: of the run.
        settings: of the run.
        played: how the scene is played.
        options: the command line.
        scene: its path or name.

    Raises:
        SimulatorError: the scene cannot be played.
        RunDirectoryError: there is no policy.
    """
    number = min(options.workers or settings.train.worlds, options.episodes)
    process = habitat.process_settings(scene, played, options.simulator_python)
    with habitat.simulators(process, number) as simulators:
        world = habitat.worlds(played, simulators)
        policies = load_policies(directory, settings, world, options.checkpoint)
        players = {
            settings.train.method: by_seed(policies.params, settings.seeds),
            UNTRAINED: by_seed(untrained(policies, settings), settings.seeds),
            UNIFORM: [AgentParams(())],
        }
        # One compiled program plays for the networks before and after training.
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
        return Walked(
            simulators.scene_name, simulators.floor_map(MAP_CELL_METRES), places
        ), policies


def by_seed(params: AgentParams, seeds: int) -> list[AgentParams]:
    """Return the parameters of each seed."""
    return [jax.tree.map(lambda leaf: leaf[seed], params) for seed in range(seeds)]  # noqa: B023


if __name__ == "__main__":
    main()
