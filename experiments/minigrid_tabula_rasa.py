"""Learns one task from nothing: `python -m experiments.minigrid_tabula_rasa --env Unlock`.

The policy learns from the task's own reward and an intrinsic one, added (paper, section 4.1,
"tabula-rasa"); success ends an episode, and counts are not reset at random.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

import tyro
from rich.console import Console

from cbet_jax.config import RunSettings
from envs.registry import UnknownEnvironment
from experiments.common import cli, presets, training
from experiments.common.training import build

MODULE = "experiments.minigrid_tabula_rasa"


@dataclass(frozen=True, kw_only=True)
class Options(training.Options):
    """Trains agents on one MiniGrid task with extrinsic and intrinsic rewards."""

    env: str  # the world whose task it is

    @property
    def settings(self) -> RunSettings:
        """What decides the numbers."""
        return self.run(self.env, explore=False)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the experiment that the command line asks for."""
    arguments = sys.argv[1:] if arguments is None else arguments
    console = Console()
    with cli.user_errors(UnknownEnvironment):
        options = read(arguments)
        program = build(options.settings, training.lay_out(options, console))
        directory = training.open_directory(options, options.settings, f"{options.env}-")
        host = training.host_settings(options, arguments, console)
        training.execute(directory, options.settings, program, host, MODULE)


def read(arguments: Sequence[str]) -> Options:
    """Reads the command line; what it does not say comes from the preset or the resumed run."""
    first = cli.first(arguments, cli.FirstOfTask)
    stored = training.stored_settings(first)
    base = cli.preset(first.preset) if stored is None or first.preset else stored
    if base is not stored:
        base = replace(base, train=presets.for_task(base, first.env))
    defaults = Options(
        **training.shared(base), env=stored.environments[0] if stored else tyro.MISSING
    )
    options: Options = cli.parse(Options, arguments, MODULE, default=defaults)
    training.refuse_other_settings(options, stored, options.settings)
    return options


if __name__ == "__main__":
    main()
