"""The paper's chain: where it leads, and its rewards by hand."""

import jax
import jax.numpy as jnp
import numpy as np

from cbet_jax.intrinsic.cbet import REWARD as CBET
from cbet_jax.intrinsic.count import REWARD as COUNT
from experiments.illustrations.chain import GO_TO_B, GO_TO_D, PLACES, chain, fresh_rewards


def test_the_rewards_of_an_episode_that_begins_with_empty_counts():
    """B, C, B, C, B and D, D, D, D: by hand."""
    loop = fresh_rewards(CBET, GO_TO_B, 5)
    np.testing.assert_allclose(loop, [1 / 2, 1 / 2, 1 / 3, 1 / 4, 1 / 5], rtol=1e-6)
    stay = fresh_rewards(CBET, GO_TO_D, 4)
    np.testing.assert_allclose(stay, [1 / 2, 1 / 3, 1 / 5, 1 / 7], rtol=1e-6)
    states = fresh_rewards(COUNT, GO_TO_B, 4)
    np.testing.assert_allclose(states, [1, 1, 2**-0.5, 2**-0.5], rtol=1e-6)


def test_the_chain_leads_where_it_should():
    world = chain(2, steps=4)
    state, step = world.init(jax.random.key(0))
    places, ended = [step.view[:, 0, 0, 0]], []
    for _ in range(5):
        state, step = world.step(state, jnp.array([GO_TO_B, GO_TO_D]))
        places.append(step.view[:, 0, 0, 0])
        ended.append(bool(step.truncated.all()))
    walked = ["".join(PLACES[place] for place in actor) for actor in np.array(places).T]
    assert walked == ["ABCBAB", "ADDDAD"]
    assert ended == [False, False, False, True, False]
