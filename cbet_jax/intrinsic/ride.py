"""RIDE: reward big changes of the embedded view, to views rare in their episode.

Raileanu and Rocktaeschel, 2020. RIDE counts states as Count does, but resets the counts at the
end of each episode. It learns its embedding as Curiosity does.
"""

import jax
from jaxtyping import Array, Float, PRNGKeyArray

from cbet_jax.config import TrainSettings
from cbet_jax.intrinsic.count import REWARD
from cbet_jax.intrinsic.count_based import Memory, count_based_in_episodes
from cbet_jax.intrinsic.curiosity import curiosity
from cbet_jax.intrinsic.types import EMBEDDING_COEFFICIENT, Intrinsic, Params
from cbet_jax.networks.embedding import Embedding, apply, distance
from cbet_jax.types import Trajectory
from envs.types import Step


def ride(settings: TrainSettings, num_actions: int) -> Intrinsic:
    """Return RIDE: reward ||phi(s') - phi(s)|| / sqrt(N_episode(s')).

    Paper, appendix "Algorithms Details"; the published code takes the norm, the paper its square.

    Raises:
        SettingsError: the settings ask for counts that outlive an episode.
    """
    auxiliary = settings.auxiliary
    embedding = Embedding(auxiliary.channels)
    count = count_based_in_episodes("ride", REWARD, settings)
    curious = curiosity(settings, num_actions)

    def init(key: PRNGKeyArray, step: Step) -> tuple[Params, Memory]:
        count_key, networks_key = jax.random.split(key)
        return curious.init(networks_key, step)[0], count.init(count_key, step)[1]

    def reward(params: Params, trajectory: Trajectory) -> Float[Array, "T N"]:
        embedded = apply(embedding, params.learnt["embedding"], trajectory.view)
        impact = distance(embedded[1:], embedded[:-1], squared=auxiliary.squared_norms)
        return impact * count.reward(params, trajectory)

    return count._replace(
        coefficient=EMBEDDING_COEFFICIENT, init=init, reward=reward, loss=curious.loss
    )
