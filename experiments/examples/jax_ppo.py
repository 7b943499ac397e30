"""PPO with an intrinsic reward in JAX: `python -m experiments.examples.jax_ppo [FRAMES [WEIGHT]]`.

In the style of PureJaxRL: one compiled function plays and learns, and a time-out counts as an end,
without the value of what it cuts off. C-BET takes the lines with `bonus`; with a weight of 0, PPO
learns only from the task. In shapes, T counts the steps of a rollout, N the environments.

In MultiRoom-N4-S5, after 983,000 frames, 99.6, 99.7 and 100.0 % of the episodes of seeds 0, 1 and 2
end in success (94, 85 and 88 % after 492,000); without C-BET, 0.0 % of all three seeds' episodes.
"""

import sys
from functools import partial
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax import Array

import cbet_jax
from cbet_jax import Bonus, Seen, TrainSettings
from envs import Step, World, make_world

WORLD, FRAMES, WEIGHT = "MultiRoom-N4-S5", 1_000_000, 0.005
ENVS, STEPS, EPOCHS, MINIBATCHES = 128, 64, 4, 8
LEARNING_RATE, DISCOUNT, LAMBDA, CLIP = 5e-4, 0.99, 0.95, 0.2
VALUE_WEIGHT, ENTROPY_WEIGHT = 0.5, 0.01
ITERATIONS_A_LINE = 20


class Network(nn.Module):
    """Logits of the actions, and the value, of a view."""

    @nn.compact
    def __call__(self, view: Array) -> tuple[Array, Array]:
        """Return logits `[..., 7]` and values `[...]` of views `[..., 7, 7, 3]`."""
        x = jax.nn.one_hot(view, 11).reshape(*view.shape[:-3], -1)
        for _ in range(2):
            x = nn.relu(nn.Dense(128)(x))
        return nn.Dense(7, kernel_init=nn.initializers.orthogonal(0.01))(x), nn.Dense(1)(x)[..., 0]


NETWORK: Any = Network()
OPTIMIZER = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(LEARNING_RATE, eps=1e-5))


class Training(NamedTuple):
    """What one iteration leaves to the next."""

    params: Any
    optimizer: Any
    world: Any
    seen: Any  # the last step
    bonus: Any
    key: Array


class Steps(NamedTuple):
    """What is learnt from, arrays `[T, N, ...]`."""

    view: Array
    action: Array
    log_prob: Array
    value: Array
    reward: Array  # of the task and of the bonus
    done: Array


def observed(step: Step) -> Seen:
    """Return what the bonus sees: the view, and the panorama whose changes are counted."""
    return Seen(step.view, step.panorama)


def begin(world: World, bonus: Bonus, key: Array) -> Training:
    """Return the state before the first iteration."""
    network_key, world_key, bonus_key, key = jax.random.split(key, 4)
    state, step = world.init(world_key)
    params = NETWORK.init(network_key, step.view)
    seen = bonus.init(bonus_key, observed(step))
    return Training(params, OPTIMIZER.init(params), state, step, seen, key)


def act(world: World, bonus: Bonus, now: Training, _: None) -> tuple[Training, tuple[Steps, Step]]:
    """Take one step in every environment."""
    key, action_key, bonus_key = jax.random.split(now.key, 3)
    logits, value = NETWORK.apply(now.params, now.seen.view)
    action = jax.random.categorical(action_key, logits)
    log_prob = log_probability(logits, action)
    state, step = world.step(now.world, action)
    done = step.terminated | step.truncated
    before, after = observed(now.seen), observed(step)
    counts, extra = bonus.step(now.bonus, bonus_key, before, action, after, done)
    steps = Steps(now.seen.view, action, log_prob, value, step.reward + extra, done)
    return now._replace(world=state, seen=step, bonus=counts, key=key), (steps, step)


def log_probability(logits: Array, action: Array) -> Array:
    """Return the log-probabilities of actions."""
    return jnp.take_along_axis(jax.nn.log_softmax(logits), action[..., None], -1)[..., 0]


def advantages(steps: Steps, last_value: Array) -> Array:
    """Return generalized advantage estimates `[T, N]` (Schulman et al., 2016)."""

    def add(later: tuple[Array, Array], step: Steps) -> tuple[tuple[Array, Array], Array]:
        advantage, next_value = later
        going = DISCOUNT * (1.0 - step.done)
        advantage = step.reward + going * (next_value + LAMBDA * advantage) - step.value
        return (advantage, step.value), advantage

    return jax.lax.scan(add, (jnp.zeros_like(last_value), last_value), steps, reverse=True)[1]


def loss(params: Any, steps: Steps, advantage: Array, target: Array) -> Array:
    """Return PPO's loss of a minibatch."""
    logits, value = NETWORK.apply(params, steps.view)
    ratio = jnp.exp(log_probability(logits, steps.action) - steps.log_prob)
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    policy = jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * advantage)
    moved = steps.value + jnp.clip(value - steps.value, -CLIP, CLIP)
    error = jnp.maximum((value - target) ** 2, (moved - target) ** 2) / 2
    entropy = -(jax.nn.softmax(logits) * jax.nn.log_softmax(logits)).sum(-1)
    return (VALUE_WEIGHT * error - policy - ENTROPY_WEIGHT * entropy).mean()


def learn(now: Training, last_view: Array, steps: Steps, key: Array) -> Training:
    """Learn from a rollout, several times."""
    advantage = advantages(steps, NETWORK.apply(now.params, last_view)[1])
    batch = jax.tree.map(
        lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), (steps, advantage, advantage + steps.value)
    )

    def update(learner: tuple[Any, Any], minibatch: Any) -> tuple[tuple[Any, Any], None]:
        params, optimizer = learner
        gradient = jax.grad(loss)(params, *minibatch)
        updates, optimizer = OPTIMIZER.update(gradient, optimizer, params)
        return (optax.apply_updates(params, updates), optimizer), None

    def epoch(learner: tuple[Any, Any], key: Array) -> tuple[tuple[Any, Any], None]:
        order = jax.random.permutation(key, advantage.size).reshape(MINIBATCHES, -1)
        return jax.lax.scan(update, learner, jax.tree.map(lambda leaf: leaf[order], batch))

    learner, _ = jax.lax.scan(epoch, (now.params, now.optimizer), jax.random.split(key, EPOCHS))
    return now._replace(params=learner[0], optimizer=learner[1])


@partial(jax.jit, static_argnums=(0, 1), donate_argnums=2)
def iterate(world: World, bonus: Bonus, now: Training) -> tuple[Training, tuple[Array, Array]]:
    """Play a rollout and learn from it; return how many episodes ended, and how many in success."""
    now = now._replace(world=world.refresh(now.world))  # new levels
    now, (steps, seen) = jax.lax.scan(partial(act, world, bonus), now, None, STEPS)
    key, learn_key = jax.random.split(now.key)
    now = learn(now._replace(key=key), now.seen.view, steps, learn_key)
    return now, (steps.done.sum(), seen.success.sum())


def main(
    frames: float = FRAMES, weight: float = WEIGHT, seed: float = 0, *, num_envs: int = ENVS
) -> list[float]:
    """Train; print and return the share of episodes that end in success."""
    world = make_world([WORLD], num_envs, explore=False)
    settings = TrainSettings(intrinsic_coefficient=weight)
    bonus = cbet_jax.bonus("cbet", num_envs, world.view_shape, world.num_actions, settings=settings)
    now = jax.jit(partial(begin, world, bonus))(jax.random.key(int(seed)))
    return train(partial(iterate, world, bonus), now, frames, num_envs, ITERATIONS_A_LINE)


def train(play: Any, now: Training, frames: float, num_envs: int, iterations: int) -> list[float]:
    """Iterate; print and return the share of episodes that end in success, line by line."""
    line_frames, curve = iterations * num_envs * STEPS, []
    for line in range(1, max(1, int(frames) // line_frames) + 1):
        ended = solved = 0
        for _ in range(iterations):
            now, (ends, successes) = play(now)
            ended, solved = ended + int(ends), solved + int(successes)
        curve.append(solved / max(ended, 1))
        print(f"{line * line_frames:,} frames: {curve[-1]:.1%} of episodes solved", flush=True)
    return curve


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
