"""Small arrays in one: a GPU writes one array at once, and many one after the other."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, UInt32

from cbet_jax.types import ArrayTree

MOST_NUMBERS = 16  # of an agent, in an array that is packed
WORD_BYTES = 4


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Packed:
    """A tree of arrays `[N, ...]`: words that hold the small ones, bit for bit, and the others."""

    words: UInt32[Array, "*T N words"]
    others: tuple[Array | None, ...]  # None for an array that is packed
    kinds: tuple[Any, ...] = field(metadata={"static": True})  # type and shape of each
    tree: Any = field(metadata={"static": True})  # its structure


def scan[Carry, Kept](
    step: Callable[[Carry, Array], tuple[Carry, Kept]], carry: Carry, inputs: Array, number: int
) -> tuple[Carry, Kept]:
    """Return what `jax.lax.scan` does; on a GPU the loop starts fewer kernels.

    There it carries all small arrays as one, and what is kept of a step is written as one array.

    Args:
        step: from a carry and inputs to the next carry and what is kept.
        carry: before the first step.
        inputs: of all steps.
        number: only arrays `[number, ...]` are packed.
    """
    if jax.default_backend() == "cpu":
        return jax.lax.scan(step, carry, inputs)

    def packed_step(packed: Packed, now: Array) -> tuple[Packed, Packed]:
        carry, kept = step(unpack(packed), now)
        return pack(carry, number), pack(kept, number)

    last, kept = jax.lax.scan(packed_step, pack(carry, number), inputs)
    return unpack(last), unpack(kept)


def pack(arrays: ArrayTree, number: int) -> Packed:
    """Pack the small arrays of a tree.

    Args:
        arrays: the tree.
        number: N. Only arrays `[N, ...]` are packed.
    """
    leaves, tree = jax.tree.flatten(arrays)
    small = [_is_small(leaf, number) for leaf in leaves]
    words = [_to_words(leaf) for leaf, is_small in zip(leaves, small, strict=True) if is_small]
    return Packed(
        words=jnp.concatenate(words, axis=1),
        others=tuple(
            None if is_small else leaf for leaf, is_small in zip(leaves, small, strict=True)
        ),
        kinds=tuple((str(leaf.dtype), leaf.shape[1:]) for leaf in leaves),
        tree=tree,
    )


def unpack(packed: Packed) -> Any:
    """Return the tree of arrays again; axes may have been added before those of each array."""
    leaves, start = [], 0
    for other, (kind, shape) in zip(packed.others, packed.kinds, strict=True):
        leaf = other
        if leaf is None:
            size = int(np.prod(shape))
            words = packed.words[..., start : start + size]
            leaf = _from_words(words, kind).reshape(*words.shape[:-1], *shape)
            start += size
        leaves.append(leaf)
    return jax.tree.unflatten(packed.tree, leaves)


def _is_small(leaf: Array, number: int) -> bool:
    kind = leaf.dtype
    is_integer = jnp.issubdtype(kind, jnp.integer) and kind.itemsize <= WORD_BYTES
    fits = is_integer or kind in (bool, jnp.float32)  # other floats would be rounded to integers
    return bool(fits and leaf.shape[:1] == (number,) and leaf[0].size <= MOST_NUMBERS)


def _to_words(leaf: Array) -> UInt32[Array, "N numbers"]:
    flat = leaf.reshape(len(leaf), -1)
    if flat.dtype.itemsize == WORD_BYTES:
        return jax.lax.bitcast_convert_type(flat, jnp.uint32)
    return flat.astype(jnp.uint32)


def _from_words(words: UInt32[Array, "..."], kind: Any) -> Array:
    if np.dtype(kind).itemsize == WORD_BYTES:
        return jax.lax.bitcast_convert_type(words, kind)
    return words.astype(kind)
