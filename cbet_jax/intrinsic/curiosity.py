"""Curiosity: views that could not be foreseen (Pathak et al., 2017)."""

from jaxtyping import Array, Float, PRNGKeyArray

from cbet_jax.config import AuxiliarySettings
from cbet_jax.intrinsic.inverse_forward import draw_models, make_models, models_loss, predict
from cbet_jax.intrinsic.none import none
from cbet_jax.intrinsic.types import Intrinsic, Metrics, Params
from cbet_jax.networks.embedding import distance
from cbet_jax.types import Trajectory
from envs.types import Step

COEFFICIENT = 0.1  # of the reward (paper, appendix "hyperparameters")


def curiosity(settings: AuxiliarySettings, num_actions: int) -> Intrinsic:
    """Returns the Curiosity method: reward ||forward(phi(s), a) - phi(s')||."""
    models = make_models(settings, num_actions)

    def init(key: PRNGKeyArray, step: Step) -> tuple[Params, tuple[()]]:
        return Params(draw_models(models, key, step), {}), ()

    def reward(params: Params, trajectory: Trajectory) -> Float[Array, "T N"]:
        predictions = predict(models, params.learnt, trajectory)
        squared = settings.squared_norms
        return distance(predictions.foreseen, predictions.after, squared=squared)

    def loss(params: Params, trajectory: Trajectory) -> tuple[Float[Array, ""], Metrics]:
        predictions = predict(models, params.learnt, trajectory)
        return models_loss(predictions, trajectory.action, settings)

    return none()._replace(
        name="curiosity", coefficient=COEFFICIENT, init=init, reward=reward, loss=loss
    )
