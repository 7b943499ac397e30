"""Run the jobs of a plan: skip finished ones, and continue begun ones bit for bit."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import jax
from rich.console import Console

from cbet_jax.config import RunSettings
from cbet_jax.program import Program
from cbet_jax.runs import checkpoint
from cbet_jax.runs.atomic_write import replacing
from cbet_jax.runs.devices import make_mesh
from cbet_jax.runs.directory import RunDirectory, RunDirectoryError, RunInUseError, is_empty
from cbet_jax.runs.host_loop import HostSettings, NonFiniteLossError, train
from cbet_jax.runs.memory import NotEnoughMemoryError
from cbet_jax.runs.saved_policies import load_policies
from cbet_jax.settings_json import first_difference, to_json
from envs.minigrid import make_world
from experiments.common.endings import draw_figures, end_stopped
from experiments.common.gridworlds import build, save_first_state
from experiments.evaluation import evaluation_table, gridworlds
from experiments.evaluation.gridworlds import EvaluatedRun
from experiments.study.costs import record_evaluations
from experiments.study.plan import (
    DIVERGED,
    EVALUATION,
    PRETRAIN,
    StudyJob,
    StudySettings,
    holds_policies,
)

WAIT_SECONDS = 10.0  # for other processes of a study, between two looks
EVALUATION_SEED = 0  # of the levels and actions of all evaluations
#: what ends a run before its end, in words; the study does everything that does not need it
ENDINGS: dict[type[Exception], str] = {
    NonFiniteLossError: "diverged",
    NotEnoughMemoryError: "does not fit into memory",
}
Ended = dict[Path, str]  # a run's directory -> what ended it


@dataclass(frozen=True)
class Host:
    """What the host does beside the jobs; none of it changes a number."""

    console: Console
    command: tuple[str, ...]  # for the manifests
    checkpoint_seconds: float | None

    def say(self, line: str) -> None:
        """Print one line."""
        self.console.print(line, soft_wrap=True, highlight=False)


def execute(jobs: Sequence[StudyJob], study: StudySettings, host: Host) -> Ended:
    """Do all jobs that are not done, in their order, the evaluations together.

    Other processes may do the same study: each run is trained by the first that comes to it, and
    this one waits for what it needs of the others.

    Returns:
        The runs that ended before their end. Jobs that need policies they never reached are left
        out.

    Raises:
        RunDirectoryError: a run is there with other settings, or damaged.
        SystemExit: a signal asked to stop.
    """
    check(jobs)
    ended: Ended = {}
    told: set[str] = set()
    while left := work_through(jobs, study, host, ended, told):
        say_once(host, told, f"waiting for other processes, in {left[0]} first", "waiting")
        time.sleep(WAIT_SECONDS)
    return ended


def say_once(host: Host, told: set[str], line: str, key: str = "") -> None:
    """Print a line, unless one of this key (or the same line) has been."""
    if (key or line) not in told:
        host.say(line)
    told.add(key or line)


def work_through(
    jobs: Sequence[StudyJob], study: StudySettings, host: Host, ended: Ended, told: set[str]
) -> list[Path]:
    """Do all jobs that no other process is doing, and whose policies are there.

    Args:
        jobs: of the study.
        study: its settings.
        host: what to show.
        ended: runs that ended before their end; more are added.
        told: what `say_once` has said.

    Returns:
        The directories of the jobs that are left to other processes, or wait for them.
    """
    left: list[Path] = []
    for number, job in enumerate(jobs, 1):
        if job.done or job.root in ended:
            continue
        if job.source is not None and not policies_are_there(job):
            if job.source not in ended and (reason := lacking(job, jobs)):
                ended[job.source] = reason
            if job.source in ended:
                why = f"{job.source} {ended[job.source]}"
                say_once(host, told, f"[{number}/{len(jobs)}] {job}: left out, as {why}")
            else:
                refuse_lost_policies(job, jobs)
                left.append(job.root)
            continue
        try:
            if job.stage == EVALUATION:
                host.say(f"[{number}/{len(jobs)}] {job}")
                evaluate_all([e for e in jobs if e.stage == EVALUATION], study, host)
            else:
                run(job, host, f"[{number}/{len(jobs)}] {job}")
        except RunInUseError:
            left.append(job.root)
        except tuple(ENDINGS) as error:
            ended[job.root] = ENDINGS[type(error)]
            host.say(f"{job.root} {ended[job.root]}: {error}")
    return left


def evaluate_all(evaluations: Sequence[StudyJob], study: StudySettings, host: Host) -> None:
    """Evaluate all policies that are there, in one process of the study at a time.

    Raises:
        RunInUseError: another process is at it.
    """
    root = evaluations[0].root.parents[3]
    with RunDirectory(root).lock():
        chosen = [job for job in evaluations if policies_are_there(job)]
        tables = sum(not e.table(world).exists() for e in chosen for world in e.worlds)
        began = time.monotonic()
        evaluate(chosen, study, host)
        record_evaluations(root, time.monotonic() - began, tables)


def policies_are_there(job: StudyJob) -> bool:
    """Return whether the policies that a job needs have been saved, if it needs any."""
    if job.source is None:
        return True
    if job.stage != EVALUATION and checkpoint.checkpoints(RunDirectory(job.root).checkpoints):
        return True  # its first checkpoint holds them
    return holds_policies(job.source, job.source_frames)


def refuse_lost_policies(job: StudyJob, jobs: Sequence[StudyJob]) -> None:
    """Refuse a job whose policies nobody will save any more.

    Raises:
        RunDirectoryError: the run that it needs is done, and holds none.
    """
    for source in jobs:
        if source.root == job.source and source.done and not RunDirectory(source.root).is_locked():
            raise RunDirectoryError(
                f"{source.root} is trained, and holds no policies after {job.source_frames:,} "
                "frames: delete it to train it again, or ask for no evaluation there"
            )


def lacking(job: StudyJob, jobs: Sequence[StudyJob]) -> str:
    """Say why the policies that a job needs will not come, if nobody trains that run now.

    Args:
        job: whose policies are not there.
        jobs: all that are to be done. Where the stage of pre-training is left out, another process
            may be training the run.
    """
    assert job.source is not None
    if any(other.root == job.source for other in jobs) or RunDirectory(job.source).is_locked():
        return ""
    if (job.source / DIVERGED).exists():
        return ENDINGS[NonFiniteLossError]
    if policies_are_there(job):  # of a process that has just finished it
        return ""
    return f"holds no policies after {job.source_frames:,} frames (name the stage {PRETRAIN}, too)"


def check(jobs: Sequence[StudyJob]) -> None:
    """Check the runs on disk before anything is computed.

    Raises:
        RunDirectoryError: a run has other settings, or cannot be read.
    """
    for job in jobs:
        if job.stage != EVALUATION and job.root.exists():
            stored_settings(job)


def stored_settings(job: StudyJob) -> RunSettings:
    """Return the settings that a run was begun with; the study may have been moved since.

    Raises:
        RunDirectoryError: they are not the job's, or cannot be read.
    """
    directory, wanted = RunDirectory(job.root), job.settings
    if not directory.config.exists() and is_empty(job.root):
        return wanted  # killed between making the directory and writing into it
    stored = directory.settings()
    if stored.transfer and wanted.transfer:
        wanted = replace(wanted, transfer=replace(wanted.transfer, run=stored.transfer.run))
    difference = first_difference(to_json(stored), to_json(wanted))
    if difference:
        raise RunDirectoryError(f"{job.root} was started with other settings: {difference}")
    return stored


def run(job: StudyJob, host: Host, title: str) -> None:
    """Train one run to its end.

    Args:
        job: the run.
        host: what to show.
        title: to print first.

    Raises:
        RunInUseError: another process trains it.
        NonFiniteLossError: it diverged, which its directory then says.
        NotEnoughMemoryError: it needs more than there is.
        SystemExit: a signal asked to stop.
    """
    directory = RunDirectory(job.root)
    settings = stored_settings(job) if job.root.exists() else job.settings
    if directory.config.exists():
        with directory.lock():  # or another process trains it
            pass
    host.say(title)
    program = build(settings, make_mesh(settings.train, settings.seeds))
    is_new = not directory.config.exists()
    if is_new:
        directory.create(settings)
    if job.source and not checkpoint.checkpoints(directory.checkpoints):
        bias(job, program, settings)
    options = HostSettings(
        host.console, host.command, host.checkpoint_seconds, job.keep_at, until=job.until
    )
    mark = job.root / DIVERGED
    mark.unlink(missing_ok=True)
    try:
        outcome = train(directory, settings, program, options)
    except NonFiniteLossError as error:
        with replacing(mark) as temporary:
            temporary.write_text(f"{error}\n")
        raise
    except NotEnoughMemoryError:  # leave nothing in the way
        if is_new:
            directory.discard()
        raise
    stopped = outcome.signal
    if outcome.finished:
        _, asked = draw_figures(directory)
        stopped = asked or stopped
    if stopped:
        host.say(
            f"stopped and saved at {outcome.frames:,} frames of {job.root}; "
            "the same command continues from there"
        )
        end_stopped(stopped)


def bias(job: StudyJob, program: Program, settings: RunSettings) -> None:
    """Save the first state of a run of transfer: it holds the pre-trained policies.

    Raises:
        RunDirectoryError: they are not there.
    """
    assert job.source is not None
    source = RunDirectory(job.source)
    world = make_world(job.worlds, 1, explore=False)
    policies = load_policies(source, source.settings(), world, job.source_frames)
    save_first_state(RunDirectory(job.root), settings, program, policies.params.learnt)


def evaluate(jobs: Sequence[StudyJob], study: StudySettings, host: Host) -> None:
    """Play with the policies of all runs, world by world, and save each world's tables at once.

    Args:
        jobs: evaluations, done or not.
        study: settings of the study.
        host: what to show.

    Raises:
        RunDirectoryError: a run holds no such policies, or damaged ones.
    """
    jobs = [job for job in jobs if not job.done]
    runs = [_open(job, host) for job in jobs]
    for world, played in gridworlds.play_each_world(
        runs, study.episodes, EVALUATION_SEED, host.console
    ):
        host.say(f"{world}: {len(played)} evaluations, {study.episodes} episodes a seed")
        for index, policies in played.items():
            job = jobs[index]
            rows = gridworlds.table(runs[index], {world: policies}, EVALUATION_SEED)
            _save(job.table(world), rows, job.frames, EVALUATION_SEED)


def _open(job: StudyJob, host: Host) -> EvaluatedRun:
    assert job.source is not None
    missing = tuple(world for world in job.worlds if not job.table(world).exists())
    run = gridworlds.open_run(job.source, missing, job.frames, host.console)
    # On the host, all of them: an accelerator need not hold every policy of a study.
    params = jax.device_get(run.policies.params)
    return run._replace(policies=run.policies._replace(params=params))


def _save(
    path: Path, rows: Sequence[evaluation_table.EvaluationRow], frames: int, seed: int
) -> None:
    """Save a table that is either complete or absent, whenever the process dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        evaluation_table.save(temporary, rows, frames, seed)
