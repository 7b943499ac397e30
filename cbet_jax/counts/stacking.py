"""A stack of a few numbers, written for each platform as it is fastest.

The platform is the one that a program is lowered for, as in `envs.barrier`.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import batching, mlir
from jaxtyping import Array, UInt32


def stack(*numbers: UInt32[Array, ""]) -> UInt32[Array, " numbers"]:
    """Return the numbers in one array.

    XLA gives a concatenation a kernel of its own on a GPU. Numbers that are selected by their place
    are stacked in the kernel that reads them.
    """
    stacked: Array = _stack.bind(*numbers)
    return stacked


def _concatenated(*arrays: Array) -> Array:
    return jnp.stack(arrays)


def _selected(*arrays: Array) -> Array:
    shape = *arrays[0].shape, len(arrays)
    place = jax.lax.broadcasted_iota(jnp.int32, shape, len(shape) - 1)
    stacked = jnp.broadcast_to(arrays[-1][..., None], shape)
    for index, array in enumerate(arrays[:-1]):
        stacked = jnp.where(place == index, array[..., None], stacked)
    return jnp.moveaxis(stacked, -1, 0)


def _batched(arrays: Any, axes: Any) -> tuple[Array, int]:
    each = list(zip(arrays, axes, strict=True))
    size = next(array.shape[axis] for array, axis in each if axis is not None)
    return _stack.bind(*(batching.bdim_at_front(array, axis, size) for array, axis in each)), 1


_stack = Primitive("stack")
_stack.def_impl(_concatenated)
_stack.def_abstract_eval(lambda *avals: avals[0].update(shape=(len(avals), *avals[0].shape)))
mlir.register_lowering(_stack, mlir.lower_fun(_selected, multiple_results=False))
mlir.register_lowering(
    _stack, mlir.lower_fun(_concatenated, multiple_results=False), platform="cpu"
)
batching.primitive_batchers[_stack] = _batched
