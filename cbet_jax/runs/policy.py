"""A saved policy as one object, for use in Python: give it views, get actions."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax.errors import ScopeParamShapeError
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt8

from cbet_jax.agent import Agent, AgentParams, Bias, make_agent
from cbet_jax.config import RunSettings
from cbet_jax.networks.policy_network import sample_actions
from cbet_jax.runs import checkpoint, pretrained
from cbet_jax.runs.directory import RunDirectory, RunDirectoryError
from cbet_jax.runs.pretrained import POLICY
from cbet_jax.setting_types import check_between
from cbet_jax.settings_json import to_json
from cbet_jax.types import RecurrentState

FIXED = "learner.fixed."  # before the names of arrays that are not learnt
NO_VIEW = (0, 0, 0)  # only `Agent.init` reads the shape of a view: saved parameters need none

type ViewOrViews = UInt8[Array | np.ndarray, "..."]  # [height, width, 3], or [N, ...]
type First = Bool[Array | np.ndarray, "..."] | bool  # [N], or one for all
type Outputs = tuple[Float[Array, "*N actions"], Float[Array, "..."], RecurrentState]


class Policy:
    """A policy that acts and does not learn; what it computes is compiled.

    One agent's view is `[height, width, 3]`, that of `N` agents `[N, height, width, 3]`; actions
    have the same leading axis. The recurrent state is that of `initial_state(N)`.

    Args:
        agent: that acts.
        params: of the agent.
        settings: of the run that it is from.
        frames: that it was trained for.
    """

    def __init__(
        self, agent: Agent, params: AgentParams, settings: RunSettings, frames: int
    ) -> None:
        self.params, self.settings, self.frames = params, settings, frames
        self.initial_state = agent.initial_state
        self._outputs = jax.jit(partial(_outputs, agent))
        self._act = jax.jit(partial(_act, agent))

    def __call__(
        self,
        view: ViewOrViews,
        state: RecurrentState,
        key: PRNGKeyArray,
        first: First = False,
    ) -> tuple[Int[Array, "*N"], RecurrentState]:
        """Return an action drawn from the policy for each agent, and the next recurrent state.

        Args:
            view: what each agent sees.
            state: the recurrent state before this view.
            key: draws the actions.
            first: which agents see the first view of an episode: their state is zeroed before.

        Raises:
            ValueError: the policy was made for other views.
        """
        return self._call(self._act, view, first, state, key)

    def outputs(self, view: ViewOrViews, state: RecurrentState, first: First = False) -> Outputs:
        """Return the logits and the values of the agents, and the next recurrent state.

        Args:
            view: what each agent sees.
            state: the recurrent state before this view.
            first: which agents see the first view of an episode: their state is zeroed before.

        Raises:
            ValueError: the policy was made for other views.
        """
        return self._call(self._outputs, view, first, state)

    def _call(self, function: Any, view: ViewOrViews, *inputs: Any) -> Any:
        shape = "x".join(map(str, jnp.shape(view)))
        if jnp.ndim(view) not in (3, 4):
            raise ValueError(f"a view is height x width x 3, or N of them, not {shape}")
        try:
            return function(self.params, view, *inputs)
        except ScopeParamShapeError:
            raise ValueError(f"the policy was made for other views than {shape}") from None


def load(
    run: Path | str,
    seed_index: int = 0,
    *,
    frames: int | None = None,
    platform: str | None = None,
) -> Policy:
    """Load the policy of a run, or a pre-trained one of the package; nothing is written.

    Args:
        run: directory of the run, or `pretrained/NAME`.
        seed_index: which of the run's seeds.
        frames: of the checkpoint, or of policies kept for good (None: the newest good checkpoint).
        platform: that its programs are written for: `cpu` or `gpu` (None: the kind of JAX's
            default device).

    Raises:
        RunDirectoryError: there is no such run, or it holds no good policy.
        SettingsError: the run has no such seed.
    """
    read = _read_packed if pretrained.is_named(Path(run)) else _read_run
    settings, learner, done = read(Path(run), frames)
    check_between("seed_index", seed_index, 0, settings.seeds - 1)
    params = AgentParams(learner["policy"], learner["fixed"])
    actions = params.learnt["params"]["policy"]["bias"].shape[-1]
    network, transfer = settings.train.network, settings.transfer
    agent = make_agent(network, transfer, actions, NO_VIEW, platform or jax.default_backend())
    own = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)[seed_index]), params)
    return Policy(agent, own, settings, done)


def _read_packed(name: Path, frames: int | None) -> tuple[RunSettings, Mapping[str, Any], int]:
    packed = pretrained.read(name)
    if frames not in (None, packed.frames):
        raise RunDirectoryError(f"{name} has {packed.frames} frames, not {frames}")
    return packed.settings, packed.learner, packed.frames


def _read_run(root: Path, frames: int | None) -> tuple[RunSettings, Mapping[str, Any], int]:
    """Return the settings of a run, its policies in their newest good form, and their frames."""
    directory = RunDirectory(root)
    settings = directory.settings()
    found = checkpoint.checkpoints(directory.checkpoints)
    if frames is not None:
        kept = checkpoint.checkpoints(directory.policies)
        found = [path for path in (*found, *kept) if int(path.name) == frames]
    for path in reversed(found):
        try:
            template = {"learner": _template(path)}
            state, position = checkpoint.load(path, template, to_json(settings))
        except checkpoint.DamagedCheckpointError:
            continue
        return settings, state["learner"], position.frames
    good = "damaged ones only" if found else "none"
    at = "" if frames is None else f" at {frames} frames"
    raise RunDirectoryError(f"{root} holds no good checkpoint{at}: {good}")


def _template(path: Path) -> dict[str, Any]:
    """Return what to read of a checkpoint: the parameters, in the shapes that it holds them in."""
    shapes = checkpoint.stored_shapes(path)
    policy, fixed = pretrained.nested(shapes, POLICY), pretrained.nested(shapes, FIXED)
    if not policy:
        raise RunDirectoryError(f"{path} holds no policy")
    return {"policy": policy, "fixed": Bias(**fixed) if fixed else ()}


def _outputs(
    agent: Agent,
    params: AgentParams,
    view: ViewOrViews,
    first: First,
    state: RecurrentState,
) -> Outputs:
    """Return logits, values and the next state of one agent, or of `N` of them."""
    views = jnp.asarray(view if view.ndim == 4 else view[None])
    begins = jnp.broadcast_to(first, len(views))
    logits, value, state = agent.apply(params, views[None], begins[None], state)
    axes = (0,) if view.ndim == 4 else (0, 1)
    return logits.squeeze(axes), value.squeeze(axes), state


def _act(
    agent: Agent,
    params: AgentParams,
    view: ViewOrViews,
    first: First,
    state: RecurrentState,
    key: PRNGKeyArray,
) -> tuple[Int[Array, "*N"], RecurrentState]:
    """Return an action drawn for each agent, and the next state."""
    logits, _, state = _outputs(agent, params, view, first, state)
    return sample_actions(key, logits), state
