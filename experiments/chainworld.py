"""Compare rules for resetting counts, on the paper's chain: `python -m experiments.chainworld`.

An agent starts in A and goes to B or to D. From B it loops between B and C; in D it stays (paper,
section 3.2, figure "chainworld"). If each episode's end resets counts, ABCBCB... is always worth
more than ADDD..., and the agent never visits D. If counts last until a random reset, places visited
more often are worth less, and the agent visits every place.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cbet_jax.config import LossSettings, OptimizerSettings, SettingsError, TrainSettings
from cbet_jax.settings import ranges
from experiments.common import cli
from experiments.common.screen import Screen, say

MODULE = "experiments.chainworld"
END = 5  # results are means over the last fifth of the episodes


@dataclass(frozen=True)
class ChainworldOptions:
    """Learn to explore a chain of four places, with several rules for resetting counts."""

    out: Path | None = None  # folder of the table and the figure (default: a new one in runs/)
    method: str = "cbet"  # a reward from counts: cbet, count or ablation-*
    episodes: Annotated[int, ranges.at_least(END), ranges.at_most(10**6)] = 500  # of each actor
    steps: Annotated[int, ranges.at_least(2), ranges.at_most(10**6)] = 100  # steps in an episode
    actors: ranges.Worlds = 32  # actors of one policy, each with its own counts
    seeds: ranges.Seeds = 8  # policies for each rule
    first_seed: ranges.Seed = 0  # the first seed; the others follow it
    #: chances of a reset at each step: the paper's largest, 1 - gamma, and that of its experiments
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


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study that the command line asks for."""
    console = Screen()
    with cli.user_errors():
        options: ChainworldOptions = cli.parse(ChainworldOptions, arguments, MODULE)
        from experiments.illustrations import chain_results  # imported here: it takes seconds

        files = chain_results.learn_and_write(options, console)
    say(console, f"saved: {' and '.join(map(str, files))}")


if __name__ == "__main__":
    main()
