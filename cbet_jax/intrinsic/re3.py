"""RE3: reward views far from the others of the episode, in a random embedding (Seo et al., 2021).

The paper compares a view with those of a replay buffer; here with those of its episode, as the
other rewards within episodes do.
"""

from functools import partial

import jax.numpy as jnp
from jaxtyping import Array, Float, Key, PRNGKeyArray

from cbet_jax.config import TrainSettings
from cbet_jax.intrinsic.episode_memory import Memory, Signal, begin_memory, visit_rollout
from cbet_jax.intrinsic.interface import Experience, Intrinsic, Params, Reward
from cbet_jax.intrinsic.running_moments import begin, include
from cbet_jax.networks.embedding import Embedding, apply, init_params
from cbet_jax.types import SameType, Trajectory
from envs.types import Step

# Those of the authors' code for MiniGrid.
NEIGHBOURS = 5  # k
COEFFICIENT = 0.005  # their command for DoorKey-6x6


def re3(settings: TrainSettings, num_actions: int) -> Intrinsic:
    """Return RE3: log(1 + d / sigma), d the mean distance to the k nearest views of the episode.

    Seo et al., section 4.1; their code for MiniGrid takes the mean, and divides by sigma, the
    running standard deviation of d. The embedding is random and never learns. The first view of an
    episode has no neighbour and no reward.
    """
    network = Embedding(settings.auxiliary.channels)

    def init(key: PRNGKeyArray, step: Step) -> tuple[Params, Memory]:
        encoder = init_params(network, key, step.view[None])
        seen = apply(network, encoder, step.view[None])[0]
        return Params({}, {"encoder": encoder, "distance": begin()}), begin_memory(settings, seen)

    def observe(
        params: Params, memory: Memory, keys: Key[Array, " T"], experience: Experience
    ) -> tuple[Memory, Signal]:
        embed = partial(apply, network, params.fixed["encoder"])
        return visit_rollout(memory, experience.step, embed)

    def adapt(params: Params, trajectory: Trajectory, mean: SameType) -> Params:
        distance = include(params.fixed["distance"], mean_distance(trajectory.signal), mean)
        return params._replace(fixed={**params.fixed, "distance": distance})

    def reward(params: Params, trajectory: Trajectory) -> Reward:
        return jnp.log1p(mean_distance(trajectory.signal) / params.fixed["distance"].deviation)

    return Intrinsic(
        "re3",
        COEFFICIENT,
        reward,
        init=init,
        observe=observe,
        adapt=adapt,
        panoramas=False,
        final_views=True,
    )


def mean_distance(near: Signal) -> Float[Array, "T N"]:
    """Return the mean distance to the nearest views, or to all if they are fewer; 0 without any."""
    number = jnp.clip(near.number, 1, NEIGHBOURS)
    return jnp.sqrt(near.distances[..., :NEIGHBOURS]).sum(-1) / number
