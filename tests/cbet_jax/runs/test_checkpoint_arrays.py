"""The arrays of a checkpoint: those that fit the template come back, others are refused by name."""

import sys
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.runs import checkpoint_arrays
from cbet_jax.runs.checkpoint_arrays import OtherProgramError


def tree():
    """Return a tree with all that needs care: a key, an empty array, and ordinary arrays."""
    return {
        "key": jax.random.split(jax.random.key(3), 2),
        "nothing": jnp.zeros((2, 0)),
        "params": {"kernel": jnp.arange(6.0).reshape(2, 3), "steps": jnp.arange(2)},
    }


def test_keys_and_empty_arrays_come_back(tmp_path):
    checkpoint_arrays.save_arrays(tmp_path, tree())
    loaded = checkpoint_arrays.load_arrays(tmp_path, jax.eval_shape(tree))
    assert jax.random.key_impl(loaded["key"]) == jax.random.key_impl(tree()["key"])
    loaded, saved = (checkpoint_arrays.on_host(each) for each in (loaded, tree()))
    assert list(loaded) == list(saved) == ["key", "nothing", "params.kernel", "params.steps"]
    for name, array in saved.items():
        np.testing.assert_array_equal(loaded[name], array, strict=True)


def test_arrays_can_be_read_by_name(tmp_path):
    checkpoint_arrays.save_arrays(tmp_path, tree())
    named = checkpoint_arrays.read_arrays(tmp_path, {"params.steps", "none of this name"})
    assert {name: array.tolist() for name, array in named.items()} == {"params.steps": [0, 1]}
    stored = checkpoint_arrays.read_arrays(tmp_path)
    shapes = checkpoint_arrays.array_shapes(tmp_path)
    assert {name: (a.shape, a.dtype) for name, a in stored.items()} == {
        name: (shape.shape, shape.dtype) for name, shape in shapes.items()
    }
    assert "nothing" not in stored


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"kernel": jnp.zeros((2, 4))}, r"params\.kernel is float32\[2, 3\], not float32\[2, 4\]"),
        ({"steps": jnp.zeros(2)}, r"params\.steps is int32\[2\], not float32\[2\]"),
        ({"bias": jnp.zeros(2)}, r"params\.bias is missing, not float32\[2\]"),
    ],
)
def test_another_program_is_refused_by_name(change, why, tmp_path):
    checkpoint_arrays.save_arrays(tmp_path, tree())
    other = {**tree(), "params": {**tree()["params"], **change}}
    with pytest.raises(OtherProgramError, match=why):
        checkpoint_arrays.load_arrays(tmp_path, other)


def test_writers_that_end_after_a_failure_print_nothing(monkeypatch):
    """They report to a loop that is closed, from threads of their own; other reports are shown."""
    shown = []
    monkeypatch.setattr(sys, "unraisablehook", lambda raised: shown.append(str(raised.exc_value)))
    with pytest.raises(OSError, match="full"), checkpoint_arrays._quiet():
        raise OSError("full")
    for line in ("Event loop is closed", "something else"):
        sys.unraisablehook(SimpleNamespace(exc_value=RuntimeError(line)))
    assert shown == ["something else"]
