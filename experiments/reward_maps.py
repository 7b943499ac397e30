"""Draw the reward of each action, cell by cell: `python -m experiments.reward_maps`.

The paper's figure of intrinsic rewards (its section 3.1): a gridworld with a key and a door,
where the agent faces down in every cell, and the rewards 1 / sqrt(N(s')), ||c||^2 / sqrt(N(s'))
and C-BET's 1 / (N(s') + N(c)). The counts are of what a random policy, or that of a run, has
visited.
"""

from collections.abc import Sequence

from envs.errors import UnknownEnvironment
from experiments.common import cli
from experiments.common.screen import Screen, say
from experiments.illustrations.illustration_options import RewardMapOptions

MODULE = "experiments.reward_maps"


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw what the command line asks for."""
    console = Screen()
    with cli.user_errors(UnknownEnvironment):
        options: RewardMapOptions = cli.parse(RewardMapOptions, arguments, MODULE)
        from experiments.illustrations import reward_map  # imported here: it takes seconds

        files = reward_map.play_and_draw(options, console)
    say(console, f"saved: {' and '.join(map(str, files))}")


if __name__ == "__main__":
    main()
