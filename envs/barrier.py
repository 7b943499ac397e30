"""A barrier for the compiler, in programs for CPUs."""

import jax


def materialize[Arrays](arrays: Arrays) -> Arrays:
    """Return the same arrays; on a CPU they are computed once and stored in memory.

    XLA fuses the operations that make an array into each operation that reads it, so the array is
    computed again for every reader. That saves memory traffic where the array is cheap to compute,
    and wastes time where it is not: a hash of a panorama, a line of sight (seven times faster on a
    CPU with a barrier), a look-up in a large table. XLA does not fuse across a barrier, and does
    not reorder a matrix product with the transposes around it either. No value changes.

    A GPU has the arithmetic to spare, but each kernel that it starts costs time: with barriers an
    acting step would start 72 kernels in place of 42.

    Args:
        arrays: an array, or a tree of arrays.
    """
    barrier = jax.lax.optimization_barrier
    stored: Arrays = jax.lax.platform_dependent(arrays, cpu=barrier, default=lambda same: same)
    return stored
