"""V-trace targets (Espeholt et al., 2018, equations 1 and 2), for one sequence."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


class VTrace(NamedTuple):
    """Targets of one sequence of `T` steps. No gradient flows through them."""

    value_target: Float[Array, " T"]  # v_s
    advantage: Float[Array, " T"]  # rho_s (r_s + gamma_s v_{s+1} - V(x_s))


def vtrace(
    value_tm1: Float[Array, " T"],
    value_t: Float[Array, " T"],
    reward_t: Float[Array, " T"],
    discount_t: Float[Array, " T"],
    log_rho_tm1: Float[Array, " T"],
    platform: str = "cpu",
) -> VTrace:
    """Compute V-trace targets with rho-bar = c-bar = 1 and policy-gradient rho clipped at 1.

    Args:
        value_tm1: V(x_s), of the views acted on.
        value_t: V(x_{s+1}), of the views that followed.
        reward_t: of the actions.
        discount_t: gamma, or 0 where nothing of value follows.
        log_rho_tm1: log pi(a | x) - log mu(a | x), the learner's policy over the actor's.
        platform: that the program is written for.

    Returns:
        The value targets v_s and the advantages of the policy gradient.
    """
    rho = jnp.minimum(jnp.exp(log_rho_tm1), 1.0)  # both rho and c, since both bars are 1
    temporal_difference = rho * (reward_t + discount_t * value_t - value_tm1)

    accumulate = _accumulate if platform == "cpu" else _accumulate_in_parallel
    correction = accumulate(temporal_difference, discount_t * rho)
    value_target = value_tm1 + correction  # v_s
    next_target = jnp.concatenate([value_target[1:], value_t[-1:]])
    advantage = rho * (reward_t + discount_t * next_target - value_tm1)
    return jax.lax.stop_gradient(VTrace(value_target, advantage))


def _accumulate(difference: Float[Array, " T"], weight: Float[Array, " T"]) -> Float[Array, " T"]:
    """Return the sums c_s = difference_s + weight_s c_{s+1}, step by step."""

    def add(correction: Array, step: tuple[Array, Array]) -> tuple[Array, Array]:
        difference, weight = step
        correction = difference + weight * correction
        return correction, correction

    start = jnp.zeros_like(difference[0])
    return jax.lax.scan(add, start, (difference, weight), reverse=True)[1]


def _accumulate_in_parallel(
    difference: Float[Array, " T"], weight: Float[Array, " T"]
) -> Float[Array, " T"]:
    """Return what `_accumulate` does, in few kernels of a GPU instead of a few a step.

    The sum from any step on is a linear function of the correction that follows it, and linear
    functions can be combined in pairs, in pairs of pairs, and so on (Blelloch, 1990).
    """

    def combine(later: tuple[Array, Array], sooner: tuple[Array, Array]) -> tuple[Array, Array]:
        return sooner[0] + sooner[1] * later[0], sooner[1] * later[1]

    return jax.lax.associative_scan(combine, (difference, weight), reverse=True)[0]
