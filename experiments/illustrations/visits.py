"""Count what a policy visits in one level of a gridworld, and reward each action there.

A state is the whole grid with the agent, in MiniGrid's encoding; a change is the difference of two
states. The paper's figure of rewards (section 3.1) does this; its experiments use views of 7x7
cells.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int16, PRNGKeyArray
from scipy import ndimage

from cbet_jax.agent import Agent, AgentParams
from cbet_jax.intrinsic.cbet import cbet_reward
from cbet_jax.intrinsic.count import count_reward
from cbet_jax.rollout import ActorState, act, begin_actor
from envs.minigrid import cells as c
from envs.minigrid import rules
from envs.minigrid.export import without_margin
from envs.minigrid.generators.generator import make_generator
from envs.minigrid.level import Level
from envs.minigrid.observations import grid_codes
from envs.minigrid.rules import State
from envs.minigrid.world import gridworld
from envs.types import World


class Visits(NamedTuple):
    """Visit counts of states and changes."""

    states: Counter[bytes]
    changes: Counter[bytes]


class Probe(NamedTuple):
    """One action in one cell, with visit counts of its results that include this visit."""

    x: int
    y: int
    action: str
    states: int  # N(s')
    changes: int  # N(c)
    squared_norm: int  # ||c||^2


# The paper's three rewards, as functions of N(s'), N(c) and ||c||^2.
REWARDS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "count": lambda states, changes, norm: count_reward(states),
    "change_norm": lambda states, changes, norm: norm * count_reward(states),
    "cbet": lambda states, changes, norm: cbet_reward(states, changes),
}


def one_level(level: Level, num_worlds: int) -> World:
    """Return worlds that repeat one level; success does not end an episode."""
    width, height = level.size.tolist()
    steps, task = int(level.max_steps), int(level.task)
    generator = make_generator(
        "level", width, height, steps, task, lambda key: (level, jnp.array(True))
    )
    return gridworld([generator], num_worlds, explore=True, levels_per_world=1)


def count_visits(
    world: World, agent: Agent, params: AgentParams, steps: int, key: PRNGKeyArray
) -> Visits:
    """Play in all worlds, and count for all of them together.

    As in training, the first state counts, then each state after an action and the change to it;
    at an episode's end that is the next episode's first state.
    """
    world_key, play_key = jax.random.split(key)

    @jax.jit
    def play() -> tuple[State, State]:
        actor = begin_actor(agent, world, world_key)
        precomputed = agent.precompute(params, actor.step.policy_view)

        def play_step(actor: ActorState, key: PRNGKeyArray) -> tuple[ActorState, State]:
            actor, _ = act(agent, world, precomputed, actor, key)
            return actor, actor.world.states

        _, after = jax.lax.scan(play_step, actor, jax.random.split(play_key, steps))
        return actor.world.states, after

    begin, after = jax.device_get(play())
    before = observe(begin)
    visits = Visits(Counter(each.tobytes() for each in before), Counter())
    for seen in observe(after):
        visits.states.update(each.tobytes() for each in seen)
        visits.changes.update(each.tobytes() for each in seen - before)
        before = seen
    return visits


def observe(states: Any) -> Int16[np.ndarray, "*N width height 3"]:
    """Return whole grids of one size with their agents, in MiniGrid's encoding."""
    see: Any = partial(grid_codes, *states.level.size.reshape(-1, 2)[0].tolist())
    for _ in states.carrying.shape:
        see = jax.vmap(see)
    return np.asarray(jax.jit(see)(states)).astype(np.int16)


def probe(visits: Visits, level: Level, facing: int, actions: Sequence[str]) -> list[Probe]:
    """Try actions in each cell that the agent can walk to at the level's beginning.

    Args:
        visits: visit counts of a policy.
        level: the level before anything is moved or opened.
        facing: the agent's direction in each cell, 0..3 as in MiniGrid.
        actions: names of the actions to try.
    """
    cells = walkable(jax.device_get(level))
    numbers = jnp.array([rules.ACTIONS.index(action) for action in actions])

    def act(cell: Array) -> tuple[State, State]:
        here = level._replace(agent_position=cell, agent_direction=jnp.int32(facing))
        placed = rules.start(here)
        return placed, jax.vmap(lambda action: rules.step(placed, action)[0])(numbers)

    placed, after = jax.device_get(jax.jit(jax.vmap(act))(jnp.array(cells, jnp.int32)))
    seen, before = observe(after), observe(placed)
    probes = []
    for i, cell in enumerate(cells):
        for j, action in enumerate(actions):
            change = seen[i, j] - before[i]
            states = visits.states[seen[i, j].tobytes()] + 1
            changes = visits.changes[change.tobytes()] + 1
            norm = int((change.astype(int) ** 2).sum())
            probes.append(Probe(*cell, action, states, changes, norm))
    return probes


def walkable(level: Any) -> list[tuple[int, int]]:
    """Return the cells `(x, y)` that the agent reaches without opening or taking anything."""
    grid = without_margin(level.cells, level.size)
    free = np.asarray(c.can_enter(jnp.asarray(grid))) & (grid != c.LAVA)
    areas, _ = ndimage.label(free)
    x, y = level.agent_position
    return [(int(column), int(row)) for row, column in np.argwhere(areas == areas[y, x])]


def rewards(probes: Sequence[Probe]) -> Mapping[str, np.ndarray]:
    """Return the paper's rewards of the probes: name -> [probes]."""
    states, changes, norm = (
        np.array([getattr(probe, name) for probe in probes], float)
        for name in ("states", "changes", "squared_norm")
    )
    return {name: np.asarray(reward(states, changes, norm)) for name, reward in REWARDS.items()}
