"""What the command line of a study may say, and what it says."""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, NamedTuple

import tyro

from cbet_jax.config import Factors
from cbet_jax.runs.directory import RunDirectoryError, create_with_record, refuse_other_content
from cbet_jax.runs.reading import DIGEST, read_json, reading
from cbet_jax.settings import ranges
from cbet_jax.settings.as_json import first_difference, from_json
from envs.names import TRANSFER as TEN_WORLDS
from experiments.common import cli, presets
from experiments.common.outputs import RUNS
from experiments.study.plan import STAGES, Selection, Stage, StudySettings
from experiments.study.variants import SETUPS, check_names, method_names
from experiments.sweeps.plans import PlanOptions

SEEDS = {"paper": 7}  # the published number; of the other presets:
FEWER_SEEDS = 3
RECORD = "study.json"


class Study(NamedTuple):
    """What one command runs by default."""

    name: str  # of its directory
    program: str  # as it is called
    methods: tuple[str, ...]
    setups: tuple[str, ...]
    tasks: dict[str, tuple[str, ...]]  # preset -> worlds that are learnt, too


@dataclass(frozen=True, kw_only=True)
class StudyOptions(PlanOptions):
    """Run or continue a study of the paper, and report its results."""

    preset: str  # paper, laptop or smoke
    out: Path | None = None  # the study's directory, new or begun (None: runs/STUDY-PRESET)
    methods: tuple[str, ...]  # to compare
    setups: tuple[str, ...]  # of MultiEnv, DoorKey, KeyCorridor, MultiRoom, NoisyTV
    tasks: tuple[str, ...]  # worlds learnt by transfer and tabula rasa
    envs: tuple[str, ...] = TEN_WORLDS  # worlds that pre-trained policies are evaluated in
    seeds: int  # of each run
    first_seed: int = 0  # the seeds are first_seed, first_seed + 1, ...
    #: of each pre-training run, for each seed; tasks get frames in the published proportion
    budget: Annotated[int, tyro.conf.arg(metavar="FRAMES")]
    actors: ranges.Worlds | None = None  # of each run (None: the preset's)
    episodes: int = 100  # episodes of each seed in each world of an evaluation
    #: frames at which pre-trained policies are evaluated, besides the end
    evaluate_at: Annotated[tuple[int, ...], tyro.conf.arg(metavar="FRAMES ...")] = ()
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
    #: of matrix products: bfloat16 is faster where the processor multiplies such numbers
    factors: Factors = "float32"
    tasks_entropy_weight: ranges.NonNegativeFloat | None = None  # of tasks (None: the preset's)
    #: tasks have the published loss and optimizer: no bound on steps, no divergence from the frozen
    #: policy
    tasks_as_published: bool = False
    report_only: bool = False  # train nothing: report what is finished
    #: between two checkpoints, at least (None: save at the end of each chunk, if saving takes at
    #: most a tenth of the time)
    checkpoint_seconds: ranges.NonNegativeFloat | None = None

    @property
    def selection(self) -> Selection:
        """The runs that are asked for now."""
        seconds = self.checkpoint_seconds
        return Selection(
            self.methods,
            self.setups,
            self.tasks,
            self.envs,
            self.until,
            self.tasks_until,
            self.stages,
            host=() if seconds is None else ("--checkpoint-seconds", str(seconds)),
            tasks_host=self._early_end,
        )

    @property
    def _early_end(self) -> tuple[str, ...]:
        """The words that end tasks early."""
        words: list[object] = []
        if self.until_success is not None:
            words += ["--until-success", self.until_success]
            words += ["--success-frames", self.success_frames]
        if self.without_success is not None:
            words += ["--without-success", self.without_success]
        return tuple(map(str, words))

    @property
    def settings(self) -> StudySettings:
        """The settings that all runs share."""
        names = (field.name for field in fields(StudySettings))
        return StudySettings(**{name: getattr(self, name) for name in names})


def read(study: Study, arguments: Sequence[str]) -> tuple[StudyOptions, Path]:
    """Read the command line; what it does not say comes from the study begun, or the preset.

    Returns:
        The options, and the study's directory.

    Raises:
        SettingsError: a name is unknown, or a number out of range. RunDirectoryError: the
            directory holds a study with other settings.
    """
    said = cli.said(arguments)
    name, out = cli.value_of(said, "--preset"), cli.value_of(said, "--out")
    root = Path(out) if out else RUNS / f"{study.name}-{name or presets.DEFAULT}"
    refuse_other_content(root / RECORD, "study")
    stored = stored_study(root)
    if name is None:
        name = stored.preset if stored else presets.DEFAULT
    frames = presets.named(name).train.frames
    base = stored or StudySettings(name, frames, SEEDS.get(name, FEWER_SEEDS), episodes=100)
    defaults = StudyOptions(
        **{**asdict(base), "preset": name},
        methods=study.methods,
        setups=study.setups,
        tasks=study.tasks.get(name, ()),
    )
    options: StudyOptions = cli.parse(StudyOptions, arguments, study.program, default=defaults)
    difference = stored and first_difference(asdict(stored), asdict(options.settings))
    if difference:
        raise RunDirectoryError(f"{root} is a study with other settings: {difference}")
    from envs.minigrid.generators import find  # imported here: it takes seconds

    check_names("method", options.methods, method_names())
    check_names("setup", options.setups, SETUPS)
    for world in (*options.tasks, *options.envs):
        find(world)
    return options, root


def stored_study(root: Path) -> StudySettings | None:
    """Return the settings of the study in a directory, None where there is none.

    Raises:
        RunDirectoryError: they cannot be read.
    """
    path = root / RECORD
    if not os.path.lexists(path):
        return None
    with reading(path):
        nested = read_json(path)
        nested.pop(DIGEST, None)  # older studies have none
        return from_json(StudySettings, nested)


def open_study(root: Path, settings: StudySettings) -> None:
    """Make the study's directory, unless it is there.

    Raises:
        RunDirectoryError: the directory holds something else.
    """
    if not (root / RECORD).exists():
        create_with_record(root / RECORD, "study", asdict(settings))
