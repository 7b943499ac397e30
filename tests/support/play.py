"""Play our worlds in batches, with a random policy that prefers to handle objects."""

from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs.minigrid import cells as c
from envs.minigrid import rules, views
from envs.minigrid.export import Export, export, to_minigrid, without_margin
from envs.minigrid.generators import find, sample_levels
from envs.minigrid.level import DIRECTIONS, MARGIN, Level, enlarge
from tests.envs.minigrid.solving.planner import plan

CANVAS = 25 + 2 * MARGIN  # holds every level
BATCH = 20  # worlds played at once; always the same size, to compile the program once
PIECE = 120  # steps of one call of the compiled program
QUICKLY = {"xla_backend_optimization_level": 0}  # compiles in a fifth of the time
CHUNK = 500  # levels sampled at once; always the same number, to compile each sampler once


class Record(NamedTuple):
    """`B` worlds over time: index t has the state before action t, and its outcome."""

    states: rules.State  # arrays [T, B, ...]
    panorama: np.ndarray  # [T, B, 4, 7, 7, 3]
    view: np.ndarray  # [T, B, 7, 7, 3]
    actions: np.ndarray  # [T, B]
    outcomes: rules.Outcome  # arrays [T, B]


def levels_of(name: str, key, count: int) -> Level:
    """Return `count` levels of one of the environments."""
    keys = jax.random.split(key, -(-count // CHUNK))
    chunks = [sampling_program(name)(chunk_key) for chunk_key in keys]
    assert all(np.asarray(ok).all() for _, ok in chunks)
    return jax.tree.map(
        lambda *leaves: jnp.asarray(np.concatenate(leaves)[:count]),
        *(levels for levels, _ in chunks),
    )


@cache
def sampling_program(name: str):
    """Return the compiled function that samples `CHUNK` levels from a random key."""
    return jax.jit(lambda key: sample_levels(find(name), key, CHUNK), compiler_options=QUICKLY)


def exports(levels: Level) -> list[Export]:
    """Export the first state of each level."""
    return exports_of(start_all(levels))


def exports_of(states: rules.State) -> list[Export]:
    """Export each of the states."""
    states = jax.device_get(states)
    count = len(states.step_count)
    return [export(jax.tree.map(lambda leaf, i=i: leaf[i], states)) for i in range(count)]


start_all = jax.jit(jax.vmap(rules.start))


def play(levels: Level, key, plans: np.ndarray) -> Record:
    """Play as many actions as `plans` has in each of the levels (`[B]`), success or not.

    `plans` (`[steps, B]`) holds the actions; a negative one is replaced by a random action. All
    levels have one size and time is divided into pieces, so one compiled program plays them all.
    """
    levels = jax.vmap(lambda level: enlarge(level, CANVAS, CANVAS))(levels)
    states = jax.vmap(rules.start)(levels)
    pieces = -(-len(plans) // PIECE)
    missing = pieces * PIECE - len(plans)
    padded = np.pad(plans, ((0, missing), (0, 0)), constant_values=rules.DONE)
    records = []
    for keys, part in zip(jax.random.split(key, pieces), np.split(padded, pieces), strict=True):
        states, record = _play_piece(states, keys, part)
        records.append(jax.device_get(record))
    return jax.tree.map(lambda *parts: np.concatenate(parts)[: len(plans)], *records)


@jax.jit
def _play_piece(states, key, plans):
    def step(states, xs):
        key, planned = xs
        keys = jax.random.split(key, plans.shape[1])
        actions = jnp.where(planned < 0, jax.vmap(handle_things)(keys, states), planned)
        after, outcomes = jax.vmap(rules.step)(states, actions)
        return after, Record(states, *_look(states), actions, outcomes)

    return jax.lax.scan(step, states, (jax.random.split(key, PIECE), plans))


def plans_for(levels: Level, steps: int, every: int) -> np.ndarray:
    """Return plans that solve every `every`-th level; all other actions are random."""
    count = levels.task.shape[0]
    plans = np.full((steps, count), -1, np.int32)
    for world, level in list(enumerate(exports(levels)))[::every]:
        found = plan(level)
        if found is not None:
            plans[: len(found), world] = found[:steps]
    return plans


def _look(states):
    def look(state):
        return views.panorama(state), views.egocentric(state, views.look_around(state))

    return jax.vmap(look)(states)


def handle_things(key, state: rules.State):
    """Sample an action: often one that handles the object in front."""
    level = state.level
    x, y = level.agent_position + jnp.array(DIRECTIONS)[level.agent_direction] + MARGIN
    front = level.cells[y, x]
    key_kind, key_any, key_handle = jax.random.split(key, 3)
    moving = jax.random.choice(key_any, jnp.array([0, 1, 2, 2, 2]))
    handles = c.can_pick_up(front) | c.is_door(front) | (state.carrying != c.EMPTY)
    handling = jax.random.choice(
        key_handle,
        jnp.array([rules.PICKUP, rules.DROP, rules.TOGGLE]),
        p=jnp.where(c.is_door(front), jnp.array([0.05, 0.05, 0.9]), jnp.array([0.8, 0.15, 0.05])),
    )
    share = jax.random.uniform(key_kind)
    usual = jnp.where(handles & (share < 0.4), handling, moving)
    anything = jax.random.randint(key_any, (), 0, len(rules.ACTIONS))
    return jnp.where(share > 0.95, anything, usual)


def full_states(record: Record, world: int) -> tuple[np.ndarray, ...]:
    """Return grid, contents, agent and carried object of one world, at every time step."""
    level = record.states.level
    grid, contents = to_minigrid(without_margin(level.cells[:, world], level.size[0, world]))
    agent = np.concatenate(
        [level.agent_position[:, world], level.agent_direction[:, world, None]], axis=1
    )
    carried, inside = to_minigrid(record.states.carrying[:, None, None, world])
    things = np.concatenate([carried[:, 0, 0, :2], inside[:, 0, 0]], axis=1)
    things[record.states.carrying[:, world] == c.EMPTY] = 0
    return grid, contents, agent, things
