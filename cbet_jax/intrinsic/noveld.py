"""NovelD: reward steps beyond the boundary of what is known (Zhang et al., 2021).

BeBold (2020) is its earlier form. Novelty is RND's prediction error.
"""

import jax
import jax.numpy as jnp

from cbet_jax.config import TrainSettings
from cbet_jax.counts.resets import within_episodes
from cbet_jax.intrinsic.count import REWARD
from cbet_jax.intrinsic.count_based import STATES, count_based, with_networks
from cbet_jax.intrinsic.interface import Intrinsic, Loss, Params, Reward
from cbet_jax.intrinsic.rnd import embed_both, prediction_loss, rnd
from cbet_jax.networks.embedding import Embedding, distance
from cbet_jax.types import Trajectory, strays

COEFFICIENT = 0.05  # weight in their command for MiniGrid's ObstructedMaze-2Dlhb
ALPHA = 0.5  # weight of the previous view's novelty
ENDS = 8  # one in so many steps may end an episode; of more, the later ones are paid nothing


def noveld(settings: TrainSettings, num_actions: int) -> Intrinsic:
    """Return NovelD: reward max(e(s') - ALPHA e(s), 0) at the first visit of s' in the episode.

    e is the norm of RND's error (Zhang et al., section 3). Their code counts the whole grid, the
    agent included, and RND's networks read the features of a frozen random encoder; here both see
    the view. They train the predictor with Adam; here all networks of methods learn by RMSProp. The
    last step of an episode is paid for its final view: nothing where the world does not give it, or
    panoramas are counted, of which none is final.

    Raises:
        SettingsError: the settings ask for counts that outlive an episode.
    """
    auxiliary = settings.auxiliary
    network = Embedding(auxiliary.channels)
    resets = within_episodes("noveld", settings.counts, at_success=False)
    count = count_based("noveld", REWARD, settings, resets)

    def reward(params: Params, trajectory: Trajectory) -> tuple[Reward, Loss]:
        steps = trajectory.steps
        predicted, target = embed_both(network, params, trajectory.view)
        novelty = distance(predicted, target, squared=False)
        after = novelty[1:]
        if steps.final_view is not None:  # embedding all of them would take as long again
            ended = steps.ended
            room = {"size": -(-len(ended) // ENDS), "fill_value": len(ended)}  # in each sequence
            places = jax.vmap(lambda ends: jnp.nonzero(ends, **room)[0], 1, 1)(ended)
            at = places, jnp.arange(ended.shape[1])
            final = distance(*embed_both(network, params, steps.final_view[at]), squared=False)
            after = jnp.where(ended, 0.0, after).at[at].set(final, mode="drop")
        first = (trajectory.signal[STATES] == 1) & ~strays(steps)
        rewards = jnp.maximum(after - ALPHA * novelty[:-1], 0.0) * first
        error = distance(predicted[1:], target[1:], squared=auxiliary.squared_norms)
        return rewards, prediction_loss(error, auxiliary)

    networks = rnd(settings, num_actions)._replace(final_views=not count.panoramas)
    return with_networks(count, networks, COEFFICIENT, reward)
