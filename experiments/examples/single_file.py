"""C-BET in one file: `python -m experiments.examples.single_file [FRAMES [SEED]]`.

Pre-training as in "Interesting Object, Curious Agent: Learning Task-Agnostic Exploration" (Parisi
et al., 2021), with the settings of the `laptop` preset. Read it from top to bottom. Only the worlds
come from this package. From the same key, `cbet_jax` computes the same numbers (a test compares).
In shapes, T is the number of steps in a sequence, N that of actors, each in its own world.
"""

import sys
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax
from jax import Array

from envs import Step, World, make_world

# --- Settings (paper, appendix "Hyperparameter Details"; sizes of the `laptop` preset) ------------

ENVIRONMENTS = ("MultiRoom-N4-S5", "KeyCorridorS3R3", "BlockedUnlockPickup")  # "MultiEnv"
FRAMES = 3_000_000  # the preset plays 24 million
ITERATIONS_A_LINE = 30  # iterations in each line of printed progress
ACTORS, UNROLL, BATCH = 128, 50, 32  # N; T, steps in a sequence; sequences in an update
FILTERS, UNITS, ACTIONS = 16, 64, 7  # convolutions' filters; units of other layers; actions
COEFFICIENT = 0.005  # weight of the intrinsic reward
RESET_PROBABILITY = 0.001  # p of each count table, at each step
BUCKETS, SLOTS = 2048, 8  # a count table's buckets, and slots in each
DISCOUNT, VALUE_WEIGHT, ENTROPY_WEIGHT = 0.99, 0.5, 0.0005
LEARNING_RATE, DECAY_UPDATES = 1e-3, 62_500  # the rate falls to 0 over 100 million frames
RMS_DECAY, RMS_EPSILON, MAX_GRADIENT_NORM = 0.99, 1e-5, 40.0

# --- The network: convolutions, dense layers, an LSTM, a policy and a value -----------------------

type LSTMState = tuple[Array, Array]  # hidden and cell, float32[N, units]
HIDDEN, OUTPUT = nn.initializers.orthogonal(np.sqrt(2)), nn.initializers.orthogonal(1.0)


def elu(x: Array) -> Array:
    """Return x where x > 0, else exp(x) - 1: as `nn.elu`, but with half its gradient at 0."""
    return jnp.where(x > 0, x, jnp.exp(jnp.minimum(x, 0.0)) - 1.0)


class LSTM(nn.Module):
    """An LSTM layer as in PyTorch: two biases, all parameters uniform in +-1 / sqrt(units)."""

    @nn.compact
    def __call__(self, x: Array, first: Array, state: LSTMState) -> tuple[Array, LSTMState]:
        """Return the hidden state of each step, and the last state; `first` zeroes the state."""
        uniform = partial(jax.random.uniform, minval=-(UNITS**-0.5), maxval=UNITS**-0.5)
        input_weights = self.param("input_weights", uniform, (x.shape[-1], 4 * UNITS))
        hidden_weights = self.param("hidden_weights", uniform, (UNITS, 4 * UNITS))
        input_bias = self.param("input_bias", uniform, (4 * UNITS,))
        hidden_bias = self.param("hidden_bias", uniform, (4 * UNITS,))

        def step(state: LSTMState, inputs: tuple[Array, Array]) -> tuple[LSTMState, Array]:
            projected, first = inputs
            hidden, cell = (jnp.where(first[:, None], 0.0, part) for part in state)
            i, f, g, o = jnp.split(projected + hidden @ hidden_weights, 4, axis=-1)
            cell = nn.sigmoid(f) * cell + nn.sigmoid(i) * jnp.tanh(g)
            hidden = nn.sigmoid(o) * jnp.tanh(cell)
            return (hidden, cell), hidden

        projected = x @ input_weights + (input_bias + hidden_bias)
        state, hidden = jax.lax.scan(step, state, (projected, first))
        return hidden, state


class Network(nn.Module):
    """The policy and its value."""

    @nn.compact
    def __call__(self, view: Array, first: Array, state: LSTMState) -> Any:
        """Return logits and values of views uint8[T, N, 7, 7, 3], and the LSTM's last state."""
        x = view.reshape(-1, *view.shape[2:]).astype(jnp.float32)
        for layer in range(3):
            name = f"convolution_{layer}"
            x = elu(nn.Conv(FILTERS, (3, 3), 2, 1, kernel_init=HIDDEN, name=name)(x))  # stride 2
        x = x.reshape(len(x), -1)
        for layer in range(2):
            x = nn.relu(nn.Dense(UNITS, kernel_init=HIDDEN, name=f"dense_{layer}")(x))
        x, state = LSTM(name="lstm_0")(x.reshape(*first.shape, -1), first, state)
        logits = nn.Dense(ACTIONS, kernel_init=OUTPUT, name="policy")(x)
        value = nn.Dense(1, kernel_init=OUTPUT, name="value")(x)
        return logits, value[..., 0], state


NETWORK: Any = Network()

# --- Counts: a hash table for each actor ----------------------------------------------------------

MULTIPLIERS = np.random.default_rng(0).integers(2**32, size=(196, 2), dtype=np.uint32) | 1


class Counts(NamedTuple):
    """Visit counts of all actors. A reset begins a new generation; older slots are free."""

    slots: Array  # uint32[N, buckets, slots, 3]: fingerprint, generation, count
    generation: Array  # uint32[N]


def no_counts(buckets: int) -> Counts:
    """Return empty tables; the number of buckets is a power of two."""
    return Counts(jnp.zeros((ACTORS, buckets, SLOTS, 3), jnp.uint32), jnp.ones(ACTORS, jnp.uint32))


def visit(counts: Counts, keys: Array) -> tuple[Counts, Array]:
    """Count a visit of each actor's key, uint32[N, 2]; return N(key), this visit included."""
    actors, buckets = jnp.arange(ACTORS), counts.slots.shape[1]
    bucket = keys[:, 0] >> (33 - buckets.bit_length())
    fingerprint, generation, count = jnp.moveaxis(counts.slots[actors, bucket], -1, 0)  # [N, slots]
    used = generation == counts.generation[:, None]
    found = used & (fingerprint == keys[:, 1:])
    slot = jnp.argmax(2 * found + ~used, axis=1)  # the key's slot, else a free one, else the first
    visits = jnp.where(found, count, 0).sum(axis=1, dtype=jnp.uint32) + 1
    entry = jnp.stack([keys[:, 1], counts.generation, visits], axis=-1)
    return counts._replace(slots=counts.slots.at[actors, bucket, slot].set(entry)), visits


def reset(counts: Counts, mask: Array) -> Counts:
    """Empty the tables of the actors in the mask, bool[N]."""
    return counts._replace(generation=counts.generation + mask)


def hashed(numbers: Array) -> Array:
    """Return keys uint32[N, 2] of integers [N, ...]: sums of random multiples, modulo 2^32."""
    numbers = numbers.reshape(ACTORS, -1, 1).astype(jnp.uint32)
    return (numbers * MULTIPLIERS[: numbers.shape[1]]).sum(axis=1, dtype=jnp.uint32)


# --- Acting ---------------------------------------------------------------------------------------


class Actors(NamedTuple):
    """The state of all actors."""

    world: Any
    step: Step  # the last step; the next action is chosen in its view
    first: Array  # bool[N]: whether the LSTM's state is zeroed before it sees this view
    lstm: LSTMState
    panorama: Array  # uint32[N, 2]: hash of the last panorama
    states: Counts
    changes: Counts
    interactions: Counts  # interactions of the current episode, as a measure of exploration
    unique: Array  # int32[N]: unique interactions of the episode so far


class Steps(NamedTuple):
    """Data to learn from, arrays [T, N, ...]."""

    view: Array  # [T + 1, N, ...]: the last action led to the last view
    first: Array  # [T + 1, N]
    action: Array
    logits: Array  # logits of the policy that acted
    reward: Array  # the intrinsic reward
    terminated: Array


def random_resets(actors: Actors, key: Array) -> Actors:
    """Reset each actor's counts of states, and of changes, with probability p (section 3.2)."""
    mask = jax.random.bernoulli(key, RESET_PROBABILITY, (2, ACTORS))
    states, changes = reset(actors.states, mask[0]), reset(actors.changes, mask[1])
    return actors._replace(states=states, changes=changes)


def count(actors: Actors, step: Step, key: Array) -> tuple[Actors, Array]:
    """Count each actor's state and change; return the reward 1 / (N(s') + N(c)) (equation 1)."""
    panorama = hashed(step.panorama)  # the views to all four sides
    states, of_state = visit(actors.states, hashed(step.view))  # section 3.1: a state is a view,
    changes, of_change = visit(actors.changes, panorama - actors.panorama)  # c a change of panorama
    actors = actors._replace(panorama=panorama, states=states, changes=changes)
    return random_resets(actors, key), 1 / (of_state + of_change)


def act(world: World, params: Any, actors: Actors, key: Array) -> Any:
    """Take one step in every world; return the actors, and the step with its ends."""
    action_key, reset_key = jax.random.split(key)
    view, first = actors.step.view, actors.first
    logits, _, lstm = NETWORK.apply(params, view[None], first[None], actors.lstm)
    action = jax.random.categorical(action_key, logits[0])
    state, step = world.step(actors.world, action)
    actors, reward = count(actors, step, reset_key)
    ended = step.terminated | step.truncated
    interactions, times = visit(actors.interactions, step.interaction)
    unique = actors.unique + ((times == 1) & step.interaction.any(axis=1))
    steps = Steps(view, first, action, logits[0], reward, step.terminated)
    first = ended | step.success  # success ends no episode in pre-training, but resets the LSTM
    actors = actors._replace(world=state, step=step, first=first, lstm=lstm)
    actors = actors._replace(interactions=reset(interactions, ended), unique=unique * ~ended)
    return actors, (steps, ended, unique)


# --- Learning -------------------------------------------------------------------------------------


def vtrace(value: Array, reward: Array, discount: Array, rho: Array) -> tuple[Array, Array]:
    """Return targets and advantages [T, N] of values [T + 1, N] (Espeholt et al., 2018, eq. 1)."""

    def add(correction: Array, step: tuple[Array, Array]) -> tuple[Array, Array]:
        difference, weight = step
        correction = difference + weight * correction
        return correction, correction

    difference = rho * (reward + discount * value[1:] - value[:-1])
    inputs = difference, discount * rho
    target = value[:-1] + jax.lax.scan(add, jnp.zeros_like(value[0]), inputs, reverse=True)[1]
    next_target = jnp.concatenate([target[1:], value[-1:]])
    return target, rho * (reward + discount * next_target - value[:-1])


def loss(params: Any, batch: Steps, lstm: LSTMState) -> tuple[Array, dict[str, Array]]:
    """Return the actor-critic loss, summed over the steps and averaged over the sequences."""
    logits, value, _ = NETWORK.apply(params, batch.view, batch.first, lstm)
    log_policy, action = jax.nn.log_softmax(logits[:-1]), batch.action[..., None]
    log_pi = jnp.take_along_axis(log_policy, action, -1)[..., 0]
    log_mu = jnp.take_along_axis(jax.nn.log_softmax(batch.logits), action, -1)[..., 0]
    rho = jnp.minimum(jnp.exp(log_pi - log_mu), 1.0)
    reward = jnp.clip(COEFFICIENT * batch.reward, -1.0, 1.0)
    discount = DISCOUNT * (1.0 - batch.terminated)
    target, advantage = jax.lax.stop_gradient(vtrace(value, reward, discount, rho))
    policy = -(advantage * log_pi).sum(axis=0).mean()
    error = 0.5 * ((target - value[:-1]) ** 2).sum(axis=0).mean()
    entropy = -(jnp.exp(log_policy) * log_policy).sum(axis=(0, 2)).mean()
    total = policy + VALUE_WEIGHT * error - ENTROPY_WEIGHT * entropy
    return total, {"policy_loss": policy, "value_loss": error, "entropy": entropy / UNROLL}


OPTIMIZER = optax.chain(  # RMSProp as in PyTorch: epsilon is added outside the root
    optax.clip_by_global_norm(MAX_GRADIENT_NORM),
    optax.scale_by_rms(RMS_DECAY, RMS_EPSILON, eps_in_sqrt=False),
    optax.scale_by_learning_rate(optax.linear_schedule(LEARNING_RATE, 0.0, DECAY_UPDATES)),
)

# --- The loop -------------------------------------------------------------------------------------


class Training(NamedTuple):
    """The state between iterations."""

    params: Any
    optimizer: Any
    actors: Actors
    key: Array


@partial(jax.jit, static_argnums=0)
def begin(world: World, key: Array) -> Training:
    """Return the state before the first iteration."""
    network_key, world_key, _, key = jax.random.split(key, 4)
    state, step = world.init(world_key)
    first, zeros = jnp.ones(ACTORS, bool), jnp.zeros((ACTORS, UNITS))
    params = NETWORK.init(network_key, step.view[None], first[None], (zeros, zeros))
    states, changes, interactions = map(no_counts, (BUCKETS, BUCKETS, 128))
    counts = hashed(step.panorama), states, changes, interactions, jnp.zeros(ACTORS, jnp.int32)
    actors = Actors(state, step, first, (zeros, zeros), *counts)
    return Training(params, OPTIMIZER.init(params), actors, key)


@partial(jax.jit, static_argnums=0, donate_argnums=1)
def iterate(world: World, training: Training) -> tuple[Training, dict[str, Array]]:
    """Play a sequence in every world, then learn from each sequence once, batch by batch."""
    key, play_key = jax.random.split(training.key)
    reset_key, act_key = jax.random.split(jax.random.split(play_key, 1)[0])
    actors = training.actors._replace(world=world.refresh(training.actors.world))  # new levels
    # As published, a sequence's first view counts twice, and resets are drawn once more.
    states, _ = visit(actors.states, hashed(actors.step.view))
    actors = random_resets(actors._replace(states=states), reset_key)
    play, keys = partial(act, world, training.params), jax.random.split(act_key, UNROLL)
    last, (steps, ended, unique) = jax.lax.scan(play, actors, keys)
    view = jnp.concatenate([steps.view, last.step.view[None]])  # T + 1: the last value bootstraps
    first = jnp.concatenate([steps.first, last.first[None]])
    steps = steps._replace(view=view, first=first)

    def update(learner: tuple[Any, Any], batch: tuple[Steps, LSTMState]) -> tuple[Any, Any]:
        params, optimizer = learner
        gradient, metrics = jax.grad(loss, has_aux=True)(params, *batch)
        updates, optimizer = OPTIMIZER.update(gradient, optimizer)
        return (optax.apply_updates(params, updates), optimizer), metrics

    def batches(x: Array) -> Array:  # [T, N, ...] -> [updates, T, batch, ...]
        return jnp.moveaxis(x.reshape(len(x), -1, BATCH, *x.shape[2:]), 1, 0)

    lstm = jax.tree.map(lambda x: x.reshape(-1, BATCH, UNITS), actors.lstm)
    learner = training.params, training.optimizer
    learner, metrics = jax.lax.scan(update, learner, (jax.tree.map(batches, steps), lstm))
    interactions = jnp.where(ended, unique, 0).sum() / ended.sum()  # in episodes that ended
    metrics |= {"intrinsic_reward": steps.reward, "interactions": interactions}
    return Training(*learner, last, key), jax.tree.map(jnp.mean, metrics)


def main(frames: int = FRAMES, seed: int = 0) -> list[float]:
    """Train; print and draw how many unique interactions an episode has."""
    world = make_world(ENVIRONMENTS, ACTORS, explore=True, staggered=True)
    training, began = begin(world, jax.random.key(seed)), time.monotonic()
    line_frames, curve = ITERATIONS_A_LINE * ACTORS * UNROLL, []
    for line in range(1, max(1, frames // line_frames) + 1):
        found = []
        for _ in range(ITERATIONS_A_LINE):
            training, metrics = iterate(world, training)
            found.append(float(metrics["interactions"]))  # NaN if no episode ended
        curve.append(float(np.nanmean(found)))
        seconds, entropy = time.monotonic() - began, metrics["entropy"]
        print(f"{line * line_frames:,} frames, {seconds:.0f} s: ", end="")
        print(f"{curve[-1]:.1f} interactions an episode, entropy {entropy:.2f}")
    plt.plot((1 + np.arange(len(curve))) * line_frames / 1e6, curve)
    plt.gca().set(xlabel="million frames", ylabel="unique interactions an episode")
    Path("runs").mkdir(exist_ok=True)
    plt.savefig("runs/single_file.png")
    return curve


if __name__ == "__main__":
    main(*(int(float(argument)) for argument in sys.argv[1:]))
