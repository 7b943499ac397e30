"""Many simulators as one batched world: a single host callback a step, in order.

The device holds all that a run goes on from: where every agent is, how long its episode has
lasted, where the next begins. The host makes the simulators follow it. So a step is a function
of its arguments like a gridworld's, and a run that is resumed, in fresh processes, sees what it
would have seen.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental import io_callback
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt32

from envs.habitat.simulator import ACTIONS, PANORAMA_SHAPE, VIEW_SHAPE
from envs.habitat.workers.simulators import Followed, Simulators
from envs.types import Step, World

MAX_STEPS = 500  # of an episode (paper, appendix on Habitat)
CELL = 0.05  # metres to which positions are rounded before they are told apart
_PIXELS = PANORAMA_SHAPE[0] * PANORAMA_SHAPE[1] * PANORAMA_SHAPE[2] * PANORAMA_SHAPE[3]


class Agents(NamedTuple):
    """Where `N` agents are, and where they have been."""

    position: Float[Array, "N 3"]
    heading: Float[Array, " N"]  # degrees
    reached: Float[Array, "N 3"]  # by the last action, though the next episode may have begun
    seeds: UInt32[Array, " N"]  # of the starts of the next episodes
    played: Int[Array, " N"]  # steps of the episode under way
    visits: Int[Array, "rows columns"]  # of positions rounded to `CELL`, in x and z
    cuts: Int[Array, ""]  # episodes that ended because their simulator was lost


class Grid(NamedTuple):
    """Which rounded position each cell of `Agents.visits` stands for."""

    first: tuple[int, int]  # row (z) and column (x) of the first cell, in multiples of `CELL`
    shape: tuple[int, int]


def habitat_world(
    simulators: Simulators, *, max_steps: int = MAX_STEPS, random_starts: bool = False
) -> World[Agents]:
    """Returns the worlds that simulators play: exploration, without any task.

    Every episode of every world begins at one place, as in the published code: the one that
    the simulators were given, or one that the key draws.

    Args:
        simulators: one for each world, of one scene.
        max_steps: of an episode.
        random_starts: every episode begins somewhere else.
    """
    number, grid = len(simulators), make_grid(simulators)

    def init(key: PRNGKeyArray) -> tuple[Agents, Step]:
        bits = jax.random.bits(key, (number,), jnp.uint32)
        seeds = bits if random_starts else jnp.broadcast_to(bits[0], bits.shape)
        nowhere = jnp.zeros((number, 3))
        agents = Agents(
            position=nowhere,
            heading=jnp.zeros(number),
            reached=nowhere,
            seeds=seeds,
            played=jnp.zeros(number, jnp.int32),
            visits=jnp.zeros(grid.shape, jnp.int32),
            cuts=jnp.zeros((), jnp.int32),
        )
        followed = _follow(simulators, agents, jnp.ones(number, bool), None)
        agents = _after(agents, followed, random_starts)
        agents = agents._replace(visits=visit(grid, agents.visits, agents.position))
        return agents, _see(followed, agents.played, jnp.zeros(number, bool))

    def step(agents: Agents, actions: Int[Array, " N"]) -> tuple[Agents, Step]:
        played = agents.played + 1
        ended = played >= max_steps
        followed = _follow(simulators, agents, ended, actions)
        ended = ended | followed.cut
        after = _after(agents, followed, random_starts & ended)
        after = after._replace(
            played=jnp.where(ended, 0, played),
            visits=visit(grid, agents.visits, followed.reached),
            cuts=agents.cuts + followed.cut.sum(dtype=jnp.int32),
        )
        return after, _see(followed, played, ended)

    return World[Agents](
        init=init,
        step=step,
        refresh=lambda agents: agents,
        report=report,
        num_worlds=number,
        num_actions=len(ACTIONS),
        view_shape=VIEW_SHAPE,
        environments=(simulators.scene_name,),
        max_steps=max_steps,
    )


def report(agents: Agents) -> dict[str, Float[Array, ""]]:
    """Returns how many distinct positions were visited, and how many episodes were cut."""
    return {
        "positions": (agents.visits > 0).sum().astype(jnp.float32),
        "episodes_cut": agents.cuts.astype(jnp.float32),
    }


def make_grid(simulators: Simulators) -> Grid:
    """Returns the cells of all positions that the scene has."""
    drawn = simulators.floor_map(CELL)
    x, z = drawn.corner
    rows, columns = drawn.walkable.shape
    first = round(z / CELL) - 1, round(x / CELL) - 1
    return Grid(first, (rows + 3, columns + 3))


def visit(
    grid: Grid, visits: Int[Array, "rows columns"], position: Float[Array, "N 3"]
) -> Int[Array, "rows columns"]:
    """Counts a visit of each position; any beyond the edge counts for the cell at the edge."""
    cells = jnp.round(position[:, (2, 0)] / CELL).astype(jnp.int32) - jnp.array(grid.first)
    cells = jnp.clip(cells, 0, jnp.array(grid.shape) - 1)
    return visits.at[cells[:, 0], cells[:, 1]].add(1)


def _follow(
    simulators: Simulators,
    agents: Agents,
    ends: Bool[Array, " N"],
    actions: Int[Array, " N"] | None,
) -> Followed:
    """Makes the simulators play; the only place where the host is asked."""
    number = len(simulators)
    shapes = Followed(
        view=jax.ShapeDtypeStruct((number, *VIEW_SHAPE), jnp.uint8),
        panorama=jax.ShapeDtypeStruct((number, _PIXELS), jnp.uint8),
        position=jax.ShapeDtypeStruct((number, 3), jnp.float32),
        heading=jax.ShapeDtypeStruct((number,), jnp.float32),
        reached=jax.ShapeDtypeStruct((number, 3), jnp.float32),
        cut=jax.ShapeDtypeStruct((number,), jnp.bool_),
    )
    play = simulators.begin if actions is None else simulators.play
    arguments = (agents.position, agents.heading, agents.seeds, ends)
    asked = partial(io_callback, play, shapes, ordered=True)
    followed: Followed = asked(*arguments) if actions is None else asked(*arguments, actions)
    return followed


def _after(agents: Agents, followed: Followed, draw: Bool[Array, " N"] | bool) -> Agents:
    return agents._replace(
        position=followed.position,
        heading=followed.heading,
        reached=followed.reached,
        seeds=jnp.where(draw, _next_seed(agents.seeds), agents.seeds),
    )


def _next_seed(seeds: UInt32[Array, " N"]) -> UInt32[Array, " N"]:
    """Returns other seeds, all 2^32 of them before the first comes again."""
    return seeds * jnp.uint32(747796405) + jnp.uint32(2891336453)


def _see(followed: Followed, played: Int[Array, " N"], ended: Bool[Array, " N"]) -> Step:
    never = jnp.zeros_like(ended)
    return Step(
        view=followed.view,
        panorama=followed.panorama,
        reward=jnp.zeros(ended.shape),
        success=never,
        terminated=never,
        truncated=ended,
        length=played,
        environment=jnp.zeros(ended.shape, jnp.int32),
        interaction=jnp.zeros((*ended.shape, 2), jnp.uint32),
    )
