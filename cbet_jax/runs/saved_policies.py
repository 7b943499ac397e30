"""Load the policies that a run has saved, and keep policies for good."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax.traverse_util import unflatten_dict
from jaxtyping import Array, Key

from cbet_jax.agent import Agent, AgentParams, Bias, world_agent
from cbet_jax.config import ObservationSettings, RunSettings, TransferSettings
from cbet_jax.program import seed_keys
from cbet_jax.runs import checkpoint, devices, manifest
from cbet_jax.runs.checkpoint import Loaded, Position, named_leaves
from cbet_jax.runs.directory import (
    BEST,
    NEWEST,
    Checkpoint,
    RunDirectory,
    RunDirectoryError,
    checkpoints,
    frames_of,
)
from cbet_jax.runs.reading import reading
from cbet_jax.runs.task_record import FRAMES
from envs.types import World

POLICY, FIXED = "learner.policy.", "learner.fixed."  # prefixes of a policy's arrays
METHOD = "learner.intrinsic."  # prefix of the arrays that a method learns

type Initializer = Callable[[Key[Array, " seeds"]], AgentParams]
#: parameters, and of `LoadedParams` the `best_frames` and the `method`
type _Saved = tuple[AgentParams, np.ndarray | None, Mapping[str, np.ndarray]]


@dataclass(frozen=True)
class LoadedParams(Loaded[AgentParams]):
    """Parameters of policies `[seeds, ...]`, and the checkpoint that they were read from."""

    best_frames: np.ndarray | None = None  # int[seeds]: each seed's, of best policies
    method: Mapping[str, np.ndarray] = field(default_factory=dict)  # its networks' arrays, if any


class Policies(NamedTuple):
    """The policies of all seeds of a run at one checkpoint."""

    agent: Agent
    params: AgentParams  # arrays [seeds, ...]
    loaded: LoadedParams  # their checkpoint


def load_policies(
    directory: RunDirectory, settings: RunSettings, world: World, frames: Checkpoint = None
) -> Policies:
    """Load a run's policies at a checkpoint to play in any world.

    Raises:
        RunDirectoryError: there is no good checkpoint, or its policies have another number of
            actions or other views.
    """
    if why := not_shown(settings, world):
        raise RunDirectoryError(f"the policy in {directory.root} {why}")
    agent = world_agent(settings.train.network, settings.transfer, world)
    loaded = load_params(directory, frames)
    wanted = jax.eval_shape(jax.vmap(agent.init), seed_keys(settings.seeds, settings.first_seed))
    found, names = named_leaves(loaded.state), named_leaves(wanted)
    for name, leaf in names.items():
        if name not in found or found[name].shape != leaf.shape:
            raise RunDirectoryError(_misfit(directory, name, found.get(name), world))
    leaves = [jnp.array(found[name]) for name in names]  # a forged file may hold more
    return Policies(agent, jax.tree.unflatten(jax.tree.structure(wanted), leaves), loaded)


def not_shown(settings: RunSettings, world: World) -> str:
    """Say what a run's policies see that worlds do not show ('': nothing)."""
    usual = settings.observation == ObservationSettings()
    shown = usual or world.other_view_shape is not None
    return "" if shown else f"sees {settings.observation}, which this does not show"


def load_params(directory: RunDirectory, frames: Checkpoint = None) -> LoadedParams:
    """Load the parameters of policies at a checkpoint: `[seeds, ...]`.

    All is read at once: where the run goes on, the checkpoint may soon be deleted.

    Raises:
        RunDirectoryError: there is no good checkpoint, or it holds no policy.
    """
    found = _load(directory, frames)
    params, best_frames, method = found.state
    return LoadedParams(params, found.position, found.path, found.damaged, best_frames, method)


def _load(directory: RunDirectory, frames: Checkpoint) -> Loaded[_Saved]:
    def read(path: Path) -> tuple[_Saved, Position]:
        arrays, position = checkpoint.read_arrays(path, (POLICY, FIXED, METHOD, FRAMES))
        best_frames = arrays.pop(FRAMES, None)
        method = {name: arrays.pop(name) for name in [*arrays] if name.startswith(METHOD)}
        return (params_of(arrays, directory.root), best_frames, method), position

    if frames in (None, BEST) and (best := checkpoint.newest_good(directory.best, read)):
        return best
    if frames == BEST:
        raise RunDirectoryError(
            f"{directory.root} holds no best policy: runs that learn a task keep one"
        )
    if frames is None or frames == NEWEST:
        loaded = checkpoint.newest_good(directory.checkpoints, read)
        loaded = loaded or checkpoint.newest_good(directory.policies, read)
        if loaded is None:
            manifest.refuse_lost_checkpoints(directory)
            raise RunDirectoryError(f"{directory.root} holds no checkpoint yet")
        return loaded
    # Best policies last: those of several seeds may be of different frames.
    folders = directory.policies, directory.checkpoints, directory.best
    saved = [path for folder in folders for path in checkpoints(folder)]
    found = next((path for path in saved if frames_of(path) == frames), None)
    if found is None:
        there = ", ".join(map(str, sorted(set(map(frames_of, saved))))) or "none"
        raise RunDirectoryError(
            f"no checkpoint at {frames} frames in {directory.root}; there: {there}"
        )
    try:
        return Loaded(*read(found), found)
    except checkpoint.DamagedCheckpointError:
        if found in checkpoints(found.parent):
            raise
        return _load(directory, frames)  # a run goes on, and has deleted it


def frames_of_seeds(loaded: LoadedParams, seeds: int) -> list[int]:
    """Return the frames that each seed's policy was trained for: best ones may differ in them.

    Raises:
        UnreadableError: best policies hold other numbers of seeds.
    """
    if loaded.best_frames is None:
        return [loaded.position.frames] * seeds
    with reading(loaded.path):
        return [int(loaded.best_frames[index]) for index in range(seeds)]


def without_reference(
    params: AgentParams, transfer: TransferSettings | None
) -> tuple[AgentParams, TransferSettings | None]:
    """Return a policy without the frozen one, if any, that fine-tuning only kept it near."""
    if transfer is None or not transfer.fine_tune:
        return params, transfer
    return AgentParams(params.learnt, params.fixed.policy.fixed), transfer.transfer


def params_of(arrays: Mapping[str, np.ndarray], where: Path) -> AgentParams:
    """Return a policy's parameters from arrays by their names in a checkpoint.

    Raises:
        RunDirectoryError: no array is a policy's. UnreadableError: one holds other than numbers.
    """
    with reading(where):
        for name, array in arrays.items():
            if array.dtype != np.float32 or not np.isfinite(array).all():
                raise ValueError(f"{name} is not of finite numbers")
        policy, fixed = _nested(arrays, POLICY), _nested(arrays, FIXED)
        if not policy:
            raise RunDirectoryError(f"{where} holds no policy")
        return _agent_params(policy, fixed)


def _agent_params(learnt: dict[str, Any], fixed: dict[str, Any] | None = None) -> AgentParams:
    """Return parameters; `fixed`, if any, has the frozen policy's and its weight."""
    if not fixed:
        return AgentParams(learnt)
    return AgentParams(learnt, Bias(_agent_params(**fixed.pop("policy")), **fixed))


def _nested(arrays: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return the arrays with a prefix as the tree that their names describe."""
    own = {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}
    return unflatten_dict(own, sep=".")


def make_initializer(agent: Agent) -> Initializer:
    """Return the compiled function from keys to initial parameters."""
    return jax.jit(jax.vmap(agent.init), compiler_options=devices.compiled_quickly())


def untrained(
    policies: Policies, settings: RunSettings, init: Initializer | None = None
) -> AgentParams:
    """Return what a run began with: new networks, which `init` draws if given, or copied ones.

    Fixed parameters are those of frame 0.
    """
    if settings.transfer and settings.transfer.fine_tune:
        return policies.params._replace(learnt=policies.params.fixed.policy.learnt)

    drawn = (init or make_initializer(policies.agent))(
        seed_keys(settings.seeds, settings.first_seed)
    )
    begin = jax.vmap(policies.agent.schedule, (0, None), axis_size=settings.seeds)
    return drawn._replace(fixed=begin(policies.params.fixed, jnp.zeros(())))


def _misfit(directory: RunDirectory, name: str, found: np.ndarray | None, world: World) -> str:
    """Say why a policy cannot play: settings name neither actions nor views."""
    where = " ".join(world.environments)
    if found is None:
        return f"{directory.root} holds no policy (its checkpoint lacks {name})"
    if ".policy.kernel" in name or ".policy.bias" in name:
        return (
            f"the policy in {directory.root} chooses among {found.shape[-1]} actions, but "
            f"{where} has {world.num_actions}"
        )
    shape = "x".join(map(str, world.policy_view_shape))
    return f"the policy in {directory.root} was made for other views than the {shape} of {where}"
