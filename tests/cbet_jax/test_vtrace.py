"""V-trace against rlax and against a loop written from the paper."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.vtrace import vtrace

STEPS = 21


@pytest.fixture
def sequence():
    keys = jax.random.split(jax.random.key(0), 5)
    value = jax.random.normal(keys[0], (STEPS + 1,))
    reward = jax.random.normal(keys[1], (STEPS,))
    discount = 0.99 * jax.random.bernoulli(keys[2], 0.8, (STEPS,))
    log_rho = jax.random.normal(keys[3], (STEPS,))
    return value[:-1], value[1:], reward, discount, log_rho


def test_equal_to_rlax(sequence):
    rlax = pytest.importorskip("rlax")
    value_tm1, value_t, reward, discount, log_rho = sequence
    ours = vtrace(*sequence)
    theirs = rlax.vtrace_td_error_and_advantage(
        value_tm1, value_t, reward, discount, jnp.exp(log_rho)
    )
    np.testing.assert_allclose(ours.value_target, theirs.errors + value_tm1, atol=1e-5)
    np.testing.assert_allclose(ours.advantage, theirs.pg_advantage, atol=1e-5)


def test_equal_to_the_sum_of_the_paper(sequence):
    """v_s = V(x_s) + sum_t (prod gamma) (prod c_i) delta_t V (Espeholt et al., equation 1)."""
    value_tm1, value_t, reward, discount, log_rho = (np.asarray(x, np.float64) for x in sequence)
    rho = np.minimum(np.exp(log_rho), 1)
    delta = rho * (reward + discount * value_t - value_tm1)
    target = np.array(
        [
            value_tm1[s] + sum(np.prod((discount * rho)[s:t]) * delta[t] for t in range(s, STEPS))
            for s in range(STEPS)
        ]
    )
    next_target = np.append(target[1:], value_t[-1])
    advantage = rho * (reward + discount * next_target - value_tm1)
    ours = vtrace(*sequence)
    np.testing.assert_allclose(ours.value_target, target, atol=1e-5)
    np.testing.assert_allclose(ours.advantage, advantage, atol=1e-5)


def test_on_policy_targets_are_discounted_returns(sequence):
    value_tm1, value_t, reward, discount, _ = sequence
    returns, running = [], float(value_t[-1])
    for r, gamma in zip(reward[::-1], discount[::-1], strict=True):
        running = float(r) + float(gamma) * running
        returns.insert(0, running)
    ours = vtrace(value_tm1, value_t, reward, discount, jnp.zeros(STEPS))
    np.testing.assert_allclose(ours.value_target, returns, atol=1e-5)


def test_no_gradient_flows_through_the_targets(sequence):
    value_tm1, *rest = sequence
    gradient = jax.grad(lambda value: vtrace(value, *rest).value_target.sum())(value_tm1)
    np.testing.assert_array_equal(gradient, 0)
