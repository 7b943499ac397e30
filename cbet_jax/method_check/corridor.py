"""A corridor, a cheap test of whether a reward makes an agent explore.

Agents begin at the left end. Random ones keep coming back; those that seek new places get far.
"""

from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from cbet_jax.agent import Agent, AgentParams, Outputs, Prior
from cbet_jax.config import OptimizerSettings, TrainSettings
from cbet_jax.program import make_program, seed_keys
from cbet_jax.settings.ranges import LARGEST_INT
from envs.types import Step, World

ACTIONS = 3  # left, stay, right
LENGTH, EPISODE, EPISODES, CORRIDORS = 32, 40, 100, 16  # sizes of the training
SCALE = 20.0  # factor of learnt logits and values, which fits them to the learning rate
FURTHEST = "furthest"  # the metric: mean furthest place of the last episodes
type State = tuple[Int[Array, " N"], ...]  # place, steps played, furthest now and last episode


def looks(places: int) -> np.ndarray:
    """Return the view of each place, uint8 [places, 7, 7, 3]; its first number is the place."""
    views = np.random.default_rng(0).integers(256, size=(places, 7, 7, 3), dtype=np.uint8)
    views[:, 0, 0, 0] = np.arange(places)
    return views


def corridor(num_worlds: int, length: int, steps: int) -> World[State]:
    """Return corridors side by side. Episodes last `steps` steps; there is no task."""
    views = jnp.asarray(looks(length))

    def init(key: Any) -> tuple[State, Step]:
        del key
        start = jnp.zeros(num_worlds, jnp.int32)
        return (start,) * 4, see(start, start, start > 0)

    def step(state: State, action: Int[Array, " N"]) -> tuple[State, Step]:
        place, played, furthest, last = state
        place, played = jnp.clip(place + action - 1, 0, length - 1), played + 1
        furthest, ended = jnp.maximum(furthest, place), played == steps
        last = jnp.where(ended, furthest, last)
        begun = (jnp.where(ended, 0, leaf) for leaf in (place, played, furthest))
        return (*begun, last), see(jnp.where(ended, 0, place), played, ended)

    def see(place: Int[Array, " N"], played: Int[Array, " N"], ended: Bool[Array, " N"]) -> Step:
        panorama = views[place].reshape(num_worlds, -1).astype(jnp.int32)
        return Step.without_task(views[place], panorama, played, ended)

    return World(
        init=init,
        step=step,
        report=lambda state: {FURTHEST: state[3].astype(jnp.float32).mean()},
        num_worlds=num_worlds,
        num_actions=ACTIONS,
        view_shape=(7, 7, 3),
        environments=("corridor",),
        max_steps=steps,
    )


def reach(settings: TrainSettings) -> float:
    """Return how far an agent trained only on this reward gets.

    It is the mean furthest place in the last fifth of the episodes.
    """
    settings = replace(
        settings,
        worlds=CORRIDORS,
        batch=CORRIDORS,
        unroll=EPISODE,
        frames=EPISODES * CORRIDORS * EPISODE,
        optimizer=OptimizerSettings(learning_rate=1e-3, decay_frames=LARGEST_INT),
    )
    world = corridor(CORRIDORS, LENGTH, EPISODE)
    program = make_program(settings, world, 1, EPISODES, agent=table_agent(LENGTH, ACTIONS, SCALE))
    _, metrics = program.advance(program.init(seed_keys(1)))
    return float(np.asarray(metrics[FURTHEST])[-EPISODES // 5 :].mean())


def random_reach() -> float:
    """Return the mean furthest place in an episode of random actions."""
    moves = np.random.default_rng(0).integers(-1, 2, size=(EPISODE, 10_000))
    place = furthest = np.zeros(moves.shape[1], int)
    for move in moves:
        place = np.clip(place + move, 0, LENGTH - 1)
        furthest = np.maximum(furthest, place)
    return float(furthest.mean())


def table_agent(places: int, actions: int, scale: float = 1.0) -> Agent:
    """Return the agent with one row of logits and one value for each place.

    Args:
        places: number of places; the first number of a view is its place.
        actions: number of actions.
        scale: factor of the learnt logits and values.
    """

    def apply(
        params: AgentParams, view: Any, first: Array, state: tuple[()], prior: Prior = None
    ) -> Outputs:
        place = view[..., 0, 0, 0].astype(jnp.int32)
        logits, values = (scale * params.learnt[name][place] for name in ("logits", "values"))
        return Outputs(logits, values, state)

    return Agent(
        init=lambda key: AgentParams(
            {"logits": jnp.zeros((places, actions)), "values": jnp.zeros(places)}
        ),
        initial_state=lambda agents: (),
        apply=apply,
    )
