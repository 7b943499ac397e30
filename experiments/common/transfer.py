"""The pre-trained policies that bias a run of transfer, and the state that it begins with."""

from typing import Any

from cbet_jax.config import RunSettings
from cbet_jax.program import Program, seed_keys
from cbet_jax.runs import checkpoint, multihost
from cbet_jax.runs.checkpoint import Position
from cbet_jax.runs.directory import RunDirectory


def save_first_state(
    directory: RunDirectory, settings: RunSettings, program: Program, biases: Any
) -> None:
    """Save the state before the first step, with the pre-trained policies in their place.

    Args:
        directory: of the run.
        settings: of the run.
        program: that the run will be trained with.
        biases: parameters of the pre-trained policies, arrays `[seeds, ...]`.
    """
    with multihost.first_inside(directory.lock):
        state = program.init(seed_keys(settings.seeds, settings.first_seed))
        fixed = state.learner.fixed._replace(policy=biases)
        state = state._replace(learner=state.learner._replace(fixed=fixed))
        checkpoint.save(directory.checkpoints, state, Position())
