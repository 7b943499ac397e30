"""Watch a policy play: `python -m experiments.watch DIR`, or `--env NAME` for a random one.

Draws the grid, the agent's view, and the rewards of each step to a GIF or an MP4, the first
moment of a level to a PNG, or all of it as text in the terminal. `--beside-random` draws a random
policy beside it on the same level. A run in Habitat shows the view, the panorama, and the path on
a map.
"""

from collections.abc import Sequence

from envs.errors import UnknownEnvironment
from envs.habitat.simulator import SimulatorError
from experiments.common import cli
from experiments.common.screen import Screen
from experiments.watching.options import WatchOptions

MODULE = "experiments.watch"


def main(arguments: Sequence[str] | None = None) -> None:
    """Show what the command line asks for."""
    with cli.user_errors(UnknownEnvironment, SimulatorError):
        options: WatchOptions = cli.parse(WatchOptions, arguments, MODULE)
        from experiments.watching.film_command import watch  # imported here: it takes seconds

        watch(options, Screen())


if __name__ == "__main__":
    main()
