"""Draw the reward of each action, cell by cell: `python -m experiments.reward_maps`.

The paper's figure of intrinsic rewards (its section 3.1): a gridworld with a key and a door,
where the agent faces down in every cell, and the rewards 1 / sqrt(N(s')), ||c||^2 / sqrt(N(s'))
and C-BET's 1 / (N(s') + N(c)). The counts are of what a random policy, or that of a run, has
visited.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from cbet_jax.config import SettingsError
from cbet_jax.runs.directory import Checkpoint
from cbet_jax.settings.ranges import Seed, Steps, Worlds, check_fields
from envs.errors import UnknownEnvironment
from envs.names import ACTIONS
from experiments.common import cli
from experiments.common.screen import Screen, say

MODULE = "experiments.reward_maps"
FACING = ("right", "down", "left", "up")
FROM = tyro.conf.arg(
    name="from",
    metavar="RUN",
    help="whose policy visits the level (default: every action with the same chance)",
)


@dataclass(frozen=True)
class RewardMapOptions:
    """Draw the intrinsic reward of each action in each cell of a gridworld."""

    out: Path | None = None  # folder of the table and the figure (default: a new one in runs/)
    env: str = "DoorKey-8x8"  # the environment
    level_seed: Seed = 4  # draws its level
    source: Annotated[Path | None, FROM] = None
    checkpoint: Checkpoint = None  # frames of RUN's checkpoint (default: its newest)
    seed_index: int = 0  # which of RUN's seeds plays
    worlds: Worlds = 64  # copies that are played side by side and counted together
    steps: Steps = 1000  # steps in each copy
    seed: Seed = 0  # draws the actions
    facing: str = "down"  # where the agent faces: right, down, left or up
    actions: tuple[str, ...] = ("left", "right", "forward", "pickup")  # columns of the figure


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
