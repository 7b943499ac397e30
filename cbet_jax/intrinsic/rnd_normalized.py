"""RND as its own paper has it: views and rewards are normalised (Burda et al., 2018).

`rnd` is RND as C-BET's paper compares with it. This one belongs to a network with two value heads
(`--network.value-heads 2`), whose intrinsic return goes on past an episode's end.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, UInt8

from cbet_jax.config import BRIGHTEST_PIXEL, TrainSettings
from cbet_jax.intrinsic.interface import Experience, Intrinsic, Loss, Params, Reward, each_step
from cbet_jax.intrinsic.rnd import embed_both, init_both, prediction_loss
from cbet_jax.intrinsic.running_moments import Moments, begin, include
from cbet_jax.networks.embedding import Embedding
from cbet_jax.types import SameType, Trajectory, strays
from envs.types import Step

COEFFICIENT = 1.0  # weight of the intrinsic return (their table 5)
LEAST = 1e-3  # deviation to divide by; the mean of equal bytes is rounded by at most 1.5e-5
FURTHEST = 5.0  # views are clipped so many deviations from the mean (section 2.4)


class Signal(NamedTuple):
    """The record of a step."""

    error: Float[Array, " N"]  # error of the predictor when the step was played
    discounted: Float[Array, " N"]  # discounted sum of the errors so far


def rnd_normalized(settings: TrainSettings, num_actions: int) -> Intrinsic:
    """Return RND: reward mean((predictor(s') - target(s'))^2) over a running standard deviation.

    It is that of the discounted sum of rewards, which continues across episodes. Views are
    normalised by their running mean and standard deviation, number by number, and clipped (Burda et
    al., section 2.4). Theirs learns from a quarter of the views with Adam, ours from all with
    RMSProp; their moments begin with the views of a random policy, ours with mean 0, variance 1.
    """
    network = Embedding(settings.auxiliary.channels)
    discount = settings.loss.intrinsic_discount

    def init(key: PRNGKeyArray, step: Step) -> tuple[Params, Float[Array, " N"]]:
        learnt, fixed = init_both(network, key, step)
        moments = {"views": begin(*step.view.shape[1:]), "returns": begin()}
        return Params(learnt, fixed | moments), jnp.zeros(len(step.view))

    def errors(params: Params, view: UInt8[Array, "T N height width 3"]) -> Float[Array, "T N"]:
        # The embedding divides what it is given by the brightest pixel.
        seen = normalized(view, params.fixed["views"]) * BRIGHTEST_PIXEL
        predicted, target = embed_both(network, params, seen)
        return ((predicted - target) ** 2).mean(-1)

    def observe(
        params: Params, memory: Float[Array, " N"], key: PRNGKeyArray, experience: Experience
    ) -> tuple[Float[Array, " N"], Signal]:
        (error,) = errors(params, experience.step.reached[None])
        error = jnp.where(strays(experience.step), 0.0, error)
        discounted = discount * memory + error
        return discounted, Signal(error, discounted)

    def adapt(params: Params, trajectory: Trajectory, mean: SameType) -> Params:
        views = include(params.fixed["views"], trajectory.reached.astype(jnp.float32), mean)
        returns = include(params.fixed["returns"], trajectory.signal.discounted, mean)
        return params._replace(fixed={**params.fixed, "views": views, "returns": returns})

    def reward(params: Params, trajectory: Trajectory) -> tuple[Reward, Loss]:
        bonus = trajectory.signal.error / params.fixed["returns"].deviation
        return bonus, prediction_loss(errors(params, trajectory.reached), settings.auxiliary)

    return Intrinsic(
        "rnd-normalized",
        COEFFICIENT,
        reward,
        init=init,
        observe=each_step(observe),
        adapt=adapt,
        panoramas=False,
        final_views=True,
    )


def normalized(
    view: UInt8[Array, "T N height width 3"], moments: Moments
) -> Float[Array, "T N height width 3"]:
    """Return views as deviations from their mean, clipped; numbers that never change become 0."""
    far = (view - moments.mean) / jnp.maximum(moments.deviation, LEAST)
    return jnp.clip(far, -FURTHEST, FURTHEST)
