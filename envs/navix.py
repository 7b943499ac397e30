"""navix's environments as a `World`, with navix's own rules and observations."""

from typing import Any

from jaxtyping import Array, PRNGKeyArray

from envs.adapters import (
    AdaptedState,
    Environment,
    Success,
    Transition,
    batch_of,
    space_bounds,
    typed_transition,
)
from envs.observation_bytes import BYTE, Bounds
from envs.types import World


def from_navix(
    env: Any,
    num_worlds: int,
    *,
    bounds: Bounds | None = None,
    levels: int = BYTE,
    success: Success | None = None,
    name: str | None = None,
) -> World[AdaptedState]:
    """Return a batch of a navix environment with navix's own rules and observations.

    (`--envs Navix-FourRooms-v0` plays navix's levels by MiniGrid's rules.)

    Args:
        env: the environment, as `navix.make` returns it.
        num_worlds: size of the batch.
        bounds: bounds of an observation's numbers (None: those of `observation_space`, or -1 to
            100 for navix's categorical observations, whose space leaves these out).
        levels: quantization levels of a real number in `panorama`, 2 to 256 (`view` keeps 256).
        success: whether an action fulfilled the task (None: it ended the episode with a reward).
        name: name in metrics and tables (None: the class's name).

    Raises:
        ValueError: the environment cannot be adapted; one line says why.
    """
    env = env.replace(disable_autoreset=True)  # it resets one step later than a `World`

    def reset(key: PRNGKeyArray) -> tuple[Any, Array]:
        timestep = env.reset(key)
        return timestep, timestep.observation

    def step(key: PRNGKeyArray, timestep: Any, action: Array, _: Array) -> tuple[Any, Transition]:
        del key  # `timestep` holds one
        after = env.step(timestep, action)
        terminated, reward = after.is_termination(), after.reward
        reached = success(reward, terminated, after.info) if success else terminated & (reward > 0)
        return after, typed_transition(
            after.observation, reward, terminated, after.is_truncation(), reached
        )

    if bounds is None:
        seen = getattr(env.observation_fn, "__name__", "")
        bounds = (-1, 100) if "categorical" in seen else space_bounds(env.observation_space)
    return batch_of(
        Environment(
            name=name or type(env).__name__,
            num_actions=len(env.action_set),
            max_steps=int(env.max_steps),
            reset=reset,
            step=step,
        ),
        num_worlds,
        bounds,
        levels,
    )
