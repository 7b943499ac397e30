"""RIDE: big changes of the embedded view, to views rare in their episode.

Raileanu and Rocktaeschel, 2020. It counts as Count does, forgets at each episode's end, and
its embedding learns as Curiosity's does.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from cbet_jax.config import AuxiliarySettings, CountSettings, SettingsError
from cbet_jax.intrinsic.count import REWARD
from cbet_jax.intrinsic.count_based import Tallies, counting
from cbet_jax.intrinsic.curiosity import curiosity
from cbet_jax.intrinsic.types import Intrinsic, Params
from cbet_jax.networks.embedding import Embedding, apply, distance
from cbet_jax.types import Trajectory
from envs.types import Step

COEFFICIENT = 0.1  # of the reward (paper, appendix "hyperparameters")


def ride(counts: CountSettings, settings: AuxiliarySettings, num_actions: int) -> Intrinsic:
    """Returns the RIDE method: reward ||phi(s') - phi(s)|| / sqrt(N_episode(s')).

    Raises:
        SettingsError: counts that do not belong to one actor's one episode are asked for.
    """
    if counts.shared or counts.reset_probability is not None:
        raise SettingsError(
            "ride counts within an episode: leave counts.shared and counts.reset_probability out"
        )
    embedding = Embedding(settings.channels)
    count = counting("ride", REWARD, counts, at_the_end)
    curious = curiosity(settings, num_actions)

    def init(key: PRNGKeyArray, step: Step) -> tuple[Params, Tallies]:
        count_key, networks_key = jax.random.split(key)
        return curious.init(networks_key, step)[0], count.init(count_key, step)[1]

    def reward(params: Params, trajectory: Trajectory) -> Float[Array, "T N"]:
        embedded = apply(embedding, params.learnt["embedding"], trajectory.view)
        impact = distance(embedded[1:], embedded[:-1], squared=settings.squared_norms)
        return impact * count.reward(params, trajectory)

    return count._replace(coefficient=COEFFICIENT, init=init, reward=reward, loss=curious.loss)


def at_the_end(
    key: PRNGKeyArray, step: Step, shape: tuple[int, int]
) -> Bool[Array, "kinds tables"]:
    """Forgets what was counted when the simulator says "done", at each success of an explorer, too.

    The first view of an episode is counted before that, as one more of the episode that ended.
    """
    return jnp.broadcast_to(step.terminated | step.truncated | step.success, shape)
