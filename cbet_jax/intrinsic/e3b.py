"""E3B: reward views far from those of the episode so far (Henaff et al., 2022).

The distance is the elliptical norm of the inverse covariance of embedded views.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key, PRNGKeyArray

from cbet_jax.config import TrainSettings
from cbet_jax.intrinsic.interface import Experience, Intrinsic, Loss, Params, Reward, each_actor
from cbet_jax.intrinsic.inverse_forward import make_inverse_embedding
from cbet_jax.intrinsic.running_moments import Moments, begin, include
from cbet_jax.types import SameType, Trajectory
from envs.types import Step

COEFFICIENT = 1.0  # weight of normalised bonuses in their command for MiniHack
RIDGE = 0.1  # lambda in the same command
BATCH = 8  # B, sequences in their batch


class Memory(NamedTuple):
    """The covariance of each actor's views in its episode, before the one that it acts in next."""

    inverse: Float[Array, "N numbers numbers"]  # of RIDGE I + sum phi phi^T
    empty: Bool[Array, " N"]  # the episode has no view yet


def e3b(settings: TrainSettings, num_actions: int) -> Intrinsic:
    """Return E3B: reward phi(s)^T C^-1 phi(s), where C covers the views before s.

    As in their code, the view s acted in is paid, and the first view of an episode is paid 0.
    phi learns by predicting the action between two views (Henaff et al., algorithm 1). The bonus is
    divided by a running scale, see `scale_of`. They train with Adam, also on actions that end an
    episode; here all networks of methods learn by RMSProp.
    """
    embedding = make_inverse_embedding(settings.auxiliary, num_actions)

    def init(key: PRNGKeyArray, step: Step) -> tuple[Params, Memory]:
        learnt, seen = embedding.init(key, step)
        start = jnp.broadcast_to(jnp.eye(seen.shape[-1]) / RIDGE, (*seen.shape, seen.shape[-1]))
        return Params(learnt, {"bonus": begin()}), Memory(start, jnp.ones(len(seen), bool))

    def observe(
        params: Params, memory: Memory, keys: Key[Array, " T"], experience: Experience
    ) -> tuple[Memory, Float[Array, "T N"]]:
        ended = experience.step.ended
        seen = embedding.embed(params, experience.view)
        start = jnp.eye(seen.shape[-1]) / RIDGE

        def visit_view(memory: Memory, step: tuple[Array, Array]) -> tuple[Memory, Array]:
            seen, ends = step
            bonus, inverse = visit(memory.inverse, seen)
            after = Memory(jnp.where(ends, start, inverse), ends)
            return after, jnp.where(memory.empty, 0.0, bonus)

        def of_actor(actor: tuple[Memory, tuple[Array, Array]]) -> tuple[Memory, Array]:
            return jax.lax.scan(visit_view, *actor)

        memory, bonus = each_actor(of_actor, (memory, (jnp.moveaxis(seen, 1, 0), ended.T)))
        return memory, bonus.T

    def adapt(params: Params, trajectory: Trajectory, mean: SameType) -> Params:
        bonus = include(params.fixed["bonus"], trajectory.signal, mean)
        return params._replace(fixed={"bonus": bonus})

    def reward(params: Params, trajectory: Trajectory) -> tuple[Reward, Loss]:
        bonus = trajectory.signal / scale_of(params.fixed["bonus"])
        return bonus, embedding.loss(params, trajectory)

    return Intrinsic(
        "e3b", COEFFICIENT, reward, init=init, observe=observe, adapt=adapt, panoramas=False
    )


def scale_of(bonus: Moments) -> Float[Array, ""]:
    """Return what their code divides by: sqrt(B (variance + (B - 1)^2 mean^2)).

    The paper says the running standard deviation. Their code takes the T x B bonuses of a batch for
    T: its mean is B times too large. How much larger this is than the deviation depends on the
    policy, so no coefficient could stand for it; with it, their coefficient means the same.
    """
    return jnp.sqrt(BATCH * (bonus.variance + (BATCH - 1) ** 2 * bonus.mean**2))


def visit(
    inverse: Float[Array, "numbers numbers"], seen: Float[Array, " numbers"]
) -> tuple[Float[Array, ""], Float[Array, "numbers numbers"]]:
    """Return the bonus of an embedded view, and C^-1 with it (Sherman and Morrison, 1950)."""
    projected = inverse @ seen
    bonus = seen @ projected
    return bonus, inverse - jnp.outer(projected, projected) / (1.0 + bonus)
