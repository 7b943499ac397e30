"""Explore scenes with the policies of runs: `python -m experiments.habitat_evaluate RUN [RUN ...]`.

Plays episodes in scenes without any learning (paper, section "Habitat transfer results"), and
as many with untrained networks and with uniformly random actions. Counts distinct positions,
rounded to 0.05 m.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from cbet_jax.config import Axis, HabitatSettings, SettingsError
from cbet_jax.runs.directory import Checkpoint
from cbet_jax.settings.ranges import Episodes, Processes, Seed, Steps, check_fields
from envs.habitat.apartments import NAMES
from envs.habitat.scenes import scene_name
from envs.habitat.simulator import SIMULATORS, SimulatorError
from experiments.common import cli, habitat, opening
from experiments.common.outputs import RUNS, given_run, results_folder, write_new
from experiments.common.screen import Screen, say

if TYPE_CHECKING:
    from experiments.evaluation.rooms import EvaluatedRun, WalkPlan
    from experiments.evaluation.walk_table import WalkRow
    from experiments.evaluation.walks import Walked

MODULE = habitat.EVALUATE
TABLE = "habitat-evaluation.csv"
# The scenes that the paper evaluates in, after pre-training in apartment_0.
REPLICA = (
    *("apartment_1", "office_3", "room_0", "room_1", "room_2", "frl_apartment_0", "hotel_0"),
)


@dataclass(frozen=True)
class HabitatEvaluateOptions:
    """Explore scenes with the policies of runs, and with uniformly random actions."""

    directories: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN ...")]
    #: paths or names (none: the package's in which no run was trained; of a data set, the paper's
    #: seven of Replica)
    scenes: tuple[str, ...] = ()
    episodes: Episodes = 100  # episodes of each policy in each scene
    steps: Steps = 500  # of an episode
    random_starts: bool = False  # every episode begins in another place
    workers: Processes | None = None  # simulators at once (None: as many as the first run had)
    seed: Seed = 0  # of the starts and the actions
    checkpoint: Checkpoint = None  # frames of the checkpoint (None: the newest)
    #: folder of the table and its pictures (None: the run's directory; of several, runs/)
    out: Path | None = None
    #: axis that points up in the files (None: with --scenes as in the run, else as a file says)
    up: Axis | None = None
    #: the run's simulator again, where it is a file: a file is code, which no run names by itself
    simulator: str | None = None
    simulator_python: str | None = None  # the interpreter that the simulator is installed in

    def __post_init__(self) -> None:
        check_fields(self)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the evaluation that the command line asks for."""
    console = Screen()
    with cli.user_errors(SimulatorError):
        options: HabitatEvaluateOptions = cli.parse(HabitatEvaluateOptions, arguments, MODULE)
        evaluate(options, console)


def evaluate(options: HabitatEvaluateOptions, console: Screen) -> None:
    """Play scene by scene, and write the table and its pictures."""
    from experiments.evaluation import rooms, walk_table  # imported here: it takes seconds

    if not options.directories:
        raise SettingsError("give one or more runs: RUN ...")
    runs = rooms.open_runs([given_run(path) for path in options.directories])
    plan = plan_of(options, runs)
    several = len(runs) > 1
    folder = results_folder(options.out, RUNS if several else runs[0].directory.root)
    path: Path | None = None  # is chosen when there is something to write, so it is free then
    walked: list[Walked] = []
    rows: list[WalkRow] = []  # one for each seed
    scenes = chosen_scenes(options, runs, plan.habitat)
    refuse_same_names(scenes)
    for scene in scenes:
        with console.status(f"playing {scene}"):
            found, loaded = rooms.play(runs, plan, scene)
        for checkpoint in () if walked else loaded:
            opening.tell_damaged(checkpoint, console)
        frames = {
            run.name: checkpoint.position.frames
            for run, checkpoint in zip(runs, loaded, strict=True)
        }
        say(console, walk_table.line(found))
        walked.append(found)
        rows += walk_table.rows(found)
        table = walk_table.with_means(rows)
        conditions = walk_table.WalkConditions(
            plan.habitat.simulator, plan.steps, options.random_starts, frames, plan.seed
        )
        if path is None:
            save = partial(walk_table.save, table=table, conditions=conditions)
            path = write_new(folder / TABLE, save, *walk_table.PICTURES)
        else:  # again after each scene: a long evaluation may be stopped
            walk_table.save(path, table, conditions, again=True)
    assert path is not None  # there is a scene
    names = ", ".join(f"{run.directory.root}, {frames[run.name]:,} frames" for run in runs)
    walk_table.show(console, table, names)
    pretraining = [run.pretraining for run in runs]
    for saved in (path, *walk_table.draw(path, walked, table, conditions, pretraining)):
        say(console, f"saved: {saved}")


def plan_of(options: HabitatEvaluateOptions, runs: "Sequence[EvaluatedRun]") -> "WalkPlan":
    """Return the conditions of the walks."""
    from experiments.evaluation.rooms import WalkPlan  # imported here: it takes seconds

    stored = runs[0].habitat  # all runs have the same
    played = replace(
        habitat.trusted(stored, options.simulator),
        up=options.up or (stored.up if options.scenes else None),  # the runs' is of own scenes
        max_steps=options.steps + 1,
        random_starts=options.random_starts,
        shared_start=True,  # one place in an evaluation, as in the published code
    )
    return WalkPlan(
        played,
        options.episodes,
        options.steps,
        options.workers or runs[0].settings.train.worlds,
        options.seed,
        options.checkpoint,
        options.simulator_python,
    )


def chosen_scenes(
    options: HabitatEvaluateOptions, runs: "Sequence[EvaluatedRun]", played: HabitatSettings
) -> tuple[str, ...]:
    """Return the scenes to play; a simulator without defaults needs --scenes."""
    if options.scenes:
        return tuple(dict.fromkeys(options.scenes))
    if played.folder is not None:
        return REPLICA
    if played.simulator in SIMULATORS:
        own = {name for run in runs for name in run.settings.environments}
        if others := tuple(name for name in NAMES if name not in own):
            return others
    raise SettingsError(f"name the scenes for {played.simulator}: --scenes PATH ...")


def refuse_same_names(scenes: Sequence[str]) -> None:
    """Refuse scenes whose files have the same name: the table would not tell them apart."""
    from experiments.evaluation.walk_table import ALL_SCENES  # imported here: it takes seconds

    names = [*map(scene_name, scenes)]
    for scene, name in zip(scenes, names, strict=True):
        if names.count(name) > 1 or name == ALL_SCENES:
            raise SettingsError(
                f"the table would call {scene} {name!r}, which is the name of something else, too: "
                "evaluate it by itself, or rename it"
            )


if __name__ == "__main__":
    main()
