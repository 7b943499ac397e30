"""A fusion barrier for programs on CPUs, and the order of arrays in memory."""

import jax
from jax import Array
from jax.experimental import layout


def materialize[Arrays](arrays: Arrays) -> Arrays:
    """Return the same arrays, computed once and stored in memory on a CPU.

    XLA fuses a producer into every consumer and so recomputes it for each. A barrier prevents that
    where recomputing is slow: hashes of panoramas, lines of sight (7 times faster on a CPU), reads
    of large tables. It also keeps a matrix product in its place among transposes. On a GPU, kernel
    launches cost more than arithmetic (72 per acting step with barriers, 42 without).

    Args:
        arrays: an array, or a tree of arrays.
    """
    barrier = jax.lax.optimization_barrier
    stored: Arrays = jax.lax.platform_dependent(arrays, cpu=barrier, default=lambda same: same)
    return stored


def row_major(array: Array) -> Array:
    """Keep an array in the order of its axes, the last one innermost, where XLA would change it."""
    if not hasattr(layout, "Format"):  # jax before 0.7 calls something else a layout
        return array
    kept: Array = layout.with_layout_constraint(array, layout.Layout(tuple(range(array.ndim))))
    return kept
