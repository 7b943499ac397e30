"""Learn one task from nothing: `python -m experiments.minigrid_tabula_rasa --env Unlock`.

The policy learns from the sum of the task's own reward and an intrinsic one (paper, section 4.1,
"tabula-rasa"). Success ends an episode, and counts are not reset at random.
"""

from dataclasses import dataclass, replace
from functools import partial

import tyro

from cbet_jax.config import RunSettings
from experiments.common import gridworlds, presets, training_command
from experiments.common.cli import Said, value_of
from experiments.common.training_options import Experiment, GridworldOptions, gridworld_options


@dataclass(frozen=True, kw_only=True)
class TabulaRasaOptions(GridworldOptions):
    """Train agents on one task in a gridworld, with extrinsic and intrinsic rewards."""

    env: str  # the world whose task is learnt

    @property
    def settings(self) -> RunSettings:
        """The settings that decide the numbers."""
        return self.run_settings(self.env, explore=False)


def defaults(said: Said, stored: RunSettings | None) -> TabulaRasaOptions:
    """Return the options of the preset, or of the run to resume."""
    name = value_of(said, "--preset")
    base = presets.base(name, stored)
    if base is not stored:
        task = replace(base, train=presets.for_task(name, presets.task_of(said, stored)))
        base = presets.observing(task, said)
    env = stored.environments[0] if stored else tyro.MISSING
    return TabulaRasaOptions(**gridworld_options(base), env=env)


EXPERIMENT = Experiment(
    module="experiments.minigrid_tabula_rasa",
    stage="tabula rasa",
    evaluate=gridworlds.EVALUATE,
    defaults=defaults,
    opened=gridworlds.opened,
    together=True,
)
main = partial(training_command.main, EXPERIMENT)

if __name__ == "__main__":
    main()
