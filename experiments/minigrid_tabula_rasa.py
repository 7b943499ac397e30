"""Learn one task from nothing: `python -m experiments.minigrid_tabula_rasa --env Unlock`.

The policy learns from the sum of the task's own reward and an intrinsic one (paper, section 4.1,
"tabula-rasa"). Success ends an episode, and counts are not reset at random.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import ClassVar

import tyro
from rich.console import Console

from cbet_jax.analysis.method_style import plain_name
from cbet_jax.config import RunSettings
from cbet_jax.program import Program
from experiments.common import gridworlds, opening, presets, training
from experiments.common.cli import FirstWords
from experiments.common.experiment import Experiment, Opened
from experiments.common.gridworlds import build, build_together
from experiments.common.training_options import TrainingOptions, shared_options


@dataclass(frozen=True, kw_only=True)
class TabulaRasaOptions(TrainingOptions):
    """Train agents on one task in a gridworld, with extrinsic and intrinsic rewards."""

    COMMON: ClassVar[tuple[str, ...]] = (
        *("--env", "--preset", "--out", "--frames", "--method", "--seeds"),
        *("--first-seed", "--resume", "--track", "--devices"),
    )

    env: str  # the world whose task is learnt

    @property
    def gridworlds(self) -> tuple[str, ...]:
        """The gridworld to play."""
        return (self.env,)

    @property
    def settings(self) -> RunSettings:
        """The settings that decide the numbers."""
        return self.run_settings(self.env, explore=False)


def defaults(first: FirstWords, stored: RunSettings | None) -> TabulaRasaOptions:
    """Return the options of the preset, or of the run to resume."""
    base = presets.base(first.preset, stored)
    if base is not stored:
        base = replace(base, train=presets.for_task(base, first.env))
    env = stored.environments[0] if stored else tyro.MISSING
    return TabulaRasaOptions(**shared_options(base), env=env)


@contextmanager
def opened(
    options: TabulaRasaOptions, stored: RunSettings | None, console: Console
) -> Iterator[Opened]:
    """Build the run."""
    program = build(options.settings, opening.lay_out(options, console))
    yield Opened(options.settings, program, prefix=f"{plain_name(options.env)}-")


def opened_together(
    several: Sequence[TabulaRasaOptions], console: Console
) -> tuple[list[RunSettings], Program]:
    """Build the program of several runs."""
    runs = [options.settings for options in several]
    return runs, build_together(runs, opening.lay_out(several[0], console))


EXPERIMENT = Experiment(
    module="experiments.minigrid_tabula_rasa",
    stage="tabula rasa",
    defaults=defaults,
    resumed=lambda options, _: options.settings,
    opened=opened,
    evaluate=gridworlds.EVALUATE,
    opened_together=opened_together,
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the experiment that the command line asks for."""
    training.main(EXPERIMENT, arguments)


if __name__ == "__main__":
    main()
