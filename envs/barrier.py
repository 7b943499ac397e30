"""A barrier for the compiler, in programs for CPUs."""

from collections.abc import Sequence
from typing import Any

import jax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir


def materialize[Arrays](arrays: Arrays) -> Arrays:
    """Return the same arrays; on a CPU they are computed once and stored in memory.

    XLA fuses the operations that make an array into each operation that reads it, so the array is
    computed again for every reader. That saves memory traffic where the array is cheap to compute,
    and wastes time where it is not: a hash of a panorama, a line of sight (seven times faster on a
    CPU with a barrier), a look-up in a large table. XLA does not fuse across a barrier, and does
    not reorder a matrix product with the transposes around it either. No value changes.

    A GPU has the arithmetic to spare, but each kernel that it starts costs time: programs for
    other platforms than CPUs have no barrier. The platform is the one that a program is lowered
    for, so one process can write programs for several.

    Args:
        arrays: an array, or a tree of arrays.
    """
    leaves, tree = jax.tree.flatten(arrays)
    return jax.tree.unflatten(tree, _barrier.bind(*leaves)) if leaves else arrays


def _on_cpu(*arrays: Any) -> Sequence[Any]:
    return jax.lax.optimization_barrier(arrays)


_barrier = Primitive("cpu_barrier")
_barrier.multiple_results = True
_barrier.def_impl(lambda *arrays: list(arrays))
_barrier.def_abstract_eval(lambda *avals: list(avals))
mlir.register_lowering(_barrier, lambda _, *values: values)
mlir.register_lowering(_barrier, mlir.lower_fun(_on_cpu, multiple_results=True), platform="cpu")
batching.primitive_batchers[_barrier] = lambda arrays, axes: (_barrier.bind(*arrays), axes)
ad.primitive_jvps[_barrier] = lambda arrays, tangents: (_barrier.bind(*arrays), list(tangents))
