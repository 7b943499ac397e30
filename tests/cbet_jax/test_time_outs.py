"""What follows a time-out, beside plain numpy that plays step by step."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.agent import SPACING, apply_with_final_views, network_agent
from cbet_jax.config import LossSettings, NetworkSettings, TrainSettings
from cbet_jax.learner import batch_loss, by_name
from cbet_jax.losses import cut_at_time_outs
from tests.support.moments import trajectory, views

ACTIONS, DISCOUNT, ACTORS = 2, 0.5, 2
TIMES_OUT = {  # the first actor's time-outs in a sequence; the second one has none
    "never": (3, []),
    "at once": (3, [0]),
    "last": (3, [2]),
    "in the middle": (5, [2]),
    "two of them": (SPACING + 1, [0, SPACING]),
    "one more than there is room for": (4, [1, 2]),
}


@cache
def made(heads):
    """An agent, and its parameters."""
    agent = network_agent(NetworkSettings(2, 2, 1, 4, 1, 4, value_heads=heads), ACTIONS, (7, 7, 3))
    return agent._replace(apply=jax.jit(agent.apply)), jax.jit(agent.init)(jax.random.key(0))


def played(length, times, heads=1, terminated=()):
    """An agent, its parameters, and a sequence in which it has acted, with rewards of 1."""
    agent, params = made(heads)
    random = np.random.default_rng(length)
    batch = trajectory(random.integers(255, size=(length + 1, ACTORS)), np.zeros((length, ACTORS)))
    truncated, ended = (np.zeros((length, ACTORS), bool) for _ in range(2))
    truncated[times, 0], ended[list(terminated), 1] = True, True
    final = views(random.integers(255, size=(length, ACTORS)))
    going_on = ~(truncated | ended)[..., None, None, None]
    steps = batch.steps._replace(
        logits=jnp.asarray(random.normal(size=(length, ACTORS, ACTIONS)), jnp.float32),
        truncated=jnp.asarray(truncated),
        terminated=jnp.asarray(ended),
        final_view=jnp.where(going_on, batch.view[1:], final),
    )
    first = jnp.asarray(np.concatenate([np.zeros((1, ACTORS), bool), truncated | ended]))
    state = jax.tree.map(lambda leaf: leaf + 0.5, agent.initial_state(ACTORS))
    return agent, params, batch._replace(first=first, steps=steps, initial_state=state)


def step_by_step(agent, params, batch):
    """The logits and values of all views, and the values of final views in the old episode."""
    batch = jax.device_get(batch)  # whose slices numpy takes: nothing is compiled for them
    apply, state, seen, final = agent.apply, batch.initial_state, [], []
    for time, view in enumerate(batch.view):
        outputs = jax.device_get(apply(params, view[None], batch.first[time][None], state))
        state = outputs.state
        seen.append((outputs.logits[0], outputs.value[0]))
        if time < len(batch.steps.action):
            reached, no = batch.steps.final_view[time][None], np.zeros((1, ACTORS), bool)
            final.append(apply(params, reached, no, state).value[0])
    return (*(np.stack(each) for each in zip(*seen, strict=True)), np.stack(final))


CASES = [*((name, 1) for name in TIMES_OUT), ("two of them", 2)]  # and heads
apply_to_batch = jax.jit(apply_with_final_views, static_argnums=0)


@pytest.mark.parametrize(("name", "heads"), CASES)
def test_the_network_sees_each_final_view_in_its_own_episode(name, heads):
    length, times = TIMES_OUT[name]
    agent, params, batch = played(length, times, heads)
    logits, value, final = step_by_step(agent, params, batch)
    found, cut_off = apply_to_batch(agent, params, batch)
    np.testing.assert_allclose(found.logits, logits, atol=1e-5)
    np.testing.assert_allclose(found.value, value, atol=1e-5)
    for place, time in enumerate(times):
        known = place < 1 or name != "one more than there is room for"
        np.testing.assert_allclose(
            cut_off[time, 0], (final if known else value)[time, 0], atol=1e-5
        )
        assert np.abs(final[time, 0] - value[time, 0]).max() > 1e-3


@pytest.mark.parametrize("bootstrap", ["next", "before", "final"])
def test_targets_of_v_trace_follow_what_was_cut_off(bootstrap):
    """Two actors: one times out twice, the other one terminates, after which nothing follows."""
    length = SPACING + 2
    agent, params, batch = played(length, [3, SPACING + 1], terminated=[5])
    logits, value, final = step_by_step(agent, params, batch)
    truncated, terminated = np.asarray(batch.steps.truncated), np.asarray(batch.steps.terminated)
    after = {"next": value[1:], "before": value[:-1], "final": final}[bootstrap]
    log = lambda x: x - np.log(np.exp(x).sum(-1, keepdims=True))  # noqa: E731
    rho = np.minimum(np.exp((log(logits[:-1]) - log(np.asarray(batch.steps.logits)))[..., 0]), 1)
    target, loss = value[-1].copy(), 0.0
    for time in reversed(range(length)):
        # The trace goes on past a time-out only where the next episode's value follows it.
        over = truncated[time] & (bootstrap != "next")
        discount = DISCOUNT * ~terminated[time]
        follows = np.where(truncated[time], after[time], value[time + 1])
        error = rho[time] * (1.0 + discount * follows - value[time])
        trace = discount * rho[time] * (target - value[time + 1]) * ~over
        target = value[time] + error + trace
        loss += (0.5 * (target - value[time]) ** 2).mean()
    settings = TrainSettings(loss=LossSettings(DISCOUNT, bootstrap=bootstrap))
    rewards = by_name(jnp.ones((length, ACTORS)))
    found = jax.jit(lambda *inputs: batch_loss(*inputs, agent, settings))(params, batch, rewards)
    np.testing.assert_allclose(found.value, loss, rtol=1e-4)


def test_no_gradient_flows_through_the_value_after_a_time_out():
    one = jnp.ones((1, 1))
    cut = lambda value: cut_at_time_outs(one, one, value, one > 0)[0].sum()  # noqa: E731
    assert float(cut(one)) == 2
    assert float(jax.grad(cut)(one)[0, 0]) == 0
