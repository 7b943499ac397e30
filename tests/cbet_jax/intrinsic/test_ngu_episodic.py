"""NGU's episodic bonus, beside numpy that sorts all distances of the episode."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.config import AuxiliarySettings, TrainSettings
from cbet_jax.intrinsic.episode_memory import NEIGHBOURS, nearest
from cbet_jax.intrinsic.ngu_episodic import bonus_of, ngu_episodic
from cbet_jax.networks.embedding import Embedding, apply
from cbet_jax.program import make_program, seed_keys
from cbet_jax.types import unchanged
from envs.minigrid.generators import GENERATORS
from tests.support import tiny
from tests.support.moments import moment, observed, trajectory
from tests.support.worlds import corridor, single_env

STEPS, ACTORS, ACTIONS = 30, 2, 3
SETTINGS = TrainSettings(auxiliary=AuxiliarySettings(channels=(2, 2), hidden_units=4))
METHOD = ngu_episodic(SETTINGS, ACTIONS)


@jax.jit
def _observe(first, steps):
    params, _, signal = observed(METHOD, first, steps)
    embed = partial(apply, Embedding(SETTINGS.auxiliary.channels), params.learnt["embedding"])
    seen = embed(jnp.concatenate([first.view[None], steps.view]))
    return params, signal, seen, embed(steps.reached)


@jax.jit
def _rewarded(params, played):
    adapted = METHOD.adapt(params, played, unchanged)
    return adapted.fixed["distance"].mean, METHOD.reward_and_loss(adapted, played)[0]


@pytest.mark.parametrize("known", [False, True])
def test_the_bonus_is_the_kernel_over_the_nearest_views_of_the_episode(known):
    """The first actor's episode ends twice; the second one's is longer than k, with revisits.

    A known final view is paid in the episode that it ends.
    """
    random = np.random.default_rng(0)
    numbers = random.integers(40, size=(STEPS + 1, ACTORS))
    ended = np.zeros((STEPS + 1, ACTORS), bool)
    ended[[4, 9], 0] = True
    final = np.where(ended, random.integers(40, size=ended.shape), numbers)
    first = moment(numbers[0])
    moments = zip(numbers[1:], final[1:] if known else [None] * STEPS, strict=True)
    moments = [moment(number, final=last) for number, last in moments]
    steps = jax.tree.map(lambda *leaves: jnp.stack(leaves), *moments)
    found = _observe(first, steps._replace(truncated=jnp.asarray(ended[1:])))
    params, signal, *embedded = found
    phi, reached = (np.asarray(each, np.float64) for each in embedded)

    nearest = {}
    for actor in range(ACTORS):
        seen = [phi[0, actor]]
        for step in range(1, STEPS + 1):
            over = ended[step, actor]
            here, known_views = reached[step - 1, actor], [] if over and not known else seen
            distances = sorted(((here - other) ** 2).sum() for other in known_views)
            nearest[step - 1, actor] = distances[:NEIGHBOURS]
            seen = [phi[step, actor]] if over else [*seen, here]
    assert {len(each) for each in nearest.values()} == set(range(int(known), NEIGHBOURS + 1))
    mean = np.mean([np.mean(each) if each else 0.0 for each in nearest.values()])
    bonus = np.zeros((STEPS, ACTORS))
    for at, distances in nearest.items():
        kernel = 1e-4 / (np.maximum(np.array(distances) / mean - 0.008, 0) + 1e-4)
        bonus[at] = 1 / (np.sqrt(kernel.sum()) + 0.001) if distances else 0.0

    played = trajectory(numbers, np.zeros((STEPS, ACTORS)), signal=signal, num_actions=ACTIONS)
    found, reward = _rewarded(params, played)
    np.testing.assert_allclose(found, mean, rtol=1e-4)
    np.testing.assert_allclose(reward, bonus / bonus.std(), rtol=1e-3)
    assert METHOD.coefficient == 0.001
    assert bonus.max() > 20 * bonus[bonus > 0].min()  # a new view beside a familiar one


@pytest.mark.parametrize(
    ("world", "asked", "views"),
    [("DoorKey-16x16", None, 2560), ("DoorKey-16x16", 30, 30), ("corridor", None, NEIGHBOURS)],
)
def test_a_run_remembers_as_many_views_as_its_longest_episode_has(world, asked, views):
    auxiliary = replace(SETTINGS.auxiliary, episode_views=asked)
    settings = replace(tiny.SETTINGS, method="ngu-episodic", auxiliary=auxiliary)
    played = corridor(tiny.WORLDS) if world == "corridor" else single_env(world, tiny.WORLDS)
    program = make_program(settings, played, 1, 1)
    memory = jax.eval_shape(program.init, seed_keys(1)).memory
    assert memory.views.shape[:3] == (1, tiny.WORLDS, views)


def test_a_view_is_known_after_the_longest_episode():
    """View A, then B until the episode is over, then A."""
    longest = max(generator.max_steps for generator in GENERATORS.values())
    assert longest == 3600
    place = jnp.ones(longest).at[jnp.array([0, -1])].set(0.0)[:, None]
    known = jnp.arange(longest - 1) < longest

    @jax.jit
    def bonus():
        near = jax.tree.map(lambda leaf: leaf[None], nearest(place[-1:], place[:-1], known[None]))
        return bonus_of(near, jnp.asarray(1.0))

    np.testing.assert_allclose(bonus(), 0.999, atol=1e-3)
