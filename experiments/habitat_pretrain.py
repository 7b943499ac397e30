"""Pre-trains in scenes of rooms: `python -m experiments.habitat_pretrain --preset laptop`.

Every actor walks about one scene in a simulator of its own, which runs in its own process.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

import tyro
from rich.console import Console

from cbet_jax.config import HabitatSettings, RunSettings, SettingsError
from cbet_jax.runs.directory import RunDirectoryError
from envs.habitat.simulator import SimulatorError
from envs.habitat.workers.simulators import Simulators
from envs.habitat.workers.stopwatch import Stopwatch
from experiments.common import cli, habitat, training
from experiments.common.presets import HABITAT_PRESETS

MODULE = "experiments.habitat_pretrain"


@dataclass(frozen=True, kw_only=True)
class Options(training.Options):
    """Pre-trains agents in a scene of rooms with intrinsic rewards alone.

    `--worlds` says how many actors, and so how many simulators, each in a process of its own.
    """

    scene: str  # the path of a scene, or a name that the simulator knows
    habitat: Annotated[HabitatSettings, tyro.conf.arg(name="")]
    #: the interpreter that the simulator is installed in (default: for all but raycast the
    #: environment's HABITAT_PYTHON, else this one)
    simulator_python: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.distributed or (self.devices or 1) > 1:
            raise SettingsError("simulators play with one device: leave --devices out")

    @property
    def settings(self) -> RunSettings:
        """What decides the numbers."""
        return self.run(self.scene, habitat=self.habitat)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the experiment that the command line asks for."""
    arguments = sys.argv[1:] if arguments is None else arguments
    console = Console()
    with cli.user_errors(SimulatorError):
        options = read(arguments)
        settings = options.settings
        process = habitat.process_settings(options.scene, options.habitat, options.simulator_python)
        with habitat.simulators(process, settings.train.worlds) as simulators:
            program = habitat.build(settings, simulators)
            prefix = f"habitat-{simulators.scene_name}-"
            directory = training.open_directory(options, settings, prefix)
            introduce(simulators, console)
            simulators.stopwatch.sequence = settings.train.unroll
            told = partial(time_shares, simulators.stopwatch)
            host = replace(training.host_settings(options, arguments, console), measured=told)
            try:
                training.execute(
                    directory, settings, program, host, MODULE, evaluate=habitat.EVALUATE
                )
            finally:
                tell_time(simulators.stopwatch, console)


def read(arguments: Sequence[str]) -> Options:
    """Reads the command line; what it does not say comes from the preset or the resumed run.

    Raises:
        RunDirectoryError: the run to resume is none in Habitat, or has other settings.
    """
    first = cli.first(arguments, cli.First)
    stored = training.stored_settings(first)
    if stored is not None and stored.habitat is None:
        raise RunDirectoryError(f"{first.out} is a run of {stored.stage}, not in Habitat")
    base = stored
    if base is None or first.preset:
        base = cli.preset(first.preset, HABITAT_PRESETS)
    assert base.habitat is not None
    defaults = Options(**training.shared(base), scene=base.environments[0], habitat=base.habitat)
    options: Options = cli.parse(Options, arguments, MODULE, default=defaults)
    training.refuse_other_settings(options, stored, options.settings)
    return options


def introduce(simulators: Simulators, console: Console) -> None:
    """Says which simulator plays."""
    hello = simulators.workers.hello
    line = f"{len(simulators)} x {hello.simulator} {hello.version} ({hello.renderer})"
    console.print(f"simulators: {line}, scene {hello.scene}", soft_wrap=True, highlight=False)


def time_shares(stopwatch: Stopwatch) -> dict[str, Any]:
    """Returns where the time went, for the manifest."""
    if not stopwatch.steps:
        return {}
    shares = {name: round(share, 3) for name, share in stopwatch.shares()._asdict().items()}
    return {"time_shares": shares}


def tell_time(stopwatch: Stopwatch, console: Console) -> None:
    """Says how fast the simulators were played, and where the time went."""
    if stopwatch.steps:
        speed = stopwatch.steps / stopwatch.seconds
        shares = stopwatch.shares()._asdict().items()
        parts = ", ".join(f"{name} {share:.0%}" for name, share in shares)
        console.print(
            f"{speed:,.0f} simulator steps/s; time in {parts}", soft_wrap=True, highlight=False
        )


if __name__ == "__main__":
    main()
