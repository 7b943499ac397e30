"""All that play take their steps in `cbet_jax.rollout.act`: the same actions from the same keys."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from cbet_jax.agent import Agent, AgentParams, network_agent
from cbet_jax.episode_records import with_episode_records
from cbet_jax.evaluate import make_evaluator
from cbet_jax.intrinsic import make_intrinsic
from cbet_jax.rollout import act, begin_actor, rollout
from envs.habitat.simulator import PANORAMA_SHAPE, VIEW_SHAPE
from envs.minigrid import rules
from envs.minigrid.level import REACH_GOAL
from envs.minigrid.level_text import from_text
from envs.types import Step, World
from experiments.evaluation import walks
from experiments.illustrations import visits
from experiments.watching import playing, rooms_film
from tests.support.counting import NO_PARAMS
from tests.support.families import slow
from tests.support.tiny import NETWORK, SETTINGS

STEPS = 9  # of an episode, and of a play
KEY = jax.random.key(3)
METHOD = make_intrinsic(replace(SETTINGS, method="count"), 1)


class Floor(NamedTuple):
    """Where an agent is on a floor without walls, by the names of `envs.habitat.world`."""

    position: Array  # [1, 3]
    heading: Array  # [1]
    reached: Array  # [1, 3]
    cuts: Array
    played: Array  # [1]


def floor() -> World:
    """A world that is seen as Habitat is. Every third step is a success, which ends nothing."""

    def see(state, success, ended):
        numbers = (37 * state.position[:, 0] + 11 * state.played).astype(jnp.uint8)
        view = jnp.broadcast_to(numbers[:, None, None, None], (1, *VIEW_SHAPE))
        panorama = jnp.zeros((1, int(np.prod(PANORAMA_SHAPE))), jnp.uint8)
        return Step.without_task(view, panorama, state.played, ended)._replace(success=success)

    def init(key):
        place, nothing = jnp.zeros((1, 3)), jnp.zeros(1, jnp.int32)
        state = Floor(place, jnp.zeros(1), place, jnp.int32(0), nothing)
        return state, see(state, nothing > 0, nothing > 0)

    def step(state, action):
        position = state.position + (action == 0)[:, None]
        state = state._replace(position=position, reached=position, played=state.played + 1)
        return state, see(state, state.played % 3 == 0, state.played >= STEPS)

    return World(
        init=init,
        step=step,
        num_worlds=1,
        num_actions=3,
        view_shape=VIEW_SHAPE,
        environments=("floor",),
        max_steps=STEPS,
    )


def goals() -> World:
    """A gridworld of one level, full of goals, which end nothing."""
    text = "WGWGWGWGWG\nWG>>GGGGWG\nWGGGGGGGWG\nWGWGWGWGWG"
    return visits.one_level(from_text(text, task=REACH_GOAL, max_steps=STEPS), 1)


class Case(NamedTuple):
    """A world, who plays in it, and the actions and the ends that `act` brings."""

    world: World
    agent: Agent
    params: AgentParams
    take: Callable[[Array, Array], tuple[Array, Array]]  # world key, keys [STEPS]


@cache
def case(make_world: Callable[[], World]) -> Case:
    world = make_world()
    agent = network_agent(NETWORK, world.num_actions, world.view_shape)
    params = jax.jit(agent.init)(jax.random.key(1))
    params = jax.tree.map(lambda x: 3 * x, params)  # a memory that has a say
    if make_world is goals:  # which it is to reach
        params.learnt["params"]["policy"]["bias"] += 2.0 * (jnp.arange(7) == rules.FORWARD)

    @jax.jit
    def take(world_key, keys):
        def play_step(actor, key):
            actor, transition = act(agent, world, precomputed, actor, key)
            return actor, (transition.action[0], actor.first[0])

        actor = begin_actor(agent, world, world_key)
        precomputed = agent.precompute(params, actor.step.view)
        return jax.lax.scan(play_step, actor, keys)[1]

    return Case(world, agent, params, take)


def rolled_out(world, agent, params):
    """In training, where an intrinsic method observes, too."""
    world_key, key = jax.random.split(KEY)

    @jax.jit
    def play():
        recorded = with_episode_records(world)
        actor = begin_actor(agent, recorded, world_key)
        memory = METHOD.init(key, actor.step)[1]
        return rollout(agent, recorded, METHOD, params, NO_PARAMS, actor, memory, key, STEPS)

    play()
    keys = jax.random.split(jax.random.split(key)[1], STEPS)
    return world_key, jax.vmap(jax.random.split)(keys)[:, 0]


def evaluated(world, agent, params):
    world_key, key = jax.random.split(KEY)
    make_evaluator(world, agent)(jax.tree.map(lambda x: x[None], params), world_key, key)
    keys = []
    for _ in range(STEPS):
        key, action_key = jax.random.split(key)
        keys.append(action_key)
    return world_key, jnp.stack(keys)


def walked(world, agent, params):
    world_key, key = jax.random.split(KEY)
    walks.make_walker(world, agent, STEPS)(params, world_key, key)
    return world_key, jax.random.split(key, STEPS)


def filmed_in_rooms(world, agent, params):
    list(rooms_film.play(world, agent, params, KEY, 1, STEPS))
    world_key, key = jax.random.split(KEY)
    return jax.random.fold_in(world_key, 0), folded(key)


def watched(world, agent, params):
    player = playing.Player("somebody", agent, params, METHOD, None)
    list(playing.play(world, player, KEY, 1))
    world_key, _, _, key = jax.random.split(KEY, 4)
    return world_key, jax.vmap(jax.random.split)(folded(key))[:, 0]


def visited(world, agent, params):
    visits.count_visits(world, agent, params, STEPS, KEY)
    world_key, key = jax.random.split(KEY)
    return world_key, jax.random.split(key, STEPS)


def folded(key):
    return jax.vmap(lambda step: jax.random.fold_in(key, step))(jnp.arange(STEPS))


@pytest.mark.parametrize(
    ("make_world", "play"),
    [
        slow(floor, rolled_out),  # test_rollout.py plays another
        slow(floor, evaluated),
        (floor, walked),
        (floor, filmed_in_rooms),
        slow(goals, watched),  # test_playing.py watches a network
        slow(goals, visited),  # test_visits.py counts by hand
    ],
)
def test_whoever_plays_takes_the_actions_of_act_with_the_same_keys(make_world, play):
    world, agent, params, take = case(make_world)
    played = []

    def step(state, action):
        jax.debug.callback(lambda action: played.append(int(action[0])), action, ordered=True)
        return world.step(state, action)

    actions, first = take(*play(replace(world, step=step), agent, params))
    jax.effects_barrier()
    assert played == actions.tolist()
    assert len(set(played)) > 1
    assert first[:-1].any()  # the recurrent state was zeroed at a success
