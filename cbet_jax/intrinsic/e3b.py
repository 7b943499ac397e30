"""E3B: reward views far from those of the episode so far (Henaff et al., 2022).

Far is meant in an elliptical norm: that of the inverse covariance of their embeddings.
"""

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from cbet_jax.config import TrainSettings
from cbet_jax.intrinsic.inverse_forward import InverseModel
from cbet_jax.intrinsic.running import begin, include
from cbet_jax.intrinsic.types import Experience, Intrinsic, Metrics, Params
from cbet_jax.losses import sequence_mean
from cbet_jax.networks.embedding import Embedding, apply, init_params
from cbet_jax.types import SameType, Trajectory
from envs.types import Step

COEFFICIENT = 1.0  # of bonuses divided by their running deviation, as their command for MiniHack
RIDGE = 0.1  # lambda, of the same command


#: the inverse of each actor's RIDGE I + sum phi phi^T, over the views of its episode
type Memory = Float[Array, "N numbers numbers"]


def e3b(settings: TrainSettings, num_actions: int) -> Intrinsic:
    """Return E3B: reward phi(s')^T C^-1 phi(s'), where C^-1 is of the views before s'.

    phi learns by predicting the action between two views (Henaff et al., algorithm 1). In their
    experiments the bonus is divided by its running standard deviation; so it is here. They train
    with Adam; here all networks of methods learn by RMSProp.
    """
    embedding = Embedding(settings.auxiliary.channels)
    inverse_model = InverseModel(settings.auxiliary.hidden_units, num_actions)

    def init(key: PRNGKeyArray, step: Step) -> tuple[Params, Memory]:
        embedding_key, model_key = jax.random.split(key)
        views = step.view[None]
        phi = init_params(embedding, embedding_key, views)
        seen = apply(embedding, phi, views)
        learnt = {"embedding": phi, "inverse": init_params(inverse_model, model_key, seen, seen)}
        start = jnp.broadcast_to(jnp.eye(seen.shape[-1]) / RIDGE, (*seen.shape[1:], seen.shape[-1]))
        _, inverse = jax.vmap(visit)(start, seen[0])
        return Params(learnt, {"bonus": begin()}), inverse

    def observe(
        params: Params, memory: Memory, key: PRNGKeyArray, experience: Experience
    ) -> tuple[Memory, Float[Array, " N"]]:
        step = experience.step
        (seen,) = apply(embedding, params.learnt["embedding"], step.view[None])
        ended = step.terminated | step.truncated | step.success  # as RIDE counts
        start = jnp.eye(seen.shape[-1]) / RIDGE
        # The view is then the first one of the next episode.
        before = jnp.where(ended[:, None, None], start, memory)
        bonus, inverse = jax.vmap(visit)(before, seen)
        return inverse, bonus

    def adapt(params: Params, trajectory: Trajectory, mean: SameType) -> Params:
        bonus = include(params.fixed["bonus"], trajectory.signal, mean)
        return params._replace(fixed={"bonus": bonus})

    def reward(params: Params, trajectory: Trajectory) -> Float[Array, "T N"]:
        return trajectory.signal / params.fixed["bonus"].deviation

    def loss(params: Params, trajectory: Trajectory) -> tuple[Float[Array, ""], Metrics]:
        seen = apply(embedding, params.learnt["embedding"], trajectory.view)
        logits = apply(inverse_model, params.learnt["inverse"], seen[:-1], seen[1:])
        error = sequence_mean(
            optax.softmax_cross_entropy_with_integer_labels(logits, trajectory.steps.action)
        )
        return settings.auxiliary.inverse_weight * error, {"inverse_loss": error}

    return Intrinsic("e3b", COEFFICIENT, reward, init=init, observe=observe, adapt=adapt, loss=loss)


def visit(
    inverse: Float[Array, "numbers numbers"], seen: Float[Array, " numbers"]
) -> tuple[Float[Array, ""], Float[Array, "numbers numbers"]]:
    """Return the bonus of an embedded view, and C^-1 with it (Sherman and Morrison, 1950)."""
    projected = inverse @ seen
    bonus = seen @ projected
    return bonus, inverse - jnp.outer(projected, projected) / (1.0 + bonus)
