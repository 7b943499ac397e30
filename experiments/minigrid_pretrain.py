"""Pre-train in gridworlds: `python -m experiments.minigrid_pretrain --preset laptop`."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

from rich.console import Console

from cbet_jax.config import RunSettings
from cbet_jax.program import Program
from envs.minigrid.generators.own_worlds import is_whole_world
from experiments.common import gridworlds, opening, presets, training
from experiments.common.cli import FirstWords
from experiments.common.experiment import Experiment, Opened
from experiments.common.gridworlds import build, build_together
from experiments.common.training_options import TrainingOptions, shared_options

FILM_STEPS = 140  # of the film at the end


@dataclass(frozen=True, kw_only=True)
class PretrainOptions(TrainingOptions):
    """Pre-train agents in gridworlds with intrinsic rewards only."""

    COMMON: ClassVar[tuple[str, ...]] = (
        *("--preset", "--out", "--frames", "--envs", "--method", "--seeds"),
        *("--first-seed", "--resume", "--track", "--devices"),
    )

    #: environments, or FILE.py:FUNCTION of one's own; each actor plays one episode in each, in turn
    envs: tuple[str, ...]

    @property
    def gridworlds(self) -> tuple[str, ...]:
        """The gridworlds to play."""
        return self.envs

    @property
    def settings(self) -> RunSettings:
        """The settings that decide the numbers."""
        return self.run_settings(*self.envs)


def defaults(first: FirstWords, stored: RunSettings | None) -> PretrainOptions:
    """Return the options of the preset, or of the run to resume."""
    base = presets.base(first.preset, stored)
    return PretrainOptions(**shared_options(base), envs=base.environments)


@contextmanager
def opened(
    options: PretrainOptions, stored: RunSettings | None, console: Console
) -> Iterator[Opened]:
    """Build the run."""
    program = build(options.settings, opening.lay_out(options, console))
    yield Opened(options.settings, program)


def opened_together(
    several: Sequence[PretrainOptions], console: Console
) -> tuple[list[RunSettings], Program]:
    """Build the program of several runs."""
    runs = [options.settings for options in several]
    return runs, build_together(runs, opening.lay_out(several[0], console))


def film(options: PretrainOptions) -> tuple[str, ...] | None:
    """Return the words of `watch` that film the policy; only gridworlds are filmed."""
    if any(map(is_whole_world, options.envs)):
        return None
    return ("--explore", "--steps", str(FILM_STEPS))


EXPERIMENT = Experiment(
    module="experiments.minigrid_pretrain",
    stage="pre-training",
    defaults=defaults,
    resumed=lambda options, _: options.settings,
    opened=opened,
    evaluate=gridworlds.EVALUATE,
    opened_together=opened_together,
    film=film,
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the experiment that the command line asks for."""
    training.main(EXPERIMENT, arguments)


if __name__ == "__main__":
    main()
