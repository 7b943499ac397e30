"""Check that a world is as it must be: `python -m experiments.check_world FILE.py:make`.

Each line is a check and what came of it. The exit status is 1 if one has failed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Annotated

import tyro

from cbet_jax.settings.ranges import Worlds, check_fields
from envs.errors import Check, UnknownEnvironment, checked
from experiments.common import cli
from experiments.common.screen import Screen

MODULE = "experiments.check_world"


@dataclass(frozen=True)
class CheckWorldOptions:
    """Check that a world is as it must be, one line for each check."""

    #: FILE.py:FUNCTION, package.module:function, or a world of the package
    world: Annotated[str, tyro.conf.Positional]
    worlds: Worlds = 4  # side by side
    explore: bool = False  # a gridworld's episodes continue after success, as in pre-training


def main(arguments: Sequence[str] | None = None) -> None:
    """Check the world, and end the process with status 1 if a check has failed."""
    with cli.user_errors(UnknownEnvironment):
        options: CheckWorldOptions = cli.parse(CheckWorldOptions, arguments, MODULE)
        check_fields(options)
        # Imported here: they take seconds.
        from cbet_jax.own_code import is_own
        from envs.check import check_world
        from envs.minigrid import make_world
        from envs.minigrid.generators import find
        from envs.minigrid.generators.check_levels import check_levels
        from envs.minigrid.generators.own_worlds import is_whole_world, unchecked_world

        name = cli.load_world(options.world) if is_own(options.world) else options.world
        checks: Iterator[Check]
        if is_whole_world(name):
            unchecked_world(name, options.worlds + 1)  # as many as are asked for
            checks = check_world(unchecked_world(name, options.worlds))
        else:
            world = make_world((name,), options.worlds, explore=options.explore)
            levels = checked("levels", lambda: check_levels(find(name)))
            checks = chain([levels], check_world(world))
        cli.show_checks(checks, Screen())


if __name__ == "__main__":
    main()
