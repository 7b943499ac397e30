"""A generator of levels that are told apart by their number."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from envs.minigrid.generators import Generator, placeholder_level
from envs.minigrid.level import MARGIN, REACH_GOAL, Level


class Numbered(NamedTuple):
    """Drafts of `numbered`."""

    next: jax.Array  # number of the next level
    calls: jax.Array


def numbered(every: int, ready_at_once: int = 4) -> Generator:
    """Make levels with `seed` 0, 1, 2 ... at every `every`-th call, or none if that is 0."""

    def begin(count: int) -> Numbered:
        return Numbered(jnp.int32(0), jnp.int32(0))

    def advance(drafts: Numbered, key, count: int) -> tuple[Numbered, Level, jax.Array]:
        calls = drafts.calls + 1
        made = ready_at_once if every else 0
        made = jnp.where(calls % max(every, 1) == 0, made, 0)
        cell = placeholder_level(3 + 2 * MARGIN, 3 + 2 * MARGIN)
        levels = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *leaf.shape)), cell)
        seed = (drafts.next + jnp.arange(count)).astype(jnp.uint32)
        levels = levels._replace(seed=seed, max_steps=jnp.full(count, 5))
        return Numbered(drafts.next + made, calls), levels, jnp.arange(count) < made

    return Generator(f"every {every}", 3, 3, 5, REACH_GOAL, begin, advance)
