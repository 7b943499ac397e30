"""Where the time of training goes: the phases of one iteration, each timed by itself.

They are timed on one device, compiled as training is. Some phases run by themselves: the network
on the views of a real iteration, the worlds on its actions, the learner on its trajectories. The
time of every other phase is the difference between a program with it and one without it.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from cbet_jax.agent import AgentParams
from cbet_jax.config import TrainSettings
from cbet_jax.intrinsic.types import Experience, Params
from cbet_jax.learner import batch_loss, total_reward
from cbet_jax.runs.devices import make_mesh
from cbet_jax.sharding import compiler_options
from cbet_jax.train import (
    Trainer,
    TrainState,
    init,
    iterate,
    learn,
    make_trainer,
    play,
    split_batches,
)
from cbet_jax.types import Trajectory
from envs.minigrid.rules import State
from envs.minigrid.rules import step as play_by_rules
from envs.minigrid.world import Worlds
from envs.types import World
from experiments.benchmarks.arithmetic import forward_flops, product_bytes
from experiments.benchmarks.phase_costs import costs_of
from experiments.benchmarks.timing import TimedTask, first_result, repeated

NETWORK, RULES, WORLDS, COUNTED = "network", "rules", "worlds", "counted"
FRESH, ACTING = "fresh", "acting"
FORWARD, GRADIENT, LEARNING, ITERATION = "forward", "gradient", "learning", "iteration"
FLOP, OPERATION = "FLOP", "operation"
WHOLE = "an iteration"


class Phase(NamedTuple):
    """A part of an iteration."""

    name: str
    seconds: float
    operations: float = 0.0
    bytes: float = 0.0  # that products, the optimizer or the worlds' records move
    unit: str = FLOP  # of operations; FLOP: the network's products only, else all that XLA counts


def tasks(settings: TrainSettings, world: World) -> dict[str, TimedTask]:
    """Return programs that each compute a part of an iteration, by name.

    Args:
        settings: of the training.
        world: the worlds that it plays.
    """
    options = compiler_options(make_mesh(settings, seeds=1))
    compiled = partial(jax.jit, compiler_options=options)
    trainer = make_trainer(settings, world)
    state = compiled(partial(init, trainer))(jax.random.key(0))
    acted = compiled(lambda state: play(trainer, state.learner, state.actor, state.key))
    _, trajectories, _ = jax.block_until_ready(acted(state))
    programs: dict[str, Callable[[], Any]] = {
        NETWORK: partial(compiled(partial(act, trainer)), state, trajectories),
        ACTING: partial(acted, state),
        FORWARD: partial(compiled(partial(_forward, trainer)), state, trajectories),
        GRADIENT: partial(compiled(partial(_gradient, trainer)), state, trajectories),
        LEARNING: partial(compiled(partial(learn, trainer)), state.learner, trajectories),
        ITERATION: partial(compiled(partial(iterate, trainer)), state),
    }
    found = {
        name: TimedTask(partial(_wait_for, program), 1.0, "iteration")
        for name, program in programs.items()
    }
    parts = {WORLDS: (False, False), COUNTED: (True, False), FRESH: (True, True)}
    for name, (counts, fresh) in parts.items():
        given = trainer, state.learner.intrinsic, trajectories.steps.action
        step = partial(_worlds, *given, counts=counts, fresh=fresh)
        carry = jax.tree.map(jnp.copy, (state.actor.world, state.actor.memory, jax.random.key(1)))
        run = repeated(first_result(compiled(step, donate_argnums=0)), carry)
        found[name] = TimedTask(run, 1.0, "iteration")
    if isinstance(state.actor.world, Worlds):  # the rules of others are timed with their views
        states = jax.tree.map(jnp.copy, state.actor.world.states)
        rules = compiled(partial(_rules, trajectories.steps.action), donate_argnums=0)
        found[RULES] = TimedTask(repeated(first_result(rules), states), 1.0, "iteration")
    return found


def phases(
    speeds: Mapping[str, float], settings: TrainSettings, world: World
) -> tuple[list[Phase], Phase]:
    """Return the phases of an iteration, and the whole.

    A difference that noise made negative is returned as 0.

    Args:
        speeds: of `tasks`, in iterations a second.
        settings: of the training.
        world: the worlds that it plays.
    """
    took = durations(speeds)
    frames = settings.iteration_frames
    forward = frames * forward_flops(settings.network, world.view_shape, world.num_actions)
    trainer = make_trainer(settings, world)
    products, costs = _bytes(trainer), costs_of(trainer)
    backward = products[GRADIENT] - products[FORWARD]
    parts = {
        "acting: network": (forward, products[NETWORK], FLOP),
        "acting: rules": (*costs.rules, OPERATION),
        "acting: resets and views": (*costs.views, OPERATION),
        "acting: counts": (*costs.counts, OPERATION),
        "learning: forward": (forward, products[FORWARD], FLOP),
        "learning: backward": (2 * forward, backward, FLOP),
        "learning: optimizer": (*costs.optimizer, OPERATION),
    }
    every = sum(moved for _, moved, _ in parts.values())
    parts[WHOLE] = 4 * forward, every, FLOP
    of_work = [Phase(name, max(took[name], 0.0), *parts.get(name, ())) for name in took]
    return of_work[:-1], of_work[-1]


def durations(speeds: Mapping[str, float]) -> dict[str, float]:
    """Return the seconds of each phase, the whole last; differences may be negative by noise.

    Args:
        speeds: of `tasks`, in iterations a second.
    """
    took = {RULES: 0.0, **{name: 1 / speed for name, speed in speeds.items()}}
    return {
        "acting: network": took[NETWORK],
        "acting: rules": took[RULES],
        "acting: resets and views": took[WORLDS] - took[RULES],
        "acting: counts": took[COUNTED] - took[WORLDS],
        "acting: fresh levels": took[FRESH] - took[COUNTED],
        "acting: all else": took[ACTING] - took[NETWORK] - took[FRESH],
        "learning: forward": took[FORWARD],
        "learning: backward": took[GRADIENT] - took[FORWARD],
        "learning: optimizer": took[LEARNING] - took[GRADIENT],
        WHOLE: took[ITERATION],
    }


def _bytes(trainer: Trainer) -> dict[str, float]:
    """Return the bytes that the products of three programs move in an iteration."""
    state = jax.eval_shape(partial(init, trainer), jax.random.key(0))
    played = jax.eval_shape(partial(play, trainer), state.learner, state.actor, state.key)
    programs = {NETWORK: act, FORWARD: _forward, GRADIENT: _gradient}
    return {
        name: product_bytes(partial(program, trainer), state, played[1])
        for name, program in programs.items()
    }


def _wait_for(program: Callable[[], Any]) -> None:
    jax.block_until_ready(program())


def act(
    trainer: Trainer, state: TrainState, trajectories: Trajectory
) -> Float[Array, "rollouts T N actions"]:
    """Return the logits of the views of every rollout, computed step by step as in acting."""
    params = trainer.agent.precompute(state.learner.agent, state.actor.step.view)

    def step(recurrent: Any, seen: tuple[Array, Array]) -> tuple[Any, Array]:
        view, first = (leaf[None] for leaf in seen)
        logits, _, recurrent = trainer.agent.apply(params, view, first, recurrent)
        return recurrent, logits[0]

    def rollout(recurrent: Any, seen: tuple[Array, Array]) -> tuple[Any, Array]:
        return jax.lax.scan(step, recurrent, jax.tree.map(lambda leaf: leaf[:-1], seen))

    seen = trajectories.view, trajectories.first
    return jax.lax.scan(rollout, state.actor.recurrent, seen)[1]


def _rules(actions: Int[Array, "rollouts T N"], states: State) -> tuple[State, Any]:
    """Play the actions of every rollout by the rules only."""

    def step(states: State, action: Array) -> tuple[State, Any]:
        states, outcome = jax.vmap(play_by_rules)(states, action)
        return states, outcome.interaction.sum()

    return jax.lax.scan(step, states, actions.reshape(-1, actions.shape[-1]))


def _worlds(
    trainer: Trainer,
    params: Params,
    actions: Int[Array, "rollouts T N"],
    carry: tuple[Any, Any, Array],
    *,
    counts: bool,
    fresh: bool,
) -> tuple[Any, Any]:
    """Play the actions of every rollout, with or without counts and fresh levels."""

    def step(carry: tuple[Any, Any], inputs: tuple[Array, Array]) -> tuple[Any, Any]:
        (worlds, memory), (action, key) = carry, inputs
        worlds, seen = trainer.world.step(worlds, action)
        told = seen.view.sum(), seen.panorama.sum()
        if counts:
            experience = Experience(seen.view, action, seen)
            memory, told = trainer.intrinsic.observe(params, memory, key, experience)
        return (worlds, memory), told

    def rollout(carry: tuple[Any, Any], inputs: tuple[Array, Array]) -> tuple[Any, Any]:
        (worlds, memory), (chosen, key) = carry, inputs
        worlds = trainer.world.refresh(worlds) if fresh else worlds
        return jax.lax.scan(step, (worlds, memory), (chosen, jax.random.split(key, len(chosen))))

    worlds, memory, key = carry
    key, now = jax.random.split(key)
    keys = jax.random.split(now, len(actions))
    (worlds, memory), told = jax.lax.scan(rollout, (worlds, memory), (actions, keys))
    return (worlds, memory, key), told


def _loss(trainer: Trainer, state: TrainState, params: Any, batch: Trajectory) -> Array:
    settings, intrinsic = trainer.settings, trainer.intrinsic
    reward = intrinsic.reward(state.learner.intrinsic, batch)
    total = total_reward(reward, batch.steps.extrinsic_reward, intrinsic.coefficient, settings)
    learnt = AgentParams(params, state.learner.fixed)
    return batch_loss(learnt, batch, total, trainer.agent, settings).total


def _forward(trainer: Trainer, state: TrainState, trajectories: Trajectory) -> Array:
    """Compute the loss of every batch."""
    batches = split_batches(trajectories, trainer.settings.updates)
    return jax.lax.map(lambda batch: _loss(trainer, state, state.params, batch), batches)


def _gradient(trainer: Trainer, state: TrainState, trajectories: Trajectory) -> Array:
    """Compute the gradient of the loss of every batch, and its norm."""
    batches = split_batches(trajectories, trainer.settings.updates)
    gradient = jax.grad(partial(_loss, trainer, state))
    return jax.lax.map(lambda batch: optax.tree.norm(gradient(state.params, batch)), batches)
