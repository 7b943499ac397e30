"""The options that training commands share, and the record of their differences."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import tyro
from rich.console import Console

from cbet_jax.config import ObservationSettings, RunSettings, SettingsError, TrainSettings
from cbet_jax.runs import tracking
from cbet_jax.runs.directory import RunDirectory
from cbet_jax.settings import ranges
from experiments.common.cli import Said

if TYPE_CHECKING:
    from cbet_jax.program import Program


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """The options of every command that trains."""

    #: complete settings under a name (None: paper, the published ones; laptop is a smaller
    #: network that learns within minutes, smoke shows only that all runs)
    preset: Literal["paper", "laptop", "smoke"] | None = None
    out: Path | None = None  # the run's directory (None: a new one in runs/)
    resume: bool = False  # continue the run in --out; with more --frames, also a finished one
    train: Annotated[TrainSettings, tyro.conf.arg(name="")]
    seeds: ranges.Seeds  # agents trained side by side
    first_seed: ranges.Seed  # the seeds are first_seed, first_seed + 1, ...
    chunk: ranges.Iterations  # iterations between two looks of the host
    #: between two checkpoints, at least (None: save at the end of each chunk, if saving takes at
    #: most a tenth of the time, or after ten minutes)
    checkpoint_seconds: ranges.NonNegativeFloat | None = None
    keep_at: tuple[int, ...] = ()  # frames at which the policies are kept for good
    #: stop there for now; --resume continues
    until: Annotated[int | None, tyro.conf.arg(metavar="FRAMES")] = None
    #: end a task whose mean success over the last --success-frames is at least this
    until_success: ranges.Probability | None = None
    success_frames: ranges.Frames = 500_000  # frames of each seed
    #: end a task that has had no success for so many frames
    without_success: Annotated[ranges.Frames | None, tyro.conf.arg(metavar="FRAMES")] = None
    #: follow the metrics in TensorBoard or Weights & Biases, besides metrics.csv
    track: tuple[Literal["tensorboard", "wandb"], ...] = ()
    film: bool = True  # pre-training ends with a GIF of its policy at play
    #: to divide seeds and worlds over (None: all GPUs that can be used, or all cores of the
    #: CPU); changes only the order of sums
    devices: ranges.Processes | None = None
    distributed: bool = False  # several hosts train together, each with this command

    @property
    def early_end(self) -> dict[str, Any]:
        """The fields of an `EarlyEnd`."""
        rules = {"success": self.until_success, "without_success": self.without_success}
        return {**rules, "frames": self.success_frames}

    @property
    def settings(self) -> RunSettings:
        """The settings that decide a run's numbers."""
        raise NotImplementedError

    def run_settings(self, *environments: str, **more: Any) -> RunSettings:
        """Return a run's settings in these environments, with more fields of `RunSettings`."""
        return RunSettings(
            self.train, environments, self.seeds, self.first_seed, self.chunk, **more
        )

    def __post_init__(self) -> None:
        ranges.check_fields(self)
        if self.devices is not None and self.distributed:
            raise SettingsError("--distributed uses the devices of all hosts: leave --devices out")
        rules = self.until_success, self.without_success
        if rules != (None, None) and self.train.extrinsic_weight == 0:
            raise SettingsError(
                "--until-success and --without-success end a task: leave them out of pre-training"
            )
        if self.until_success is None and self.success_frames != TrainingOptions.success_frames:
            raise SettingsError("--success-frames belongs to --until-success")
        tracking.check_installed(self.track)
        for frames in self.keep_at:
            ranges.check_between("keep_at", frames, 1, self.train.frames)
        if self.until is not None:
            ranges.check_between("until", self.until, 1, self.train.frames)


@dataclass(frozen=True, kw_only=True)
class GridworldOptions(TrainingOptions):
    """The options of every command that trains in gridworlds."""

    observation: Annotated[ObservationSettings, tyro.conf.arg(name="")]

    def run_settings(self, *environments: str, **more: Any) -> RunSettings:
        """Return a run's settings, with what policies see."""
        return super().run_settings(*environments, observation=self.observation, **more)


def shared_options(settings: RunSettings) -> dict[str, Any]:
    """Return the shared options that a run's settings decide, by name."""
    return {name: getattr(settings, name) for name in ("train", "seeds", "first_seed", "chunk")}


def gridworld_options(settings: RunSettings) -> dict[str, Any]:
    """Return `shared_options`, and what policies see in gridworlds."""
    return {**shared_options(settings), "observation": settings.observation}


class Asked[O: TrainingOptions](NamedTuple):
    """A run as the command line asks for it."""

    options: O
    stored: RunSettings | None  # the settings of the run to resume (None: a new run)
    words: tuple[str, ...]  # the command line


class Opened(NamedTuple):
    """Runs that are ready to train in one program."""

    settings: Sequence[RunSettings]  # one for each run
    program: "Program"
    prefix: str = ""  # prefix of a new directory's name
    #: writes the first checkpoint, where the run does not start from `program.init`
    begin: Callable[[RunDirectory], None] = lambda directory: None
    measured: Callable[[], dict[str, Any]] = dict  # returns more entries of the manifest


@dataclass(frozen=True)
class Experiment[O: TrainingOptions]:
    """The record of a training command."""

    module: str  # the command, as `python -m` names it
    stage: str  # `RunSettings.stage` of its runs
    evaluate: str  # the command to suggest at the end
    #: returns the default options, given the unread command line and the run to resume
    defaults: Callable[[Said, RunSettings | None], O]
    #: builds the program of the runs
    opened: Callable[[Sequence[Asked[O]], Console], AbstractContextManager[Opened]]
    #: returns the settings asked of a stored run, which must equal the stored ones
    resumed: Callable[[O, RunSettings], RunSettings] = lambda options, stored: options.settings
    together: bool = False  # whether one program can train several runs
    #: films a policy after training, given the options, the run and the new GIF
    film: Callable[[O, Path, Path], None] | None = None
