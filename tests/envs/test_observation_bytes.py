"""Observations as bytes."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.observation_bytes import make_view


@pytest.mark.parametrize(
    ("seen", "bounds", "view"),
    [
        (np.float32([0, 0.5, 1, 9]), (0, 1), [[[0, 128, 255], [255, 0, 0]]]),
        (np.float32([-1, 3]), ([-1, 1], [1, 5]), [[[0, 128, 0]]]),
        (np.uint8([[[1, 2, 3]], [[4, 5, 6]]]), None, [[[1, 2, 3]], [[4, 5, 6]]]),
        (np.uint8([[[1, 2, 3, 4]] * 2]), None, [[[1, 2, 3]] * 2 + [[4, 0, 0]] * 2]),
        (np.array([[True, False]]), None, [[[1, 0, 0], [0, 0, 0]]]),
        (np.int32(300), (0, 499), [[[44, 1, 0]]]),
        (np.int32(-2), (-3, 5), [[[1, 0, 0]]]),
        (np.int32([-1]), None, [[[255, 255, 255], [127, 0, 0]]]),
        (np.uint32([2**32 - 2]), None, [[[254, 255, 255], [255, 0, 0]]]),
        (np.uint32(3 * 10**9 + 1), (3 * 10**9, 4 * 10**9), [[[1, 0, 0], [0, 0, 0]]]),
    ],
)
def test_observations_become_images_of_bytes(seen, bounds, view):
    shape = jax.ShapeDtypeStruct(seen.shape, seen.dtype)
    bytes_of, view_shape = make_view(shape, bounds)
    found, counted = bytes_of(jnp.asarray(seen)[None])
    np.testing.assert_array_equal(found[0], view)
    assert found.dtype == counted.dtype == jnp.uint8
    assert found.shape[1:] == view_shape


def test_flags_are_bytes_in_a_loop_too():
    """XLA has no clip of flags."""
    flags = jnp.array([[[True, False]], [[False, False]]])
    bytes_of, _ = make_view(jax.ShapeDtypeStruct((2,), bool), None)
    found, _ = jax.lax.map(bytes_of, flags)
    np.testing.assert_array_equal(found[:, 0, 0, 0, 0], [1, 0])


def test_counts_may_tell_fewer_levels_apart():
    seen = jax.ShapeDtypeStruct((2,), jnp.float32)
    bytes_of, _ = make_view(seen, (0, 1), levels=4)
    _, counted = bytes_of(jnp.array([[0.0, 0.24], [0.26, 1.0]]))
    np.testing.assert_array_equal(counted, [[0, 0], [1, 3]])


@pytest.mark.parametrize(
    ("seen", "options", "line"),
    [
        (jax.ShapeDtypeStruct((2,), jnp.float32), {}, r"give bounds=\(low, high\)"),
        (jax.ShapeDtypeStruct((2,), jnp.float32), {"bounds": (1, 1)}, "each low below its high"),
        (jax.ShapeDtypeStruct((2,), jnp.float32), {"bounds": (0, np.inf)}, "finite"),
        (jax.ShapeDtypeStruct((2,), jnp.int32), {"bounds": (0, np.inf)}, "finite"),
        (jax.ShapeDtypeStruct((2,), jnp.float32), {"bounds": (-3e38, 3e38)}, "their ranges"),
        (jax.ShapeDtypeStruct((2,), jnp.float32), {"bounds": ([1] * 3, [2] * 3)}, r"shape \(2,\)"),
        (jax.ShapeDtypeStruct((2,), jnp.uint8), {"bounds": (300, 400)}, "in uint8's range"),
        (jax.ShapeDtypeStruct((2,), jnp.float32), {"bounds": (0, 1), "levels": 1}, "2 to 256"),
        (jax.ShapeDtypeStruct((2,), jnp.float32), {"bounds": (0, 1), "levels": 2.5}, "not 2.5"),
        (jax.ShapeDtypeStruct((2,), jnp.complex64), {}, "must hold numbers, not complex64"),
        ({"image": 1}, {}, "one array, not a dict"),
    ],
)
def test_what_cannot_be_seen_is_told_in_one_line(seen, options, line):
    unchecked = inspect.unwrap(make_view)  # only tests check the types
    with pytest.raises(ValueError, match=line):
        unchecked(seen, **{"bounds": None, **options})
