"""RND: reward views whose random features are hard to predict (Burda et al., 2018)."""

import jax
from jaxtyping import Array, Float, PRNGKeyArray

from cbet_jax.config import TrainSettings
from cbet_jax.intrinsic.types import EMBEDDING_COEFFICIENT, Intrinsic, Metrics, Params
from cbet_jax.losses import sequence_mean
from cbet_jax.networks.embedding import (
    Embedding,
    apply,
    distance,
    init_params,
)
from cbet_jax.types import Trajectory
from envs.types import Step


def rnd(settings: TrainSettings, num_actions: int) -> Intrinsic:
    """Return RND: reward ||predictor(s') - target(s')||, where the target is never trained.

    Paper, appendix "Algorithms Details"; the published code takes the norm, the paper its square.
    """
    auxiliary = settings.auxiliary
    network = Embedding(auxiliary.channels)

    def init(key: PRNGKeyArray, step: Step) -> tuple[Params, tuple[()]]:
        predictor_key, target_key = jax.random.split(key)
        view = step.view[None]
        return Params(
            learnt={"predictor": init_params(network, predictor_key, view)},
            fixed={"target": init_params(network, target_key, view)},
        ), ()

    def reward(params: Params, trajectory: Trajectory) -> Float[Array, "T N"]:
        next_view = trajectory.view[1:]
        predicted = apply(network, params.learnt["predictor"], next_view)
        target = apply(network, params.fixed["target"], next_view)
        return distance(predicted, target, squared=auxiliary.squared_norms)

    def loss(params: Params, trajectory: Trajectory) -> tuple[Float[Array, ""], Metrics]:
        error = sequence_mean(reward(params, trajectory))
        return auxiliary.prediction_weight * error, {"prediction_loss": error}

    return Intrinsic("rnd", EMBEDDING_COEFFICIENT, reward, init=init, loss=loss, panoramas=False)
