"""A batch of simulators as one `World`: each step is a single ordered host callback.

The device holds the whole state (poses, steps, seeds of the next starts), and the host makes
the simulators follow it. A step is therefore a function of its arguments, as in gridworlds, and a
resumed run in new processes sees the same observations as an uninterrupted one.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental import io_callback
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped, UInt32

from envs.habitat.simulator import ACTIONS, PANORAMA_SHAPE, VIEW_SHAPE
from envs.habitat.workers.simulators import HostStep, Simulators
from envs.types import Step, World

MAX_STEPS = 500  # steps of an episode (paper, appendix on Habitat)
CELL = 0.05  # metres; rounding of positions before distinct ones are counted
UNMEASURED = ("success", "extrinsic_return", "interactions")  # no task, no movable objects
_PIXELS = math.prod(PANORAMA_SHAPE)


class Agents(NamedTuple):
    """The state of `N` agents, and the visits to all positions."""

    position: Float[Array, "N 3"]
    heading: Float[Array, " N"]  # degrees
    reached: Float[Array, "N 3"]  # position after the last action, before a reset
    seeds: UInt32[Array, " N"]  # seeds of the next episodes' starts
    played: Int[Array, " N"]  # steps played in the current episode
    visits: Int[Array, "rows columns"]  # above 0 where an agent was (x, z rounded to `CELL`)
    cuts: Int[Array, ""]  # episodes cut short by the loss of their simulator


class Grid(NamedTuple):
    """The rounded positions of the cells of `Agents.visits`."""

    first: tuple[int, int]  # row (z) and column (x) of the first cell, in multiples of `CELL`
    shape: tuple[int, int]


def habitat_world(
    simulators: Simulators,
    *,
    max_steps: int = MAX_STEPS,
    random_starts: bool = False,
    shared_start: bool = False,
) -> World[Agents]:
    """Return a batch of worlds for exploration without a task.

    As in the published code, all episodes of a world start at the same place, drawn from the random
    key, with heading 0.

    Args:
        simulators: one simulator for each world, all in the same scene.
        max_steps: time limit of an episode.
        random_starts: whether each episode starts at a different random place.
        shared_start: whether all worlds have the same start (unless `random_starts`).
    """
    num_worlds, grid = len(simulators), make_grid(simulators)
    call_host = partial(_call_host, num_worlds)

    def init(key: PRNGKeyArray) -> tuple[Agents, Step]:
        bits = jax.random.bits(key, (num_worlds,), jnp.uint32)
        one_place = shared_start and not random_starts
        seeds = jnp.broadcast_to(bits[0], bits.shape) if one_place else bits
        result = call_host(simulators.begin, seeds)
        agents = Agents(
            position=result.position,
            heading=result.heading,
            reached=result.reached,
            seeds=_next_seed(seeds) if random_starts else seeds,
            played=jnp.zeros(num_worlds, jnp.int32),
            visits=visit(grid, jnp.zeros(grid.shape, jnp.int32), result.position),
            cuts=jnp.zeros((), jnp.int32),
        )
        return agents, _observe(result, agents.played, jnp.zeros(num_worlds, bool))

    def step(
        agents: Agents, actions: Int[Array, " N"], *, final: bool = False
    ) -> tuple[Agents, Step]:
        played = agents.played + 1
        ended = played >= max_steps
        ask = partial(simulators.step, final=True) if final else simulators.step
        result = call_host(
            ask, agents.position, agents.heading, agents.seeds, ended, actions, final=final
        )
        ended = ended | result.cut
        visits = visit(grid, agents.visits, result.reached)
        visits = visit(grid, visits, result.position) if random_starts else visits
        seeds = jnp.where(random_starts & ended, _next_seed(agents.seeds), agents.seeds)
        after = Agents(
            position=result.position,
            heading=result.heading,
            reached=result.reached,
            seeds=seeds,
            played=jnp.where(ended, 0, played),
            visits=visits,
            cuts=agents.cuts + result.cut.sum(dtype=jnp.int32),
        )
        return after, _observe(result, played, ended)

    return World[Agents](
        init=init,
        step=step,
        step_with_final=partial(step, final=True),
        report=report,
        num_worlds=num_worlds,
        num_actions=len(ACTIONS),
        view_shape=VIEW_SHAPE,
        environments=(simulators.scene_name,),
        max_steps=max_steps,
        unmeasured=UNMEASURED,
    )


def report(agents: Agents) -> dict[str, Float[Array, ""]]:
    """Return the numbers of distinct positions visited and of episodes cut short."""
    return {
        "positions": (agents.visits > 0).sum().astype(jnp.float32),
        "episodes_cut": agents.cuts.astype(jnp.float32),
    }


def make_grid(simulators: Simulators) -> Grid:
    """Return a grid with a cell for every position in the scene."""
    floor = simulators.floor_map(CELL)
    x, z = floor.corner
    rows, columns = floor.walkable.shape
    return Grid((round(z / CELL) - 1, round(x / CELL) - 1), (rows + 3, columns + 3))


def visit(
    grid: Grid, visits: Int[Array, "rows columns"], position: Float[Array, "N 3"]
) -> Int[Array, "rows columns"]:
    """Mark each position as visited. Positions outside the grid count for the nearest cell."""
    cells = jnp.round(position[:, (2, 0)] / CELL).astype(jnp.int32) - jnp.array(grid.first)
    cells = jnp.clip(cells, 0, jnp.array(grid.shape) - 1)
    return visits.at[cells[:, 0], cells[:, 1]].add(1)


def _call_host(
    num_worlds: int,
    ask: Callable[..., HostStep],
    *arguments: Shaped[Array, "..."],
    final: bool = False,
) -> HostStep:
    """Make the simulators start episodes or take a step, in one ordered callback."""
    view = jax.ShapeDtypeStruct((num_worlds, *VIEW_SHAPE), jnp.uint8)
    shapes = HostStep(
        view=view,
        panorama=jax.ShapeDtypeStruct((num_worlds, _PIXELS), jnp.uint8),
        position=jax.ShapeDtypeStruct((num_worlds, 3), jnp.float32),
        heading=jax.ShapeDtypeStruct((num_worlds,), jnp.float32),
        reached=jax.ShapeDtypeStruct((num_worlds, 3), jnp.float32),
        cut=jax.ShapeDtypeStruct((num_worlds,), jnp.bool_),
        final_view=view if final else None,
    )
    result: HostStep = io_callback(ask, shapes, *arguments, ordered=True)
    return result


def _next_seed(seeds: UInt32[Array, " N"]) -> UInt32[Array, " N"]:
    """Return the next seeds, from a sequence that repeats only after all 2^32 values."""
    return seeds * jnp.uint32(747796405) + jnp.uint32(2891336453)


def _observe(result: HostStep, played: Int[Array, " N"], ended: Bool[Array, " N"]) -> Step:
    step = Step.without_task(result.view, result.panorama, played, ended)
    return step._replace(final_view=result.final_view)
