"""The agent: a policy and its value; in transfer a frozen policy stands beside it (`biased`)."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt8

from cbet_jax.config import NetworkSettings, TransferSettings
from cbet_jax.networks import policy_network
from cbet_jax.networks.policy_network import PolicyNetwork
from cbet_jax.types import ArrayTree, LSTMState, RecurrentState, Trajectory
from envs.types import World

SPACING = 40  # steps between a world's time-outs: the shortest time limit in `envs.names.NAMES`

type View = UInt8[Array, "N height width 3"]
type Views = UInt8[Array, "T N height width 3"]
type Prior = Float[Array, "times N actions"] | None  # the frozen part of the logits, if any
type Schedule = Callable[[Float[Array, ""]], Float[Array, ""]]  # frames played -> weight


class AgentParams(NamedTuple):
    """The parameters of an agent."""

    learnt: ArrayTree  # changed by the optimizer
    fixed: ArrayTree = ()  # not learnt; may follow a schedule


class Outputs(NamedTuple):
    """What an agent gives for `T` steps of `N` agents."""

    logits: Float[Array, "T N actions"]
    value: Float[Array, "T N *heads"]
    state: RecurrentState  # after the last step
    prior: Prior = None


class Apply(Protocol):
    """Plays `T` steps of `N` agents."""

    def __call__(
        self,
        params: "AgentParams",
        view: Views,
        first: Bool[Array, "T N"],
        state: RecurrentState,
        prior: Prior = None,
        /,
    ) -> Outputs:
        """Return the outputs; `prior` is the frozen part of the logits, if it is known."""


class Agent(NamedTuple):
    """A policy and its value.

    `apply` plays `T` steps of `N` agents. Where `first` is true, the state is zeroed before the
    step. Learning hands it the frozen part of the logits that acting has computed, which may lack
    the last steps: it then gives logits of as many steps.
    """

    init: Callable[[PRNGKeyArray], AgentParams]
    initial_state: Callable[[int], RecurrentState]  # number of agents -> state before a first view
    apply: Apply
    #: fixed, frames played -> fixed
    schedule: Callable[[ArrayTree, Float[Array, ""]], ArrayTree] = lambda fixed, frames: fixed
    #: makes many calls of `apply` faster
    precompute: Callable[[AgentParams, View], AgentParams] = lambda params, view: params


class Bias(NamedTuple):
    """The frozen policy that biases another one, or that it is kept near."""

    policy: AgentParams  # of f_i
    alpha: Float[Array, ""]  # the current weight of these logits


class BiasedState(NamedTuple):
    """The recurrent states of the two policies of a biased one."""

    task: RecurrentState
    bias: RecurrentState


def make_agent(
    settings: NetworkSettings,
    transfer: TransferSettings | None,
    num_actions: int,
    view_shape: tuple[int, int, int],
) -> Agent:
    """Return the agent of a run.

    Args:
        settings: the network that learns.
        transfer: the frozen policy, which may be a biased one itself, that biases it, or a copy of
            which learns on near it (None: neither).
        num_actions: actions to choose among.
        view_shape: height, width and channels of a view.
    """
    agent = network_agent(settings, num_actions, view_shape)
    if transfer is None:
        return agent
    bias = make_agent(transfer.network, transfer.transfer, num_actions, view_shape)
    if transfer.fine_tune:
        return biased(bias, bias, linear_decay(1.0, None), added=False)
    return biased(agent, bias, linear_decay(transfer.alpha, transfer.alpha_frames))


def world_agent(
    settings: NetworkSettings, transfer: TransferSettings | None, world: World[Any]
) -> Agent:
    """Return the agent of a run (`make_agent`) for its worlds."""
    return make_agent(settings, transfer, world.num_actions, world.policy_view_shape)


def network_agent(
    settings: NetworkSettings, num_actions: int, view_shape: tuple[int, int, int]
) -> Agent:
    """Return the agent of one network, all of it learnt; arguments as of `make_agent`."""
    network = PolicyNetwork(settings, num_actions)

    def init(key: PRNGKeyArray) -> AgentParams:
        return AgentParams(policy_network.init_params(network, key, view_shape))

    def precompute(params: AgentParams, view: View) -> AgentParams:
        return params._replace(learnt=policy_network.precompute(network, params.learnt, view))

    def apply(
        params: AgentParams, view: Views, first: Array, state: LSTMState, prior: Prior = None
    ) -> Outputs:
        return Outputs(*policy_network.apply(network, params.learnt, view, first, state))

    initial_state = partial(policy_network.initial_state, settings)
    return Agent(init, initial_state, apply, precompute=precompute)


def biased(task: Agent, bias: Agent, alpha: Schedule, *, added: bool = True) -> Agent:
    """Return the agent whose policy is softmax(f_e + alpha f_i) (paper, section 3.3).

    f_e and the value belong to `task`, f_i to `bias`. Both see the same views, each with its
    own recurrent state. Only `task` learns. If the frozen logits are not `added`, the policy is
    softmax(f_e), and they are only its prior: a copy of a policy, fine-tuned near where it began.
    If that policy has a bias of its own, the copy keeps it.
    """

    def init(key: PRNGKeyArray) -> AgentParams:
        task_key, bias_key = jax.random.split(key)
        fixed = Bias(bias.init(bias_key), alpha(jnp.zeros(())))
        return AgentParams(task.init(task_key).learnt, fixed)

    def initial_state(agents: int) -> BiasedState:
        return BiasedState(task.initial_state(agents), bias.initial_state(agents))

    def schedule(fixed: Bias, frames: Float[Array, ""]) -> Bias:
        return fixed._replace(alpha=alpha(frames))

    def own(params: AgentParams) -> AgentParams:
        return AgentParams(params.learnt, () if added else params.fixed.policy.fixed)

    def precompute(params: AgentParams, view: View) -> AgentParams:
        frozen = bias.precompute(params.fixed.policy, view)
        learnt = task.precompute(own(params), view).learnt
        return AgentParams(learnt, params.fixed._replace(policy=frozen))

    def apply(
        params: AgentParams, view: Views, first: Array, state: BiasedState, prior: Prior = None
    ) -> Outputs:
        after = state.bias
        if prior is None:
            frozen = bias.apply(params.fixed.policy, view, first, state.bias)
            prior, after = params.fixed.alpha * frozen.logits, frozen.state
        prior = jax.lax.stop_gradient(prior)
        played = task.apply(own(params), view, first, state.task)
        logits = played.logits[: len(prior)] + (prior if added else 0)
        return Outputs(logits, played.value, BiasedState(played.state, after), prior)

    return Agent(init, initial_state, apply, schedule, precompute)


def apply_with_final_views(
    agent: Agent, params: AgentParams, batch: Trajectory
) -> tuple[Outputs, Float[Array, "T N *heads"]]:
    """Return the outputs for all views, and for each time-out the value of its final view.

    Each is shown to the agent between the views that it acted on, with the old episode's recurrent
    state, which is then zeroed as always. So a sequence becomes longer by a step for each `SPACING`
    steps. If it has more time-outs, the later ones get the value of the view before.
    """
    steps = batch.steps
    length, number = steps.truncated.shape
    room, so_far = -(-length // SPACING), jnp.cumsum(steps.truncated, axis=0)
    shown, time = steps.truncated & (so_far <= room), jnp.arange(length + 1)[:, None]
    place = time + jnp.pad(jnp.minimum(so_far, room), ((1, 0), (0, 0)))  # of each view
    moments = jnp.where(shown, 2 * time[:-1] + 1, 2 * length + 1)  # the others go behind all views
    moments = jnp.concatenate([jnp.broadcast_to(2 * time, (length + 1, number)), moments])
    order = jnp.argsort(moments, axis=0)[: length + 1 + room]

    def rows(leaf: Array, times: Int[Array, "times N"]) -> Array:
        return leaf[times, jnp.arange(number)]

    outputs = agent.apply(
        params,
        rows(jnp.concatenate([batch.view, batch.reached]), order),
        rows(jnp.concatenate([batch.first, jnp.zeros_like(shown)]), order),
        batch.initial_state,
        None if steps.prior is None else rows(steps.prior, jnp.minimum(order, length - 1)),
    )
    value, final = rows(outputs.value, place), rows(outputs.value, place[:-1] + 1)
    shown = shown.reshape(*shown.shape, *[1] * (value.ndim - 2))
    outputs = outputs._replace(logits=rows(outputs.logits, place), value=value)
    return outputs, jnp.where(shown, final, value[:-1])


def linear_decay(start: float, frames: int | None) -> Schedule:
    """Return a weight that decays linearly from `start` to 0 over `frames` (None: constant)."""
    if frames is None:
        return lambda played: jnp.asarray(start, jnp.float32)
    return lambda played: start * jnp.maximum(1.0 - played / float(frames), 0.0)


def uniform(num_actions: int) -> Agent:
    """Return the agent that draws actions uniformly and learns nothing."""

    def apply(
        params: AgentParams, view: Views, first: Array, state: RecurrentState, prior: Prior = None
    ) -> Outputs:
        return Outputs(jnp.zeros((*first.shape, num_actions)), jnp.zeros(first.shape), state)

    return Agent(lambda key: AgentParams(()), lambda agents: (), apply)
