"""RIDE: reward big changes of the embedded view, to views rare in their episode.

Raileanu and Rocktaeschel, 2020. RIDE counts states as Count does, but resets the counts at the
end of each episode. It learns its embedding as Curiosity does.
"""

from cbet_jax.config import TrainSettings
from cbet_jax.counts.resets import within_episodes
from cbet_jax.intrinsic.count import REWARD
from cbet_jax.intrinsic.count_based import count_based, with_networks
from cbet_jax.intrinsic.curiosity import curiosity
from cbet_jax.intrinsic.interface import EMBEDDING_COEFFICIENT, Intrinsic, Loss, Params, Reward
from cbet_jax.intrinsic.inverse_forward import make_models, models_loss, predict
from cbet_jax.networks.embedding import distance
from cbet_jax.types import Trajectory


def ride(settings: TrainSettings, num_actions: int) -> Intrinsic:
    """Return RIDE: reward ||phi(s') - phi(s)|| / sqrt(N_episode(s')).

    Paper, appendix "Algorithms Details"; the published code takes the norm, the paper its square.

    Raises:
        SettingsError: counts would outlive an episode, or no final view is a panorama.
    """
    auxiliary = settings.auxiliary
    models = make_models(auxiliary, num_actions)
    resets = within_episodes("ride", settings.counts, at_success=True)
    count = count_based("ride", REWARD, settings, resets)

    def reward(params: Params, trajectory: Trajectory) -> tuple[Reward, Loss]:
        predictions = predict(models, params.learnt, trajectory)
        before, after = predictions.before, predictions.after
        impact = distance(after, before, squared=auxiliary.squared_norms)
        rarity, _ = count.reward_and_loss(params, trajectory)
        return impact * rarity, models_loss(predictions, trajectory.steps.action, auxiliary)

    return with_networks(count, curiosity(settings, num_actions), EMBEDDING_COEFFICIENT, reward)
