"""A barrier for the compiler."""

from typing import cast

import jax


def materialize[Arrays](arrays: Arrays) -> Arrays:
    """Return the same arrays, computed once and stored in memory.

    XLA fuses the operations that make an array into each operation that reads it, so the array is
    computed again for every reader. That saves memory traffic where the array is cheap to compute,
    and wastes time where it is not: a hash of a panorama, a look-up in a large table. XLA does not
    fuse across a barrier, and does not reorder a matrix product with the transposes around it
    either. No value changes.

    Args:
        arrays: an array, or a tree of arrays.
    """
    return cast(Arrays, jax.lax.optimization_barrier(arrays))
