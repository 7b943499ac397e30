"""Pre-train in gridworlds: `python -m experiments.minigrid_pretrain --preset laptop`."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cbet_jax.config import RunSettings
from experiments import watch
from experiments.common import gridworlds, presets, training_command
from experiments.common.cli import Said, value_of
from experiments.common.training_options import Experiment, GridworldOptions, gridworld_options

FILM_STEPS = 140  # of the film at the end


@dataclass(frozen=True, kw_only=True)
class PretrainOptions(GridworldOptions):
    """Pre-train agents in gridworlds with intrinsic rewards only."""

    #: environments, or FILE.py:FUNCTION of one's own; each actor plays one episode in each, in turn
    envs: tuple[str, ...]

    @property
    def settings(self) -> RunSettings:
        """The settings that decide the numbers."""
        return self.run_settings(*self.envs)


def defaults(said: Said, stored: RunSettings | None) -> PretrainOptions:
    """Return the options of the preset, or of the run to resume."""
    base = presets.base(value_of(said, "--preset"), stored)
    base = base if base is stored else presets.observing(base, said)
    return PretrainOptions(**gridworld_options(base), envs=base.environments)


def film(options: PretrainOptions, run: Path, to: Path) -> None:
    """Film the policy, except in worlds with rules of their own, which cannot be drawn."""
    from envs.minigrid.generators.own_worlds import is_whole_world  # imported here: takes seconds

    if not any(map(is_whole_world, options.envs)):
        watch.main([str(run), "--out", str(to), "--explore", "--steps", str(FILM_STEPS)])


EXPERIMENT = Experiment(
    module="experiments.minigrid_pretrain",
    stage="pre-training",
    evaluate=gridworlds.EVALUATE,
    defaults=defaults,
    opened=gridworlds.opened,
    together=True,
    film=film,
)
main = partial(training_command.main, EXPERIMENT)

if __name__ == "__main__":
    main()
