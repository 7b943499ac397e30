"""The plan of a study: every run that it consists of, as values.

    STUDY/study.json                            what all runs have in common
    STUDY/pretrain/SETUP/METHOD/                runs, as every other command leaves them
    STUDY/evaluation/SETUP/METHOD/FRAMES/       one table for each world
    STUDY/transfer/TASK/SETUP-METHOD/           runs
    STUDY/tabula_rasa/TASK/METHOD/              runs

A job is done if its files are there. Nothing else records it, so a study continues from wherever
it was stopped.
A run whose last training diverged holds `diverged.txt`, with the reason.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from cbet_jax.config import Factors, RunSettings, SettingsError, TransferSettings
from cbet_jax.runs.directory import RunDirectory, checkpoints, frames_of
from cbet_jax.setting_types import (
    Episodes,
    Frames,
    Seed,
    Seeds,
    Worlds,
    check_between,
    check_fields,
    check_seeds,
)
from experiments.common import presets
from experiments.common.presets import EARLIER, NEWEST, PRESETS, TASK_FRAMES
from experiments.study.variants import SETUPS, Variant, variant

Stage = Literal["pretrain", "evaluation", "transfer", "tabula_rasa"]
STAGES: tuple[Stage, ...] = get_args(Stage)
PRETRAIN, EVALUATION, TRANSFER, TABULA_RASA = STAGES
DIVERGED = "diverged.txt"
PUBLISHED_FRAMES = PRESETS["paper"].train.frames  # of a pre-training run


@dataclass(frozen=True)
class StudySettings:
    """The settings that all runs of a study share."""

    preset: str
    budget: Frames  # frames of each pre-training run, for each seed
    seeds: Seeds  # of each run, trained side by side
    episodes: Episodes  # played in each world to evaluate a policy
    evaluate_at: tuple[int, ...] = ()  # frames of a pre-training run, beside its end
    factors: Factors = "float32"  # of matrix products
    lockstep: bool = False  # as in `TrainSettings`
    decay_rate: bool = False  # as in `AuxiliarySettings`
    presets_of: str = NEWEST  # the version whose preset it is
    first_seed: Seed = 0  # the seeds are first_seed, first_seed + 1, ...
    actors: Worlds | None = None  # of each run (None: the preset's)

    def __post_init__(self) -> None:
        check_fields(self)
        check_seeds(self.first_seed, self.seeds)
        if self.presets_of not in EARLIER:
            raise SettingsError(f"presets of version {self.presets_of} are not known here")
        for frames in self.evaluate_at:
            check_between("evaluate_at", frames, 1, self.budget)


class Selection(NamedTuple):
    """The runs that are asked for."""

    methods: tuple[str, ...]  # as `variant` names them
    setups: tuple[str, ...]  # keys of `SETUPS`
    tasks: tuple[str, ...]  # worlds that are learnt after and without pre-training
    worlds: tuple[str, ...]  # that pre-trained policies are evaluated in
    until: int | None = None  # frames of pre-training for now (None: all)
    tasks_until: int | None = None  # the same of tasks
    stages: tuple[Stage, ...] = STAGES  # that are done now


class StudyJob(NamedTuple):
    """One run of a study, or one evaluation."""

    stage: str
    setup: str  # what was pre-trained in; nothing, without pre-training
    method: str
    root: Path  # its directory
    settings: RunSettings  # of the run; of an evaluation, of the run that is evaluated
    frames: int  # for each seed: that are played; of an evaluation, that had been
    worlds: tuple[str, ...]  # that are played
    source: Path | None = None  # the pre-trained run that it needs
    until: int | None = None  # frames that it is trained for now (None: all)
    keep_at: tuple[int, ...] = ()  # of pre-training: frames at which its policies are evaluated

    @property
    def now(self) -> int:
        """Frames, for each seed, after which it is left for now."""
        return self.frames if self.until is None else min(self.frames, self.until)

    @property
    def done(self) -> bool:
        """Whether nothing is left to do now."""
        if self.stage == EVALUATION:
            return all(self.table(world).exists() for world in self.worlds)
        return reached(self.root) >= self.now

    @property
    def source_frames(self) -> int:
        """Frames of the pre-trained policies that it needs."""
        transfer = self.settings.transfer
        return transfer.frames if transfer else self.frames

    @property
    def new_frames(self) -> int:
        """Frames that all seeds together train on."""
        return 0 if self.stage == EVALUATION else self.now * self.settings.seeds

    def table(self, world: str) -> Path:
        """Return the file of an evaluation in one world."""
        return self.root / f"{world}.csv"

    def __str__(self) -> str:
        """Stage, setup, method, worlds, seeds, frames."""
        where = f"{self.setup} " if self.setup else ""
        worlds = self.worlds[0] if len(self.worlds) == 1 else f"{len(self.worlds)} worlds"
        seeds = f"{self.settings.seeds} seeds" if self.settings.seeds > 1 else "one seed"
        frames = f"{'after' if self.stage == EVALUATION else 'for'} {self.now:,} frames"
        return f"{self.stage} {where}{self.method} in {worlds}, {seeds} {frames}"


def plan(root: Path, study: StudySettings, chosen: Selection) -> list[StudyJob]:
    """Return the jobs of a study in the order in which they are done.

    Args:
        root: the study's directory.
        study: its settings.
        chosen: which of its runs.

    Raises:
        SettingsError: the budget does not fill a chunk of some run, or ends before the runs are
            to be left for now; or nothing is asked for.
    """
    if chosen.until is not None:
        check_between("until", chosen.until, 1, study.budget)
    pretrained = [
        _pretraining(root, study, setup, method, chosen.until)
        for setup in chosen.setups
        for method in chosen.methods
    ]
    evaluations = [
        _evaluation(root, job, frames, chosen.worlds)
        for job in pretrained
        for frames in job.keep_at
    ]
    tasks: list[StudyJob] = []
    for task in () if chosen.until else chosen.tasks:
        tasks += [_transfer(root, study, job, task) for job in pretrained]
        plain = [method for method in chosen.methods if variant(method).plain]
        tasks += [_tabula_rasa(root, study, method, task) for method in plain]
    jobs = [*pretrained, *evaluations, *(_left_at(job, chosen.tasks_until) for job in tasks)]
    asked = [job for job in jobs if job.stage in chosen.stages]
    if not asked:
        raise SettingsError(
            f"nothing is asked for with --stages {' '.join(chosen.stages)}: --tasks names tasks, "
            "which are learnt after the end of pre-training (not with --until)"
        )
    return asked


def reached(run: Path) -> int:
    """Return how far a run has come: the frames of what it has saved last."""
    return RunDirectory(run).saved_frames()


def holds_policies(run: Path, frames: int) -> bool:
    """Return whether a run has saved its policies after so many frames."""
    directory = RunDirectory(run)
    saved = (*checkpoints(directory.policies), *checkpoints(directory.checkpoints))
    return frames in set(map(frames_of, saved))


def at_chunk_end(settings: RunSettings, frames: int) -> int:
    """Return the end of the chunk that reaches `frames`: runs are saved only there."""
    chunk = settings.chunk * settings.train.iteration_frames
    return -(-frames // chunk) * chunk


def _preset(study: StudySettings) -> RunSettings:
    preset = EARLIER[study.presets_of].get(study.preset) or PRESETS[study.preset]
    train = replace(
        preset.train,
        worlds=study.actors or preset.train.worlds,
        network=replace(preset.train.network, factors=study.factors),
        auxiliary=replace(preset.train.auxiliary, decay_rate=study.decay_rate),
        lockstep=study.lockstep,
    )
    return replace(preset, train=train)


def _pretraining(
    root: Path, study: StudySettings, setup: str, method: str, until: int | None
) -> StudyJob:
    preset = _preset(study)
    settings = replace(
        preset,
        train=replace(variant(method).apply(preset.train), frames=study.budget),
        environments=SETUPS[setup],
        seeds=study.seeds,
        first_seed=study.first_seed,
    )
    job = _run(PRETRAIN, setup, method, root / PRETRAIN / setup / method, settings)
    job = _left_at(job, until)
    return job._replace(keep_at=_evaluated(study, job))


def _left_at(job: StudyJob, until: int | None) -> StudyJob:
    return job if until is None else job._replace(until=at_chunk_end(job.settings, until))


def _run(
    stage: str,
    setup: str,
    method: str,
    root: Path,
    settings: RunSettings,
    source: Path | None = None,
) -> StudyJob:
    chunk = at_chunk_end(settings, 1)
    if settings.train.frames < chunk:
        raise SettingsError(
            f"the budget gives {stage} {root.name} {settings.train.frames} frames, less than a "
            f"chunk ({chunk}): choose a larger one"
        )
    frames = at_chunk_end(settings, settings.train.frames)
    return StudyJob(stage, setup, method, root, settings, frames, settings.environments, source)


def _evaluated(study: StudySettings, job: StudyJob) -> tuple[int, ...]:
    asked = {at_chunk_end(job.settings, frames) for frames in study.evaluate_at}
    if reached(job.root) <= job.now or holds_policies(job.root, job.now):
        asked.add(job.now)
    return tuple(sorted(frames for frames in asked | {job.frames} if frames <= job.now))


def _evaluation(root: Path, job: StudyJob, frames: int, worlds: tuple[str, ...]) -> StudyJob:
    folder = root / EVALUATION / job.setup / job.method / str(frames)
    return StudyJob(
        EVALUATION, job.setup, job.method, folder, job.settings, frames, worlds, job.root
    )


def _task(study: StudySettings, variant: Variant, task: str) -> RunSettings:
    """Return the settings of a task, its frames in the published proportion to the budget."""
    preset = _preset(study)
    published = TASK_FRAMES.get(task, PUBLISHED_FRAMES)
    train = variant.apply(presets.for_task(preset, task))
    return replace(
        preset,
        train=replace(train, frames=study.budget * published // PUBLISHED_FRAMES),
        environments=(task,),
        seeds=study.seeds,
        first_seed=study.first_seed,
        explore=False,
    )


def _transfer(root: Path, study: StudySettings, job: StudyJob, task: str) -> StudyJob:
    bias = TransferSettings(str(job.root), job.frames, job.settings.train.network)
    settings = replace(_task(study, Variant("none"), task), transfer=bias)
    folder = root / TRANSFER / task / f"{job.setup}-{job.method}"
    return _run(TRANSFER, job.setup, job.method, folder, settings, source=job.root)


def _tabula_rasa(root: Path, study: StudySettings, method: str, task: str) -> StudyJob:
    folder = root / TABULA_RASA / task / method
    return _run(TABULA_RASA, "", method, folder, _task(study, variant(method), task))
