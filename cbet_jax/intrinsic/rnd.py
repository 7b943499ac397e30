"""RND: views whose random features are not yet known (Burda et al., 2018)."""

import jax
from jaxtyping import Array, Float, PRNGKeyArray

from cbet_jax.config import AuxiliarySettings
from cbet_jax.intrinsic.none import none
from cbet_jax.intrinsic.types import Intrinsic, Metrics, Params
from cbet_jax.networks.embedding import Embedding, apply, distance, draw, sequence_loss
from cbet_jax.types import Trajectory
from envs.types import Step

COEFFICIENT = 0.1  # of the reward (paper, appendix "hyperparameters")


def rnd(settings: AuxiliarySettings) -> Intrinsic:
    """Returns the RND method: reward ||predictor(s') - target(s')||, the target fixed."""
    network = Embedding(settings.channels)

    def init(key: PRNGKeyArray, step: Step) -> tuple[Params, tuple[()]]:
        predictor_key, target_key = jax.random.split(key)
        views = step.view[None]
        return Params(
            learnt={"predictor": draw(network, predictor_key, views)},
            fixed={"target": draw(network, target_key, views)},
        ), ()

    def reward(params: Params, trajectory: Trajectory) -> Float[Array, "T N"]:
        views = trajectory.view[1:]
        predicted = apply(network, params.learnt["predictor"], views)
        target = apply(network, params.fixed["target"], views)
        return distance(predicted, target, squared=settings.squared_norms)

    def loss(params: Params, trajectory: Trajectory) -> tuple[Float[Array, ""], Metrics]:
        error = sequence_loss(reward(params, trajectory))
        return settings.prediction_weight * error, {"prediction_loss": error}

    return none()._replace(name="rnd", coefficient=COEFFICIENT, init=init, reward=reward, loss=loss)
