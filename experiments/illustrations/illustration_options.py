"""The options of the commands that draw the paper's illustrations."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from cbet_jax.config import LossSettings, OptimizerSettings, SettingsError, TrainSettings
from cbet_jax.runs.directory import Checkpoint
from cbet_jax.settings import ranges

END = 5  # results of the chain are means over the last fifth of the episodes
FACING = ("right", "down", "left", "up")
PLAYER = "whose policy visits the level (None: actions are uniformly random)"
FROM = tyro.conf.arg(name="from", metavar="RUN", help=PLAYER)


@dataclass(frozen=True)
class ChainworldOptions:
    """Learn to explore a chain of four places, with several rules for resetting counts."""

    out: Path | None = None  # folder of the table and the figure (None: a new one in runs/)
    method: str = "cbet"  # a reward from counts: cbet, count or ablation-*
    episodes: Annotated[int, ranges.at_least(END), ranges.at_most(10**6)] = 500  # of each actor
    steps: Annotated[int, ranges.at_least(2), ranges.at_most(10**6)] = 100  # steps in an episode
    actors: ranges.Worlds = 32  # actors of one policy, each with its own counts
    seeds: ranges.Seeds = 8  # policies for each rule
    first_seed: ranges.Seed = 0  # the first seed; the others follow it
    #: reset probabilities of a step: the paper's largest, 1 - gamma, and that of its experiments
    reset_probabilities: tuple[float, ...] = (0.01, 0.001)
    discount: float = 0.99  # weight of a reward one step later
    learning_rate: float = 0.02  # rate of the optimizer

    def __post_init__(self) -> None:
        ranges.check_fields(self)
        ranges.check_seeds(self.first_seed, self.seeds)
        if not all(0 < probability <= 1 for probability in self.reset_probabilities):
            raise SettingsError("reset_probabilities must be above 0 and at most 1")
        _ = self.train  # refuses invalid settings

    @property
    def train(self) -> TrainSettings:
        """The learner's settings."""
        return TrainSettings(
            frames=self.episodes * self.actors * self.steps,
            worlds=self.actors,
            batch=self.actors,
            unroll=self.steps,
            optimizer=OptimizerSettings(learning_rate=self.learning_rate),
            loss=LossSettings(discount=self.discount),
        )


@dataclass(frozen=True)
class RewardMapOptions:
    """Draw the intrinsic reward of each action in each cell of a gridworld."""

    out: Path | None = None  # folder of the table and the figure (None: a new one in runs/)
    env: str = "DoorKey-8x8"  # the environment
    level_seed: ranges.Seed = 4  # draws its level
    source: Annotated[Path | None, FROM] = None
    checkpoint: Checkpoint = None  # frames of RUN's checkpoint (None: as `evaluate`'s)
    seed_index: int = 0  # which of RUN's seeds plays
    worlds: ranges.Worlds = 64  # copies that are played side by side and counted together
    steps: ranges.Steps = 1000  # steps in each copy
    seed: ranges.Seed = 0  # draws the actions
    facing: str = "down"  # where the agent faces: right, down, left or up
    actions: tuple[str, ...] = ("left", "right", "forward", "pickup")  # columns of the figure
