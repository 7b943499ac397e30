"""Walking about a scene with a fixed policy and no learning, and where the walks lead."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from cbet_jax.agent import Agent, AgentParams
from cbet_jax.rollout import ActorState, act, begin_actor
from cbet_jax.runs.signals import interruptible
from envs.habitat.simulator import FloorMap
from envs.habitat.world import CELL
from envs.types import World

Places = Float[np.ndarray, "episodes moments 2"]  # x and z; NaN after an episode was cut


class Walked(NamedTuple):
    """The walks in one scene."""

    scene: str
    drawn: FloorMap
    places: dict[str, dict[int, Places]]  # policy -> seed -> its walks


Walker = Callable[[AgentParams, PRNGKeyArray, PRNGKeyArray], Float[Array, "moments N 2"]]


def make_walker(world: World, agent: Agent, steps: int) -> Walker:
    """Return the compiled function that plays an episode in each world, actions sampled.

    Args:
        world: scenes whose episodes have at least so many steps.
        agent: who plays.
        steps: of an episode.

    Returns:
        A function of the policy's parameters, of a key that draws where the episodes begin, and
        of one that draws the actions. It returns the places at the beginning and after each step.
    """

    def walk_on(
        params: AgentParams, carry: tuple[ActorState, Bool[Array, " N"]], key: PRNGKeyArray
    ) -> tuple[tuple[ActorState, Bool[Array, " N"]], Float[Array, "N 2"]]:
        actor, cut = carry
        cuts = actor.world.cuts
        actor, transition = act(agent, world, params, actor, key)
        # The last step of an episode may end it, too: only a cut leads somewhere else.
        cut = cut | (transition.truncated & (actor.world.cuts > cuts))
        return (actor, cut), jnp.where(cut[:, None], jnp.nan, actor.world.reached[:, (0, 2)])

    @jax.jit
    def walk(
        params: AgentParams, world_key: PRNGKeyArray, action_key: PRNGKeyArray
    ) -> Float[Array, "moments N 2"]:
        actor = begin_actor(agent, world, world_key)
        params = agent.precompute(params, actor.step.policy_view)
        carry = actor, jnp.zeros(world.num_worlds, bool)
        keys = jax.random.split(action_key, steps)
        _, places = jax.lax.scan(partial(walk_on, params), carry, keys)
        return jnp.concatenate([actor.world.position[None, :, (0, 2)], places])

    return walk


def play(
    walker: Walker, params: AgentParams, key: PRNGKeyArray, episodes: int, *, random_starts: bool
) -> Places:
    """Play episodes, as many at once as there are worlds.

    Args:
        walker: who plays.
        params: the policy's.
        key: draws where the episodes begin, and the actions; the first alike for all policies.
        episodes: to play.
        random_starts: every episode begins somewhere else.
    """
    world_key, action_key = jax.random.split(key)
    walks: list[np.ndarray] = []
    while sum(len(walk) for walk in walks) < episodes:
        number = len(walks)
        start_key = jax.random.fold_in(world_key, number if random_starts else 0)
        keys = start_key, jax.random.fold_in(action_key, number)
        walks.append(interruptible(partial(_walk, walker, params, *keys)))
    return np.concatenate(walks)[:episodes]


def _walk(
    walker: Walker, params: AgentParams, world_key: PRNGKeyArray, action_key: PRNGKeyArray
) -> Places:
    return np.asarray(walker(params, world_key, action_key)).swapaxes(0, 1)


def distinct(places: Float[np.ndarray, "*moments 2"]) -> int:
    """Return how many distinct positions there are, rounded to 0.05 m as in the paper."""
    return int(firsts(places.reshape(-1, 2)).sum())


def firsts(places: Float[np.ndarray, "moments 2"]) -> Bool[np.ndarray, " moments"]:
    """Return at which moments a position was reached that had not been before."""
    there = np.flatnonzero(~np.isnan(places[:, 0]))
    rounded = np.round(places[there] / CELL).astype(int)
    first = np.zeros(len(places), bool)
    first[there[np.unique(rounded, axis=0, return_index=True)[1]]] = True
    return first


def on_map(places: Places, drawn: FloorMap) -> np.ndarray:
    """Count the moments in each cell of a map: int[rows, columns]."""
    flat = places.reshape(-1, 2)
    x, z = (flat[~np.isnan(flat[:, 0])] - drawn.corner).T / drawn.cell
    rows, columns = drawn.walkable.shape
    counts, _, _ = np.histogram2d(z, x, (rows, columns), ((0, rows), (0, columns)))
    return counts.astype(int)
