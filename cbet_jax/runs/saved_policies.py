"""Load the policies a run has saved, and keep policies for good."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Key, PRNGKeyArray

from cbet_jax.agent import Agent, AgentParams, world_agent
from cbet_jax.config import RunSettings
from cbet_jax.program import seed_keys
from cbet_jax.runs import checkpoint, devices, multihost
from cbet_jax.runs.checkpoint import Loaded, Position
from cbet_jax.runs.checkpoint_arrays import OtherProgramError
from cbet_jax.runs.directory import RunDirectory, RunDirectoryError
from cbet_jax.settings_json import to_json
from envs.types import World

# Names of policies that no run has trained:
UNTRAINED = "untrained"  # a network that has learnt nothing ("random" in the published evaluation)
UNIFORM = "uniform"  # every action with the same chance

type Initializer = Callable[[Key[Array, " seeds"]], AgentParams]


class Policies(NamedTuple):
    """The policies of all seeds of a run at one checkpoint."""

    agent: Agent
    params: AgentParams  # arrays [seeds, ...]
    loaded: Loaded[Any]  # the checkpoint that they are from


def load_policies(
    directory: RunDirectory, settings: RunSettings, world: World, frames: int | None = None
) -> Policies:
    """Load a run's policies to play in a world.

    Args:
        directory: of the run.
        settings: of the run.
        world: which the policies must fit; it need not be the run's own.
        frames: of the checkpoint, or of policies kept for good (None: the newest good checkpoint).

    Raises:
        RunDirectoryError: there is no good checkpoint, or it holds no policy, or one for another
            number of actions or other views.
    """
    agent = world_agent(settings.train.network, settings.transfer, world)
    keys = seed_keys(settings.seeds, settings.first_seed)
    params = jax.eval_shape(jax.vmap(agent.init), keys)
    template = {"learner": {"policy": params.learnt, "fixed": params.fixed}}
    try:
        loaded = _load_kept(directory, settings, template, frames)
        loaded = loaded or load(directory, settings, template, frames)
    except OtherProgramError as error:
        raise RunDirectoryError(_misfit(directory, error, world)) from None
    learner = loaded.state["learner"]
    return Policies(agent, AgentParams(learner["policy"], learner["fixed"]), loaded)


def load(
    directory: RunDirectory, settings: RunSettings, template: Any, frames: int | None = None
) -> Loaded[Any]:
    """Read those arrays of a run's checkpoint that a template names.

    Args:
        directory: of the run.
        settings: of the run.
        template: the tree to fill: arrays or `jax.ShapeDtypeStruct`.
        frames: of the checkpoint (None: the newest good one).

    Raises:
        RunDirectoryError: there is no good one, or it does not fit the template.
    """
    folder, saved_with = directory.checkpoints, to_json(settings)
    if frames is not None:
        return checkpoint.load_at(folder, frames, template, saved_with)
    loaded = checkpoint.load_newest(folder, template, saved_with)
    if loaded is None:
        raise RunDirectoryError(f"{directory.root} holds no checkpoint yet")
    return loaded


def make_initializer(agent: Agent) -> Initializer:
    """Return the compiled function that draws the first parameters of an agent for each key."""
    return jax.jit(jax.vmap(agent.init), compiler_options=devices.compiled_quickly())


def untrained(
    policies: Policies, settings: RunSettings, init: Initializer | None = None
) -> AgentParams:
    """Return networks that have learnt nothing, with a run's fixed parameters as of frame 0.

    They are drawn as the run's own were, from other keys.

    Args:
        policies: of the run.
        settings: of the run.
        init: draws them, if it was compiled before.

    Returns:
        Parameters, arrays `[seeds, ...]`.
    """

    def begin(_: PRNGKeyArray, fixed: Any) -> Any:
        return policies.agent.schedule(fixed, jnp.zeros(()))

    keys = seed_keys(settings.seeds, settings.first_seed)
    drawn = (init or make_initializer(policies.agent))(keys)
    return drawn._replace(fixed=jax.vmap(begin)(keys, policies.params.fixed))


def keep(
    directory: RunDirectory, settings: RunSettings, params: AgentParams, position: Position
) -> None:
    """Save a run's policies for good, unless they were kept there before.

    Args:
        directory: of the run.
        settings: of the run.
        params: of the policies, arrays [seeds, ...].
        position: how far the run has come.
    """
    path = checkpoint.path_at(directory.policies, position.frames)
    if not multihost.on_first(path.exists):
        state = {"learner": {"policy": params.learnt, "fixed": params.fixed}}
        checkpoint.save(directory.policies, state, position, to_json(settings), kept=None)


def _load_kept(
    directory: RunDirectory, settings: RunSettings, template: Any, frames: int | None
) -> Loaded[Any] | None:
    if frames is None or not checkpoint.path_at(directory.policies, frames).exists():
        return None
    return checkpoint.load_at(directory.policies, frames, template, to_json(settings))


def _misfit(directory: RunDirectory, error: OtherProgramError, world: World) -> str:
    """Say why a policy cannot play: actions and views are the sizes that settings do not name."""
    where = " ".join(world.environments)
    if error.found_shape is None:
        return f"{directory.root} holds no policy (its checkpoint lacks {error.name})"
    if ".policy.kernel" in error.name or ".policy.bias" in error.name:
        return (
            f"the policy in {directory.root} chooses among {error.found_shape[-1]} actions, but "
            f"{where} has {world.num_actions}"
        )
    shape = "x".join(map(str, world.view_shape))
    return f"the policy in {directory.root} was made for other views than the {shape} of {where}"
