"""The plan of a study: a sweep over methods and setups, with stages.

    STUDY/study.json                            what all runs have in common
    STUDY/pretrain/SETUP/METHOD/                runs, as every other command leaves them
    STUDY/evaluation/SETUP/METHOD/FRAMES/       tables, one for all worlds
    STUDY/transfer/TASK/SETUP-METHOD/           runs
    STUDY/tabula_rasa/TASK/METHOD/              runs
    STUDY/jobs/                                 the output of each job, and what submitit keeps

Each is filled by a command, which `--plan` prints.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, get_args

import tyro

from cbet_jax import own_code
from cbet_jax.config import Factors, RunSettings, SettingsError
from cbet_jax.settings import ranges
from envs.names import TRANSFER as TEN_WORLDS
from experiments.common.presets import PRESETS, task_frames
from experiments.study.variants import SETUPS, variant
from experiments.sweeps.jobs import COMMANDS, EVALUATE, Evaluation, Job, Policies, at_chunk_end

Stage = Literal["pretrain", "evaluation", "transfer", "tabula_rasa"]
STAGES: tuple[Stage, ...] = get_args(Stage)
PRETRAIN, EVALUATION, TRANSFER, TABULA_RASA = STAGES
PUBLISHED_FRAMES = PRESETS["paper"].train.frames  # of a pre-training run


@dataclass(frozen=True)
class StudySettings:
    """The settings that all runs of a study share."""

    preset: str  # paper, laptop or smoke
    #: of each pre-training run, for each seed; tasks get frames in the published proportion
    budget: Annotated[ranges.Frames, tyro.conf.arg(metavar="FRAMES")]
    seeds: ranges.Seeds  # of each run, trained side by side
    episodes: ranges.Episodes  # episodes of each seed in each world of an evaluation
    #: frames at which pre-trained policies are evaluated, besides the end
    evaluate_at: Annotated[tuple[int, ...], tyro.conf.arg(metavar="FRAMES ...")] = ()
    #: of matrix products: bfloat16 is faster where the processor multiplies such numbers
    factors: Factors = "float32"
    first_seed: ranges.Seed = 0  # the seeds are first_seed, first_seed + 1, ...
    actors: ranges.Worlds | None = None  # of each run (None: the preset's)
    tasks_entropy_weight: ranges.NonNegativeFloat | None = None  # of tasks (None: the preset's)
    #: tasks have the published loss and optimizer: no bound on steps, no divergence from the frozen
    #: policy
    tasks_as_published: bool = False

    def __post_init__(self) -> None:
        ranges.check_fields(self)
        ranges.check_seeds(self.first_seed, self.seeds)
        for frames in self.evaluate_at:
            ranges.check_between("evaluate_at", frames, 1, self.budget)

    @property
    def words(self) -> tuple[str, ...]:
        """The words that the command lines of all its runs have in common."""
        words = ["--preset", self.preset, "--seeds", self.seeds]
        words += ["--first-seed", self.first_seed] if self.first_seed else []
        words += ["--worlds", self.actors] if self.actors else []
        words += ["--network.factors", self.factors] if self.factors != "float32" else []
        return tuple(map(str, words))

    @property
    def task_words(self) -> tuple[str, ...]:
        """The words that the command lines of its tasks have in common."""
        loss, words = PRESETS[self.preset].train.loss, list[object]()
        weight = self.tasks_entropy_weight
        if self.tasks_as_published:
            words += ["--loss.no-relative-entropy", "--optimizer.largest-step", None]
            words += ["--optimizer.target-kl", None, "--loss.bootstrap", loss.bootstrap]
            words += ["--optimizer.rms-decay", PRESETS[self.preset].train.optimizer.rms_decay]
            weight = loss.entropy_weight if weight is None else weight
        words += [] if weight is None else ["--loss.entropy-weight", weight]
        return tuple(map(str, words))

    def chunk_end(self, frames: int, actors: int | None = None) -> int:
        """Return the end of the chunk that reaches `frames` of a run with so many actors."""
        return at_chunk_end(_with_actors(PRESETS[self.preset], actors or self.actors), frames)


@cache
def _with_actors(preset: RunSettings, actors: int | None) -> RunSettings:
    """Return a preset with so many actors (None: as it is)."""
    worlds = actors or preset.train.worlds
    return replace(preset, train=replace(preset.train, worlds=worlds))


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The chosen runs of a study, and how far they go now."""

    methods: tuple[str, ...]  # to compare
    setups: tuple[str, ...]  # of MultiEnv, DoorKey, KeyCorridor, MultiRoom, NoisyTV
    tasks: tuple[str, ...]  # worlds learnt by transfer and tabula rasa
    envs: tuple[str, ...] = TEN_WORLDS  # worlds that pre-trained policies are evaluated in
    #: pre-training stops there for now, and is evaluated, to compare all methods before any is
    #: finished; tasks are learnt only after the end of pre-training
    until: Annotated[int | None, tyro.conf.arg(metavar="FRAMES")] = None
    #: tasks stop there for now
    tasks_until: Annotated[ranges.Frames | None, tyro.conf.arg(metavar="FRAMES")] = None
    #: tasks end once their mean success over the last --success-frames is at least this
    until_success: ranges.Probability | None = None
    success_frames: ranges.Frames = 2_000_000
    #: tasks end after so many frames without success
    without_success: Annotated[ranges.Frames | None, tyro.conf.arg(metavar="FRAMES")] = None
    #: does only these; evaluation and transfer need the policies that pre-training has left
    stages: tuple[Stage, ...] = STAGES
    #: between two checkpoints, at least (None: save at the end of each chunk, if saving takes at
    #: most a tenth of the time, or after ten minutes)
    checkpoint_seconds: ranges.NonNegativeFloat | None = None

    @property
    def host_words(self) -> tuple[str, ...]:
        """The words of command lines that change no numbers."""
        seconds = self.checkpoint_seconds
        return () if seconds is None else ("--checkpoint-seconds", str(seconds))

    @property
    def early_end(self) -> tuple[str, ...]:
        """The words that end tasks early."""
        words: list[object] = []
        if self.until_success is not None:
            words += ["--until-success", self.until_success]
            words += ["--success-frames", self.success_frames]
        if self.without_success is not None:
            words += ["--without-success", self.without_success]
        return tuple(map(str, words))


def plan(root: Path, study: StudySettings, chosen: Selection) -> list[Job]:
    """Return the jobs of a study in their order.

    Raises:
        SettingsError: the budget is less than a chunk or than --until, or no job is chosen.
    """
    if chosen.until is not None:
        ranges.check_between("until", chosen.until, 1, study.budget)
    planner = _Planner(root, study, chosen)
    pretrained = [(setup, method) for setup in chosen.setups for method in chosen.methods]
    plain = [method for method in chosen.methods if variant(method).plain]
    tasks = () if chosen.until else chosen.tasks
    jobs: dict[Stage, list[Job]] = {
        PRETRAIN: [planner.pretraining(*each) for each in pretrained],
        EVALUATION: [job for each in pretrained for job in planner.evaluations(*each)],
        TRANSFER: [planner.transfer(task, *each) for task in tasks for each in pretrained],
        TABULA_RASA: [planner.tabula_rasa(task, method) for task in tasks for method in plain],
    }
    asked = [job for stage in STAGES if stage in chosen.stages for job in jobs[stage]]
    if not asked:
        raise SettingsError(
            f"nothing is asked for with --stages {' '.join(chosen.stages)}: --tasks names tasks, "
            "which are learnt after the end of pre-training (not with --until)"
        )
    return asked


class _Planner(NamedTuple):
    """Makes the jobs of one study."""

    root: Path
    study: StudySettings
    chosen: Selection

    def pretraining(self, setup: str, method: str) -> Job:
        """Return the run of one method in one setup."""
        until = self.chosen.until
        keep_at = {*self.study.evaluate_at, self.study.budget, until or self.study.budget}
        words = (*variant(method).words, "--envs", *SETUPS[setup])
        words += ("--keep-at", *map(str, sorted(keep_at)))
        name = f"{PRETRAIN}/{setup}/{method}"
        return self._run(PRETRAIN, name, words, self.study.budget, until, variant(method).worlds)

    def evaluations(self, setup: str, method: str) -> list[Job]:
        """Return the evaluations of one run's policies, after all frames that are asked for."""
        run, study, actors = self.pretraining(setup, method), self.study, variant(method).worlds
        asked = {study.chunk_end(frames, actors) for frames in (*study.evaluate_at, study.budget)}
        if run.reached <= run.frames or Policies(run.name, run.root, run.frames).are_there:
            asked.add(run.frames)
        return [
            self._evaluation(run, frames, f"{EVALUATION}/{setup}/{method}/{frames}")
            for frames in sorted(asked)
            if frames <= run.frames
        ]

    def transfer(self, task: str, setup: str, method: str) -> Job:
        """Return the run that learns a task with the policies of one method and one setup."""
        source = self.root / PRETRAIN / setup / method
        frames = self.study.chunk_end(self.study.budget, variant(method).worlds)
        job = self._task(TRANSFER, f"{TRANSFER}/{task}/{setup}-{method}", task, ())
        first = ("--from", str(source), "--checkpoint", str(frames))
        needs = Policies(f"{PRETRAIN}/{setup}/{method}", source, frames)
        return replace(job, first=first, needs=needs)

    def tabula_rasa(self, task: str, method: str) -> Job:
        """Return the run that learns a task with one method and no policies."""
        name = f"{TABULA_RASA}/{task}/{method}"
        return self._task(TABULA_RASA, name, task, variant(method).words)

    def _evaluation(self, run: Job, frames: int, name: str) -> Evaluation:
        place, episodes = self.root / name, str(self.study.episodes)
        words = (str(run.root), "--checkpoint", str(frames), "--episodes", episodes)
        return Evaluation(
            *(name, EVALUATE, place, (*words, "--out", str(place))),
            needs=Policies(run.name, run.root, frames),
            alike=EVALUATION,
            worlds=self.chosen.envs,
        )

    def _task(self, stage: Stage, name: str, task: str, words: Sequence[str]) -> Job:
        """Return a run that learns a task, its frames in the published proportion to the budget."""
        frames = self.study.budget * task_frames(task) // PUBLISHED_FRAMES
        words = (*words, "--env", own_code.given(task))
        words += (*self.study.task_words, *self.chosen.early_end)
        return self._run(stage, name, words, frames, self.chosen.tasks_until)

    def _run(
        self,
        stage: Stage,
        name: str,
        words: Sequence[str],
        frames: int,
        until: int | None,
        actors: int | None = None,
    ) -> Job:
        study, place = self.study, self.root / name
        chunk = study.chunk_end(1, actors)
        if frames < chunk:
            raise SettingsError(
                f"the budget gives {name} {frames} frames, less than a chunk ({chunk}): "
                f"choose --budget {-(-study.budget * chunk // max(frames, 1))} or more"
            )
        words = (*study.words, "--frames", str(frames), *words, *self.chosen.host_words)
        words += ("--until", str(until)) if until and until < frames else ()
        now = study.chunk_end(min(frames, until or frames), actors)
        words += ("--no-film", "--out", str(place))
        return Job(name, COMMANDS[stage], place, words, now, study.seeds)
