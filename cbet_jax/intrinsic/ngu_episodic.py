"""NGU's episodic bonus: reward views unlike those of the episode so far (Badia et al., 2020).

NGU multiplies it by RND's error, which outlives episodes; here it is the whole reward.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from cbet_jax.config import TrainSettings
from cbet_jax.intrinsic.interface import Experience, Intrinsic, Loss, Params, Reward, each_step
from cbet_jax.intrinsic.inverse_forward import make_inverse_embedding
from cbet_jax.intrinsic.running_moments import begin, include
from cbet_jax.types import SameType, Trajectory, strays
from envs.barrier import materialize
from envs.types import Step

# The paper's values, and those of DEIR's code (Wan et al., 2023) for NGU in MiniGrid.
NEIGHBOURS = 10  # k
EPSILON = 1e-4  # keeps the kernel finite
CLUSTER = 0.008  # xi, taken off normalised squared distances; smaller ones become 0
CONSTANT = 1e-3  # c
COEFFICIENT = 1e-3  # weight of normalised bonuses in commands for that code in DoorKey-8x8
SLOTS = 640  # views that are remembered where the longest episode is not known


class Memory(NamedTuple):
    """The embedded views of each actor's episode."""

    views: Float[Array, "N slots numbers"]
    number: Int[Array, " N"]  # number of views so far; view i is in slot i % slots


class Signal(NamedTuple):
    """The record of a step."""

    distances: Float[Array, "N neighbours"]  # squared, to the nearest; 0 where there are fewer
    number: Int[Array, " N"]  # number of neighbours


def ngu_episodic(settings: TrainSettings, num_actions: int) -> Intrinsic:
    """Return NGU's episodic bonus: 1 / (sqrt(sum of K over the neighbours) + c).

    K = epsilon / (max(d^2 / d_m^2 - xi, 0) + epsilon), where d_m^2 is the running mean of the
    squared distances. phi learns by predicting the action between two views (Badia et al., section
    2 and algorithm 1). The first view of an episode has no neighbour and no bonus. The paper's
    largest similarity, 8, exceeds that of ten neighbours, so it is left out.

    The memory takes 4 bytes for each actor, view and number of phi.
    """
    embedding = make_inverse_embedding(settings.auxiliary, num_actions)

    def init(key: PRNGKeyArray, step: Step) -> tuple[Params, Memory]:
        learnt, seen = embedding.init(key, step)
        fixed = {"distance": begin(), "bonus": begin()}
        return Params(learnt, fixed), begin_memory(settings, seen)

    def observe(
        params: Params, memory: Memory, key: PRNGKeyArray, experience: Experience
    ) -> tuple[Memory, Signal]:
        return visit_step(memory, experience.step, partial(embedding.embed, params))

    def adapt(params: Params, trajectory: Trajectory, mean: SameType) -> Params:
        near, before = trajectory.signal, params.fixed["distance"]
        average = near.distances.sum(-1) / jnp.maximum(near.number, 1)
        distance = include(before, jnp.where(near.number > 0, average, before.mean), mean)
        bonus = include(params.fixed["bonus"], bonus_of(near, distance.mean), mean)
        return params._replace(fixed={"distance": distance, "bonus": bonus})

    def reward(params: Params, trajectory: Trajectory) -> tuple[Reward, Loss]:
        bonus = bonus_of(trajectory.signal, params.fixed["distance"].mean)
        return bonus / params.fixed["bonus"].deviation, embedding.loss(params, trajectory)

    return Intrinsic(
        "ngu-episodic",
        COEFFICIENT,
        reward,
        init=init,
        observe=each_step(observe),
        adapt=adapt,
        panoramas=False,
        final_views=True,
    )


def begin_memory(settings: TrainSettings, seen: Float[Array, "N numbers"]) -> Memory:
    """Return the memory of the first embedded views."""
    actors, numbers = seen.shape
    slots = max(settings.auxiliary.episode_views or SLOTS, NEIGHBOURS)
    nothing = Memory(jnp.zeros((actors, slots, numbers)), jnp.zeros(actors, jnp.int32))
    return jax.vmap(visit)(nothing, seen)[1]


def visit_step(
    memory: Memory, step: Step, embed: Callable[[Array], Array]
) -> tuple[Memory, Signal]:
    """Visit the embedded views that actions led to; next episodes begin with their first views."""
    memory = memory._replace(number=jnp.where(strays(step), 0, memory.number))
    signal, memory = jax.vmap(visit)(memory, embed(step.reached))
    if step.final_view is None:
        return memory, signal
    ended, before = step.terminated | step.truncated, memory.views[:, 0]
    first = jax.lax.cond(ended.any(), lambda: embed(step.view), lambda: before)
    views = memory.views.at[:, 0].set(jnp.where(ended[:, None], first, before))
    return Memory(views, jnp.where(ended, 1, memory.number)), signal


def visit(memory: Memory, seen: Float[Array, " numbers"]) -> tuple[Signal, Memory]:
    """Return the distances of an embedded view to the nearest remembered ones; remember it."""
    # Read before the memory is written, which lets XLA update it in place.
    squared, before = materialize((((memory.views - seen) ** 2).sum(-1), memory.views))
    slots = len(before)
    known = jnp.arange(slots) < memory.number
    nearest = -jax.lax.top_k(-jnp.where(known, squared, jnp.inf), NEIGHBOURS)[0]
    signal = Signal(jnp.where(jnp.isinf(nearest), 0.0, nearest), jnp.isfinite(nearest).sum())
    views = before.at[memory.number % slots].set(seen)
    return signal, Memory(views, memory.number + 1)


def bonus_of(near: Signal, mean_distance: Float[Array, ""]) -> Float[Array, "T N"]:
    """Return the bonus; 0 where there is no neighbour."""
    normalised = near.distances / jnp.maximum(mean_distance, 1e-8)
    kernel = EPSILON / (jnp.maximum(normalised - CLUSTER, 0.0) + EPSILON)
    kernel = jnp.where(jnp.arange(NEIGHBOURS) < near.number[..., None], kernel, 0.0)
    return jnp.where(near.number > 0, 1 / (jnp.sqrt(kernel.sum(-1)) + CONSTANT), 0.0)
