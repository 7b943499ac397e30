"""Pre-train in scenes of rooms: `python -m experiments.habitat_pretrain --preset laptop`.

Each actor explores a scene in its own simulator, which runs in its own process.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from cbet_jax.config import HabitatSettings, RunSettings, SettingsError
from cbet_jax.settings.ranges import check_between
from envs.habitat.simulator import ACTIONS
from experiments import watch
from experiments.common import habitat, presets, training_command
from experiments.common.cli import Said, value_of
from experiments.common.presets import HABITAT_PRESETS
from experiments.common.training_options import (
    Asked,
    Experiment,
    Opened,
    TrainingOptions,
    shared_options,
)

MOST_SIMULATORS = 1024
FILM_STEPS = 100  # the length of the film at the end


@dataclass(frozen=True, kw_only=True)
class HabitatPretrainOptions(TrainingOptions):
    """Pre-train agents in a scene of rooms with intrinsic rewards only.

    `--worlds` is the number of actors, and so of simulators, each in its own process.
    """

    scene: str  # the path of a scene, or a name that the simulator knows
    habitat: Annotated[HabitatSettings, tyro.conf.arg(name="")]
    #: the interpreter that the simulator is installed in (None: this one for raycast, else that
    #: of the environment variable HABITAT_PYTHON, else this one)
    simulator_python: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_between("worlds", self.train.worlds, 1, MOST_SIMULATORS)
        if self.distributed or (self.devices or 1) > 1:
            raise SettingsError(
                "simulators play with one device: leave --devices out, and --distributed"
            )

    @property
    def settings(self) -> RunSettings:
        """The settings that decide the numbers."""
        return self.run_settings(self.scene, habitat=self.habitat)


def defaults(said: Said, stored: RunSettings | None) -> HabitatPretrainOptions:
    """Return the options of the preset, or of the run to resume."""
    base = presets.base(value_of(said, "--preset"), stored, HABITAT_PRESETS)
    assert base.habitat is not None
    if stored and stored.habitat:
        habitat.trusted(stored.habitat, value_of(said, "--simulator"))
    return HabitatPretrainOptions(
        **shared_options(base), scene=base.environments[0], habitat=base.habitat
    )


@contextmanager
def opened(runs: Sequence[Asked[HabitatPretrainOptions]], console: Console) -> Iterator[Opened]:
    """Start the simulators, and build the run that is played in them."""
    from cbet_jax.intrinsic import make_intrinsic  # imported here: it takes seconds

    options = runs[0].options
    settings = options.settings
    process = habitat.process_settings(
        options.scene,
        options.habitat,
        options.simulator_python,
        panoramas=make_intrinsic(settings.train, len(ACTIONS)).panoramas,
    )
    with habitat.simulators(process, settings.train.worlds) as simulators:
        program = habitat.build(settings, simulators)
        habitat.introduce(simulators, console)
        try:
            yield Opened(
                [settings],
                program,
                prefix=f"habitat-{simulators.scene_name}-",
                measured=lambda: habitat.played_time(simulators.played),
            )
        finally:
            habitat.tell_time(simulators.played, console)


def film(options: HabitatPretrainOptions, run: Path, to: Path) -> None:
    """Film the policy with the simulator of the run."""
    words = [str(run), "--out", str(to), "--steps", str(FILM_STEPS)]
    if Path(options.habitat.simulator).suffix:  # a file, which is code: no run names it by itself
        words += ["--simulator", options.habitat.simulator]
    if options.simulator_python:
        words += ["--simulator-python", options.simulator_python]
    watch.main(words)


EXPERIMENT = Experiment(
    module="experiments.habitat_pretrain",
    stage="pre-training in Habitat",
    evaluate=habitat.EVALUATE,
    defaults=defaults,
    opened=opened,
    film=film,
)
main = partial(training_command.main, EXPERIMENT)

if __name__ == "__main__":
    main()
