"""V-trace targets (Espeholt et al., 2018, equation 1 and section 4.2), for one sequence."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

STEPS_A_TURN = 10  # steps in a turn of the loop on a GPU


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
) -> VTrace:
    """Compute V-trace targets with rho-bar = c-bar = 1 and policy-gradient rho clipped at 1.

    Args:
        value_tm1: V(x_s) of the views acted on.
        value_t: V(x_{s+1}) of the views that followed.
        reward_t: r_s of the actions.
        discount_t: gamma, or 0 where nothing of value follows.
        log_rho_tm1: log pi(a | x) - log mu(a | x), the learner's policy over the actor's.

    Returns:
        The value targets v_s and the advantages of the policy gradient.
    """
    rho = jnp.minimum(jnp.exp(log_rho_tm1), 1.0)  # both rho and c, since both bars are 1
    temporal_difference = rho * (reward_t + discount_t * value_t - value_tm1)

    correction = _accumulate(temporal_difference, discount_t * rho)
    value_target = value_tm1 + correction  # v_s
    next_target = jnp.concatenate([value_target[1:], value_t[-1:]])
    advantage = rho * (reward_t + discount_t * next_target - value_tm1)
    return jax.lax.stop_gradient(VTrace(value_target, advantage))


def _accumulate(difference: Float[Array, " T"], weight: Float[Array, " T"]) -> Float[Array, " T"]:
    """Return the sums c_s = difference_s + weight_s c_{s+1}.

    On a GPU a turn of the loop takes several steps: it starts a fifth fewer kernels in learning.
    """
    take_one, take_several = partial(_sums, unroll=1), partial(_sums, unroll=STEPS_A_TURN)
    return jax.lax.platform_dependent(difference, weight, cpu=take_one, default=take_several)


def _sums(
    difference: Float[Array, " T"], weight: Float[Array, " T"], unroll: int
) -> Float[Array, " T"]:
    def add(correction: Array, step: tuple[Array, Array]) -> tuple[Array, Array]:
        difference, weight = step
        correction = difference + weight * correction
        return correction, correction

    start = jnp.zeros_like(difference[0])
    return jax.lax.scan(add, start, (difference, weight), reverse=True, unroll=unroll)[1]
