"""The `main` of all training commands. What trains is imported once the command line is read."""

import itertools
import sys
from collections.abc import Sequence
from pathlib import Path

from cbet_jax.config import SettingsError
from cbet_jax.runs.directory import RunDirectory, checkpoints, frames_of, refuse_other_content
from envs.errors import UnknownEnvironment
from envs.habitat.simulator import SimulatorError
from experiments.common import cli
from experiments.common.commands import AND
from experiments.common.opening import read
from experiments.common.refusals import NOT_FINITE
from experiments.common.screen import Screen, say
from experiments.common.training_options import Asked, Experiment, TrainingOptions


def main[O: TrainingOptions](
    experiment: Experiment[O], arguments: Sequence[str] | None = None
) -> None:
    """Train as a command line asks (None: `sys.argv`).

    Finished runs are left as they are. Runs without a common checkpoint are trained one after the
    other.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    console = Screen()
    with cli.user_errors(UnknownEnvironment, SimulatorError):
        if AND not in arguments:
            groups = [[Asked(*read(experiment, arguments), tuple(arguments))]]
        else:
            groups = with_common_checkpoints(unfinished(experiment, arguments))
            if not groups:
                say(console, "all of these runs had already finished")
        from experiments.common.training import train_group  # imported here: it takes seconds

        troubles = [line for group in groups for line in train_group(experiment, group, console)]
        if troubles:
            cli.fail("; ".join(troubles), NOT_FINITE)


def unfinished[O: TrainingOptions](
    experiment: Experiment[O], arguments: Sequence[str]
) -> list[Asked[O]]:
    """Return the unfinished runs of a command line, and refuse runs that cannot be joined."""
    if not experiment.together:
        raise SettingsError(f"{experiment.module} trains one run at a time: leave {AND} out")
    if all(word == AND for word in arguments):
        raise SettingsError(f"{AND} joins runs: give their options")
    left: dict[Path, Asked[O]] = {}  # by directory
    for is_and, words in itertools.groupby(arguments, lambda word: word == AND):
        if is_and:
            continue
        run = Asked(*read(experiment, line := tuple(words)), line)
        if (out := run.options.out) is None:
            raise SettingsError(f"each of the runs that {AND} joins needs --out DIR, its directory")
        if run.options.distributed:
            raise SettingsError(f"--distributed trains one run at a time: leave {AND} out")
        if run.stored and max(saved_frames(run), default=0) >= run.stored.train.frames:
            continue
        if (place := out.resolve()) in left:
            raise SettingsError(f"two of the runs that {AND} joins have the directory {place}")
        if run.stored is None:  # refused before the first run makes its directory
            directory = RunDirectory(out)
            directory.refuse_run()
            refuse_other_content(directory.config, "run")
        left[place] = run
    runs = [*left.values()]
    for name in ("until", "keep_at", "checkpoint_seconds", "devices", "early_end"):
        if any(getattr(run.options, name) != getattr(runs[0].options, name) for run in runs):
            said = "rules of early ends" if name == "early_end" else f"--{name.replace('_', '-')}"
            raise SettingsError(f"the runs that {AND} joins must have equal {said}")
    return runs


def with_common_checkpoints[O: TrainingOptions](runs: Sequence[Asked[O]]) -> list[list[Asked[O]]]:
    """Group runs that have a checkpoint at the same frames."""
    groups: list[tuple[set[int], list[Asked[O]]]] = []
    for run in runs:
        frames = saved_frames(run) or {0}
        for common, group in groups:
            if common & frames:
                common &= frames
                group.append(run)
                break
        else:
            groups.append((frames, [run]))
    return [group for _, group in groups]


def saved_frames[O: TrainingOptions](run: Asked[O]) -> set[int]:
    """Return the frames at which a run has checkpoints."""
    assert run.options.out is not None
    return set(map(frames_of, checkpoints(RunDirectory(run.options.out).checkpoints)))
