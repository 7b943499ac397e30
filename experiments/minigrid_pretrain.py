"""Pre-trains on MiniGrid: `python -m experiments.minigrid_pretrain --preset laptop`."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console

from cbet_jax.config import RunSettings
from envs.registry import UnknownEnvironment
from experiments.common import cli, training
from experiments.common.training import build

MODULE = "experiments.minigrid_pretrain"


@dataclass(frozen=True, kw_only=True)
class Options(training.Options):
    """Pre-trains agents on MiniGrid worlds with intrinsic rewards alone."""

    envs: tuple[str, ...]  # worlds, cycled episode by episode

    @property
    def settings(self) -> RunSettings:
        """What decides the numbers."""
        return self.run(*self.envs)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the experiment that the command line asks for."""
    arguments = sys.argv[1:] if arguments is None else arguments
    console = Console()
    with cli.user_errors(UnknownEnvironment):
        options = read(arguments)
        program = build(options.settings, training.lay_out(options, console))
        directory = training.open_directory(options, options.settings)
        host = training.host_settings(options, arguments, console)
        training.execute(directory, options.settings, program, host, MODULE)


def read(arguments: Sequence[str]) -> Options:
    """Reads the command line; what it does not say comes from the preset or the resumed run."""
    first = cli.first(arguments, cli.First)
    stored = training.stored_settings(first)
    base = cli.preset(first.preset) if stored is None or first.preset else stored
    defaults = Options(**training.shared(base), envs=base.environments)
    options: Options = cli.parse(Options, arguments, MODULE, default=defaults)
    training.refuse_other_settings(options, stored, options.settings)
    return options


if __name__ == "__main__":
    main()
