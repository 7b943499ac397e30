"""RND: reward views whose random features are hard to predict (Burda et al., 2018)."""

import jax
from jaxtyping import Array, Float, Num, PRNGKeyArray

from cbet_jax.config import AuxiliarySettings, TrainSettings
from cbet_jax.intrinsic.interface import EMBEDDING_COEFFICIENT, Intrinsic, Loss, Params, Reward
from cbet_jax.losses import sequence_mean
from cbet_jax.networks.embedding import Embedding, apply, distance, init_params
from cbet_jax.types import Trajectory
from envs.types import Step


def rnd(settings: TrainSettings, num_actions: int) -> Intrinsic:
    """Return RND: reward ||predictor(s') - target(s')||, where the target is never trained.

    Paper, appendix "Algorithms Details"; the published code takes the norm, the paper its square.
    """
    auxiliary = settings.auxiliary
    network = Embedding(auxiliary.channels)

    def init(key: PRNGKeyArray, step: Step) -> tuple[Params, tuple[()]]:
        return init_both(network, key, step), ()

    def reward(params: Params, trajectory: Trajectory) -> tuple[Reward, Loss]:
        embedded = embed_both(network, params, trajectory.reached)
        error = distance(*embedded, squared=auxiliary.squared_norms)
        return error, prediction_loss(error, auxiliary)

    final = auxiliary.final_views
    return Intrinsic("rnd", EMBEDDING_COEFFICIENT, reward, init, panoramas=False, final_views=final)


def init_both(network: Embedding, key: PRNGKeyArray, step: Step) -> Params:
    """Return initial parameters of the predictor and the target."""
    predictor_key, target_key = jax.random.split(key)
    learnt = {"predictor": init_params(network, predictor_key, step.view[None])}
    return Params(learnt, {"target": init_params(network, target_key, step.view[None])})


def embed_both(
    network: Embedding, params: Params, view: Num[Array, "*shape height width 3"]
) -> tuple[Float[Array, "*shape numbers"], Float[Array, "*shape numbers"]]:
    """Return the predictor's and the target's embeddings of views."""
    predicted = apply(network, params.learnt["predictor"], view)
    return predicted, apply(network, params.fixed["target"], view)


def prediction_loss(error: Float[Array, "T N"], settings: AuxiliarySettings) -> Loss:
    """Return the predictor's loss, weighted and (as its term) unweighted."""
    mean = sequence_mean(error)
    return settings.prediction_weight * mean, {"prediction_loss": mean}
