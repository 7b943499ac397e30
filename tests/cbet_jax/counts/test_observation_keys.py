"""Which observations and changes have equal keys."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.config import CountSettings
from cbet_jax.counts.observation_keys import exact_keys, key_maker, ternary_keys

KEY = jax.random.key(0)


def _observation(*numbers):
    """One number an actor, shown all over."""
    return jnp.asarray(np.repeat(np.array(numbers, np.uint8)[:, None], 12, axis=1))


def _keys(maker, first, observations):
    """Return the keys of each observation, as one integer an actor."""
    make, state, found = jax.jit(maker.make), jax.jit(maker.init)(KEY, first), []
    for each in observations:
        state, (keys,) = make(state, each[None])
        found.append(_integers(keys))
    return found


def _integers(keys):
    return [int(low) << 32 | int(high) for low, high in np.asarray(keys)]


def _classes(keys):
    """Return which of the keys of the first actor are equal, as numbers from 0."""
    known = []
    for key, *_ in keys:
        if key not in known:
            known.append(key)
    return [known.index(key) for key, *_ in keys]


def test_exact_keys_of_observations_are_equal_where_these_are():
    observations = [_observation(number) for number in (1, 2, 1, 255, 2)]
    assert _classes(_keys(exact_keys(of_changes=False), _observation(0), observations)) == [
        *(0, 1, 0, 2, 1)
    ]


def test_exact_keys_of_changes_are_equal_where_the_differences_are():
    """The differences are +1, +1, -1, +3, 0."""
    observations = [_observation(number) for number in (6, 7, 6, 9, 9)]
    keys = _keys(exact_keys(of_changes=True), _observation(5), observations)
    assert _classes(keys) == [0, 0, 1, 2, 3]


def test_exact_keys_do_not_depend_on_the_actor():
    ((one, other),) = _keys(exact_keys(of_changes=False), _observation(0, 0), [_observation(3, 3)])
    assert one == other


def _ternary(*, of_changes, shared=False):
    settings = CountSettings(keys="ternary", shared=shared)
    return ternary_keys(settings, of_changes=of_changes)


@pytest.mark.parametrize(("of_changes", "expected"), [(False, [0, 0, 0, 1]), (True, [0, 0, 1, 1])])
def test_images_of_one_code_have_one_key(of_changes, expected):
    """Numbers that large drive tanh to its ends: only their signs tell them apart.

    The changes are +100, +100, -100, -100.
    """
    observations = [_observation(number) for number in (100, 200, 100, 0)]
    keys = _keys(_ternary(of_changes=of_changes), _observation(0), observations)
    assert _classes(keys) == expected


@pytest.mark.parametrize(("shared", "codes"), [(False, 3), (True, 1)])
def test_each_actor_has_a_code_unless_they_count_together(shared, codes):
    maker, seen = _ternary(of_changes=False, shared=shared), _observation(5, 5, 5)
    projection = np.asarray(jax.jit(maker.init)(KEY, seen).codes.projection)
    assert len(np.unique(projection.reshape(codes, -1), axis=0)) == codes == len(projection)
    (keys,) = _keys(maker, seen, [seen])
    assert len(set(keys)) == codes


@pytest.mark.parametrize("of_changes", [False, True])
@pytest.mark.parametrize("kind", ["exact", "ternary"])
def test_the_keys_of_a_whole_rollout_are_those_of_its_steps(kind, of_changes):
    maker = key_maker(CountSettings(keys=kind), of_changes=of_changes)
    numbers = np.random.default_rng(1).integers(0, 3, (8, 2)) * 100
    first, *observations = [_observation(*each) for each in numbers]
    state = jax.jit(maker.init)(KEY, first)
    after, keys = jax.jit(maker.make)(state, np.stack(observations))
    assert list(map(_integers, keys)) == _keys(maker, first, observations)
    _, keys = jax.jit(maker.make)(after, np.stack(observations))  # of the rollout after it
    assert list(map(_integers, keys)) == _keys(maker, observations[-1], observations)
