"""Draw the reward of each action, cell by cell: `python -m experiments.reward_maps`.

The paper's figure of intrinsic rewards (its section 3.1): a gridworld with a key and a door,
where the agent faces down in every cell, and the rewards 1 / sqrt(N(s')), ||c||^2 / sqrt(N(s'))
and C-BET's 1 / (N(s') + N(c)). The counts are of what a random policy, or that of a run, has
visited.
"""

from collections.abc import Sequence

from cbet_jax.config import SettingsError
from cbet_jax.settings.ranges import check_fields
from envs.errors import UnknownEnvironment
from envs.names import ACTIONS
from experiments.common import cli
from experiments.common.screen import Screen, say
from experiments.illustrations.illustration_options import FACING, RewardMapOptions

MODULE = "experiments.reward_maps"


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw what the command line asks for."""
    console = Screen()
    with cli.user_errors(UnknownEnvironment):
        options: RewardMapOptions = cli.parse(RewardMapOptions, arguments, MODULE)
        check(options)
        from experiments.illustrations import reward_map  # imported here: it takes seconds

        files = reward_map.play_and_draw(options, console)
    say(console, f"saved: {' and '.join(map(str, files))}")


def check(options: RewardMapOptions) -> None:
    """Refuse settings out of range."""
    check_fields(options)
    if options.facing not in FACING:
        raise SettingsError(f"facing must be one of {', '.join(FACING)}, not {options.facing!r}")
    unknown = [action for action in options.actions if action not in ACTIONS]
    if unknown or not options.actions:
        known = ", ".join(ACTIONS)
        raise SettingsError(f"actions must be some of {known}, not {' '.join(unknown) or 'none'}")
    if options.source is None and (options.checkpoint is not None or options.seed_index):
        name = "seed-index" if options.checkpoint is None else "checkpoint"
        raise SettingsError(f"--{name} needs --from RUN, the run that it belongs to")


if __name__ == "__main__":
    main()
