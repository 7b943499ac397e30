"""Curiosity: reward views that the forward model fails to predict (Pathak et al., 2017)."""

from jaxtyping import PRNGKeyArray

from cbet_jax.config import TrainSettings
from cbet_jax.intrinsic import inverse_forward
from cbet_jax.intrinsic.interface import EMBEDDING_COEFFICIENT, Intrinsic, Loss, Params, Reward
from cbet_jax.types import Trajectory
from envs.types import Step


def curiosity(settings: TrainSettings, num_actions: int) -> Intrinsic:
    """Return Curiosity: reward ||forward(phi(s), a) - phi(s')||.

    Paper, appendix "Algorithms Details"; the published code takes the norm, the paper its square.
    """
    auxiliary = settings.auxiliary
    models = inverse_forward.make_models(auxiliary, num_actions)

    def init(key: PRNGKeyArray, step: Step) -> tuple[Params, tuple[()]]:
        return Params(inverse_forward.init_models(models, key, step), {}), ()

    def reward(params: Params, trajectory: Trajectory) -> tuple[Reward, Loss]:
        predictions = inverse_forward.predict(models, params.learnt, trajectory)
        error = inverse_forward.prediction_error(predictions, auxiliary)
        return error, inverse_forward.models_loss(predictions, trajectory.steps.action, auxiliary)

    final = auxiliary.final_views
    return Intrinsic(
        "curiosity", EMBEDDING_COEFFICIENT, reward, init=init, panoramas=False, final_views=final
    )
