"""E3B: reward views far from those of the episode so far (Henaff et al., 2022).

The distance is the elliptical norm of the inverse covariance of embedded views.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from cbet_jax.config import TrainSettings
from cbet_jax.intrinsic.interface import Experience, Intrinsic, Loss, Params, Reward, each_step
from cbet_jax.intrinsic.inverse_forward import make_inverse_embedding
from cbet_jax.intrinsic.running_moments import begin, include
from cbet_jax.types import SameType, Trajectory
from envs.types import Step

COEFFICIENT = 1.0  # weight of normalised bonuses in their command for MiniHack
RIDGE = 0.1  # lambda in the same command

#: the inverse of each actor's RIDGE I + sum phi phi^T, over the views of its episode
type Memory = Float[Array, "N numbers numbers"]


def e3b(settings: TrainSettings, num_actions: int) -> Intrinsic:
    """Return E3B: reward phi(s')^T C^-1 phi(s'), where C covers the views before s'.

    phi learns by predicting the action between two views (Henaff et al., algorithm 1). As in
    their experiments, the bonus is divided by its running standard deviation. They train with Adam;
    here all networks of methods learn by RMSProp.
    """
    embedding = make_inverse_embedding(settings.auxiliary, num_actions)

    def init(key: PRNGKeyArray, step: Step) -> tuple[Params, Memory]:
        learnt, seen = embedding.init(key, step)
        start = jnp.broadcast_to(jnp.eye(seen.shape[-1]) / RIDGE, (*seen.shape, seen.shape[-1]))
        _, inverse = jax.vmap(visit)(start, seen)
        return Params(learnt, {"bonus": begin()}), inverse

    def observe(
        params: Params, memory: Memory, key: PRNGKeyArray, experience: Experience
    ) -> tuple[Memory, Float[Array, " N"]]:
        step = experience.step
        seen = embedding.embed(params, step)
        ended = step.terminated | step.truncated | step.success  # as RIDE counts
        start = jnp.eye(seen.shape[-1]) / RIDGE
        # The view is then the first one of the next episode.
        before = jnp.where(ended[:, None, None], start, memory)
        bonus, inverse = jax.vmap(visit)(before, seen)
        return inverse, bonus

    def adapt(params: Params, trajectory: Trajectory, mean: SameType) -> Params:
        bonus = include(params.fixed["bonus"], trajectory.signal, mean)
        return params._replace(fixed={"bonus": bonus})

    def reward(params: Params, trajectory: Trajectory) -> tuple[Reward, Loss]:
        bonus = trajectory.signal / params.fixed["bonus"].deviation
        return bonus, embedding.loss(params, trajectory)

    return Intrinsic(
        "e3b",
        COEFFICIENT,
        reward,
        init=init,
        observe=each_step(observe),
        adapt=adapt,
        panoramas=False,
    )


def visit(
    inverse: Float[Array, "numbers numbers"], seen: Float[Array, " numbers"]
) -> tuple[Float[Array, ""], Float[Array, "numbers numbers"]]:
    """Return the bonus of an embedded view, and C^-1 with it (Sherman and Morrison, 1950)."""
    projected = inverse @ seen
    bonus = seen @ projected
    return bonus, inverse - jnp.outer(projected, projected) / (1.0 + bonus)
