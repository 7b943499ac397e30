"""The options that all commands share that train."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import tyro

from cbet_jax.config import RunSettings, SettingsError, TrainSettings
from cbet_jax.runs import tracking
from cbet_jax.setting_types import NonNegativeFloat, Processes, check_between, check_fields


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """The options of every command that trains."""

    COMMON: ClassVar[tuple[str, ...]] = (
        *("--preset", "--out", "--frames", "--seeds", "--first-seed", "--resume"),
        *("--devices", "--keep-at"),
    )  # shown by --help

    train: Annotated[TrainSettings, tyro.conf.arg(name="")]
    seeds: int  # agents trained side by side
    first_seed: int  # the seeds are first_seed, first_seed + 1, ...
    chunk: int  # iterations between two looks of the host
    #: complete settings under a name (default: paper, the published ones; laptop is a smaller
    #: network that learns within minutes, smoke shows only that all runs)
    preset: Literal["paper", "laptop", "smoke"] | None = None
    out: Path | None = None  # the run's directory (default: a new one in runs/)
    resume: bool = False  # continue the run in --out; with more --frames, also a finished one
    #: between two checkpoints, at least (default: save at the end of each chunk, if saving takes at
    #: most a tenth of the time)
    checkpoint_seconds: NonNegativeFloat | None = None
    keep_at: tuple[int, ...] = ()  # frames at which the policies are kept for good
    #: follow the metrics in TensorBoard or Weights & Biases, besides metrics.csv
    track: tuple[Literal["tensorboard", "wandb"], ...] = ()
    film: bool = True  # pre-training ends with a GIF of its policy at play
    #: to divide seeds and worlds over (default: all GPUs that can be used, or all cores of the
    #: CPU); changes only the order of sums
    devices: Processes | None = None
    distributed: bool = False  # several hosts train together, each with this command

    @property
    def gridworlds(self) -> tuple[str, ...]:
        """The gridworlds to play; none where something else is played."""
        return ()

    def run_settings(self, *environments: str, **more: Any) -> RunSettings:
        """Return the settings that decide the numbers of a run.

        Args:
            *environments: to play.
            **more: further fields of `RunSettings`, from a command's own options.
        """
        return RunSettings(
            self.train, environments, self.seeds, self.first_seed, self.chunk, **more
        )

    def __post_init__(self) -> None:
        check_fields(self)
        if self.devices is not None and self.distributed:
            raise SettingsError("--distributed uses the devices of all hosts: leave --devices out")
        tracking.check_installed(self.track)
        for frames in self.keep_at:
            check_between("keep_at", frames, 1, self.train.frames)


def shared_options(settings: RunSettings) -> dict[str, Any]:
    """Return the shared options that a run or a preset sets, by name."""
    return {name: getattr(settings, name) for name in ("train", "seeds", "first_seed", "chunk")}
