"""Begin episodes in those environments of a batch where one has ended, a few at a time."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Key, PRNGKeyArray

AT_ONCE = 8  # environments
type Begin = Callable[[PRNGKeyArray], Any]


def reset_where(
    ended: Bool[Array, " N"], keys: Key[Array, " N"], now: Any, begin: Begin, at_once: int = AT_ONCE
) -> Any:
    """Return `now` with fresh entries where an episode has ended.

    A `where` would compute a beginning for every environment in every step.

    Args:
        ended: where to begin.
        keys: a key for each environment.
        now: arrays `[N, ...]`.
        begin: takes a key, returns the entries of one environment.
        at_once: beginnings computed together; one is fastest where each takes long.
    """
    size, order, number = len(ended), jnp.argsort(~ended), ended.sum()

    def begin_some(progress: tuple[Array, Any]) -> tuple[Array, Any]:
        first, now = progress
        some = order[jnp.minimum(first + jnp.arange(at_once), size - 1)]
        place = jnp.where(ended[some], some, size)
        fresh = jax.vmap(begin)(keys[some])
        return first + at_once, jax.tree.map(
            lambda leaf, new: leaf.at[place].set(new, mode="drop"), now, fresh
        )

    progress = jnp.int32(0), now
    return jax.lax.while_loop(lambda progress: progress[0] < number, begin_some, progress)[1]
