"""Write a file to begin a reward of your own with: `python -m experiments.new_method my_bonus`."""

import keyword
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Annotated

import tyro

from cbet_jax.runs.atomic_write import creating
from cbet_jax.settings.ranges import SettingsError
from experiments.common import cli, invocation
from experiments.common.screen import Screen, say

MODULE = "experiments.new_method"
CHECK, PRETRAIN = "experiments.check_method", "experiments.minigrid_pretrain"

TEMPLATE = Template('''\
"""$name: reward views that are rare in their episode. (Say here what yours rewards.)

A method is a record of functions, `Intrinsic`; cbet_jax/intrinsic/interface.py says of each when it
runs and what it returns. All but the name, the coefficient and the reward can be left out. Shapes:
[T, N] is T steps of N actors that play side by side.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from cbet_jax.intrinsic.interface import Intrinsic, Params, each_step

SLOTS = 2**12  # counters of each actor; views that share one are counted together


@dataclass(frozen=True)
class Own:
    """Settings of this method: --own power=1. (No settings: leave this and `own` out.)"""

    power: float = 0.5


def make(settings, num_actions, own=Own()):
    """Return the method. `settings` are the run's (cbet_jax.config.TrainSettings)."""

    def init(key, step):
        """Return the parameters, and the memory of each actor, before the first step.

        `learnt` holds networks that learn, `fixed` what does not.
        """
        factors = jax.random.bits(key, (step.view[0].size,))
        memory = jnp.zeros((len(step.view), SLOTS), jnp.int32)
        return Params(learnt={}, fixed={"factors": factors}), memory

    def observe(params, memory, key, experience):
        """Return the memory after a step, and what `reward` needs to know of the step, [N, ...].

        It runs in the order of time. `experience` has the view, the action taken in it, and the
        step that the action led to.
        """
        step = experience.step
        numbers = step.view.reshape(len(step.view), -1).astype(jnp.uint32)
        slot = (numbers * params.fixed["factors"]).sum(-1) % SLOTS
        ended = step.terminated | step.truncated  # then the view is the next episode's first one
        memory = jnp.where(ended[:, None], 0, memory)
        actor = jnp.arange(len(slot))
        memory = memory.at[actor, slot].add(1)
        return memory, memory[actor, slot]

    def reward(params, trajectory):
        """Return the reward of each step, float32 [T, N].

        `signal[t]` and `view[t + 1]` are of the step that `steps.action[t]` led to. With networks
        that learn, return a pair: the reward, and their loss with a dict of its terms
        (cbet_jax/intrinsic/rnd.py).
        """
        return trajectory.signal.astype(jnp.float32) ** -own.power

    # For running means: adapt= (cbet_jax/intrinsic/running_moments.py).
    return Intrinsic(
        "$name", coefficient=0.005, reward=reward, init=init, observe=each_step(observe)
    )
''')


@dataclass(frozen=True)
class NewMethodOptions:
    """Write a file with a reward of one's own to start from: it can be trained with as it is."""

    name: Annotated[str, tyro.conf.Positional]  # of the method, such as my_bonus
    out: Path | None = None  # the file (None: NAME.py here)

    def __post_init__(self) -> None:
        if not self.name.isidentifier() or keyword.iskeyword(self.name):
            raise SettingsError(
                f"NAME must be a name of Python, such as my_bonus, not {self.name!r}"
            )
        taken = self.name in sys.modules or find_spec(self.name)
        if taken and not Path(f"{self.name}.py").exists():
            raise SettingsError(f"NAME must be no module of Python's, as {self.name!r} is")
        if self.path.suffix != ".py":
            raise SettingsError(f"out must end in .py, not {self.path.name!r}")

    @property
    def path(self) -> Path:
        """The file."""
        return self.out or Path(f"{self.name}.py")


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the file, and print what to do next."""
    console = Screen()
    with cli.user_errors():
        options: NewMethodOptions = cli.parse(NewMethodOptions, arguments, MODULE)
        options.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with creating(options.path) as temporary:
                temporary.write_text(TEMPLATE.substitute(name=options.name))
        except FileExistsError:
            raise SettingsError(f"{options.path} already exists: choose another name") from None
    place = f"{options.path}:make"
    train = invocation.command_line(PRETRAIN, "--preset", "smoke", "--method", place)
    for line in (
        f"saved: {options.path}",
        f"check it: {invocation.command_line(CHECK, place)}",
        f"train with it: {train}",
    ):
        say(console, line)


if __name__ == "__main__":
    main()
