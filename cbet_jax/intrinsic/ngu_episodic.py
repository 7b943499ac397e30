"""NGU's episodic bonus: reward views unlike those of the episode so far (Badia et al., 2020).

NGU multiplies it by RND's error, which outlives episodes; here it is the whole reward.
"""

from functools import partial

import jax.numpy as jnp
from jaxtyping import Array, Float, Key, PRNGKeyArray

from cbet_jax.config import TrainSettings
from cbet_jax.intrinsic.episode_memory import (
    NEIGHBOURS,
    Memory,
    Signal,
    begin_memory,
    visit_rollout,
)
from cbet_jax.intrinsic.interface import Experience, Intrinsic, Loss, Params, Reward
from cbet_jax.intrinsic.inverse_forward import make_inverse_embedding
from cbet_jax.intrinsic.running_moments import begin, include
from cbet_jax.types import SameType, Trajectory
from envs.types import Step

# The paper's values (`NEIGHBOURS` is k), and those of DEIR's code (Wan et al., 2023) in MiniGrid.
EPSILON = 1e-4  # keeps the kernel finite
CLUSTER = 0.008  # xi, taken off normalised squared distances; smaller ones become 0
CONSTANT = 1e-3  # c
COEFFICIENT = 1e-3  # weight of normalised bonuses in commands for that code in DoorKey-8x8


def ngu_episodic(settings: TrainSettings, num_actions: int) -> Intrinsic:
    """Return NGU's episodic bonus: 1 / (sqrt(sum of K over the neighbours) + c).

    K = epsilon / (max(d^2 / d_m^2 - xi, 0) + epsilon), where d_m^2 is the running mean of the
    squared distances. phi learns by predicting the action between two views (Badia et al., section
    2 and algorithm 1). The first view of an episode has no neighbour and no bonus. The paper's
    largest similarity, 8, exceeds that of ten neighbours, so it is left out.
    """
    embedding = make_inverse_embedding(settings.auxiliary, num_actions)

    def init(key: PRNGKeyArray, step: Step) -> tuple[Params, Memory]:
        learnt, seen = embedding.init(key, step)
        fixed = {"distance": begin(), "bonus": begin()}
        return Params(learnt, fixed), begin_memory(settings, seen)

    def observe(
        params: Params, memory: Memory, keys: Key[Array, " T"], experience: Experience
    ) -> tuple[Memory, Signal]:
        return visit_rollout(memory, experience.step, partial(embedding.embed, params))

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
        observe=observe,
        adapt=adapt,
        panoramas=False,
        final_views=True,
    )


def bonus_of(near: Signal, mean_distance: Float[Array, ""]) -> Float[Array, "T N"]:
    """Return the bonus; 0 where there is no neighbour."""
    normalised = near.distances / jnp.maximum(mean_distance, 1e-8)
    kernel = EPSILON / (jnp.maximum(normalised - CLUSTER, 0.0) + EPSILON)
    kernel = jnp.where(jnp.arange(NEIGHBOURS) < near.number[..., None], kernel, 0.0)
    return jnp.where(near.number > 0, 1 / (jnp.sqrt(kernel.sum(-1)) + CONSTANT), 0.0)
