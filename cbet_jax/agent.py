"""Who acts and learns: a policy and its value, as a record of pure functions."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray, UInt8

from cbet_jax.config import NetworkSettings, TransferSettings
from cbet_jax.networks import policy_network
from cbet_jax.networks.policy_network import PolicyNetwork
from cbet_jax.types import LSTMState

Recurrent = Any  # recurrent state, arrays [layers, N, units]
Views = UInt8[Array, "T N height width 3"]
Outputs = tuple[Float[Array, "T N actions"], Float[Array, "T N"], Recurrent]
Schedule = Callable[[Float[Array, ""]], Float[Array, ""]]  # of the frames played so far


class AgentParams(NamedTuple):
    """What an agent computes with."""

    learnt: Any  # an optimizer steps it
    fixed: Any = ()  # nothing is learnt in it


class Agent(NamedTuple):
    """A policy and its value.

    `run` returns the logits and the values of `T` steps of `N` agents, and the recurrent
    state after the last of them; where `first` is true, that state is zeroed before the step.
    """

    init: Callable[[PRNGKeyArray], AgentParams]
    begin: Callable[[int], Recurrent]  # of N agents that have seen nothing
    at: Callable[[Any, Float[Array, ""]], Any]  # what is fixed, after so many frames
    fold: Callable[[AgentParams, UInt8[Array, "N height width 3"]], AgentParams]  # to act faster
    run: Callable[[AgentParams, Views, Bool[Array, "T N"], Recurrent], Outputs]


class Bias(NamedTuple):
    """What biases a policy."""

    policy: Any  # f_i: parameters of the network whose logits are added
    alpha: Float[Array, ""]  # the weight they have now


class BiasedState(NamedTuple):
    """The recurrent states of two networks that see the same."""

    task: LSTMState
    bias: LSTMState


def make_agent(
    settings: NetworkSettings,
    transfer: TransferSettings | None,
    num_actions: int,
    view_shape: tuple[int, int, int],
) -> Agent:
    """Returns the agent of a run.

    Args:
        settings: of the network that learns.
        transfer: what biases its policy, None for nothing.
        num_actions: that it chooses among.
        view_shape: of what it sees.
    """
    agent = network_agent(settings, num_actions, view_shape)
    if transfer is None:
        return agent
    bias = network_agent(transfer.network, num_actions, view_shape)
    return biased(agent, bias, decay(transfer.alpha, transfer.alpha_frames))


def network_agent(
    settings: NetworkSettings, num_actions: int, view_shape: tuple[int, int, int]
) -> Agent:
    """Returns the agent that is one network, all of it learnt."""
    network = PolicyNetwork(settings, num_actions)

    def run(params: AgentParams, view: Views, first: Array, state: Recurrent) -> Outputs:
        return policy_network.run(network, params.learnt, view, first, state)

    return Agent(
        init=lambda key: AgentParams(policy_network.init_params(network, key, view_shape)),
        begin=lambda agents: policy_network.zero_state(settings, agents),
        at=_unchanged,
        fold=lambda params, view: params._replace(
            learnt=policy_network.fold(network, params.learnt, view)
        ),
        run=run,
    )


def biased(task: Agent, bias: Agent, alpha: Schedule) -> Agent:
    """Returns the agent whose policy is softmax(f_e + alpha f_i) (paper, section 3.3).

    f_e and the value are `task`'s, f_i is the policy of `bias`. Both see the same views, each
    with its own recurrent state; only `task` is learnt.
    """

    def init(key: PRNGKeyArray) -> AgentParams:
        task_key, bias_key = jax.random.split(key)
        return AgentParams(
            task.init(task_key).learnt, Bias(bias.init(bias_key).learnt, alpha(jnp.zeros(())))
        )

    def fold(params: AgentParams, view: UInt8[Array, "N height width 3"]) -> AgentParams:
        frozen = bias.fold(AgentParams(params.fixed.policy), view).learnt
        learnt = task.fold(AgentParams(params.learnt), view).learnt
        return AgentParams(learnt, params.fixed._replace(policy=frozen))

    def run(params: AgentParams, view: Views, first: Array, state: BiasedState) -> Outputs:
        frozen = AgentParams(params.fixed.policy)
        bias_logits, _, bias_state = jax.lax.stop_gradient(
            bias.run(frozen, view, first, state.bias)
        )
        logits, value, task_state = task.run(AgentParams(params.learnt), view, first, state.task)
        logits = logits + params.fixed.alpha * bias_logits
        return logits, value, BiasedState(task_state, bias_state)

    return Agent(
        init=init,
        begin=lambda agents: BiasedState(task.begin(agents), bias.begin(agents)),
        at=lambda fixed, frames: fixed._replace(alpha=alpha(frames)),
        fold=fold,
        run=run,
    )


def decay(start: float, frames: int | None) -> Schedule:
    """Returns the weight that falls linearly from `start` to 0 (None: that stays)."""
    if frames is None:
        return lambda _: jnp.asarray(start, jnp.float32)
    return lambda played: start * jnp.maximum(1.0 - played / frames, 0.0)


def uniform(num_actions: int) -> Agent:
    """Returns the agent that draws every action with the same chance, and learns nothing."""

    def run(params: AgentParams, view: Views, first: Array, state: Recurrent) -> Outputs:
        return jnp.zeros((*first.shape, num_actions)), jnp.zeros(first.shape), state

    return Agent(
        init=lambda key: AgentParams(()),
        begin=lambda agents: (),
        at=_unchanged,
        fold=lambda params, view: params,
        run=run,
    )


def _unchanged(fixed: Any, frames: Float[Array, ""]) -> Any:
    return fixed
