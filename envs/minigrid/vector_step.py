"""One compiled step of a batch of gridworlds, for `gymnasium_vector`: its states in two arrays."""

from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, UInt8, UInt32

from envs.minigrid import rules
from envs.minigrid.observations import Observer
from envs.minigrid.rules import State
from envs.minigrid.world import Seen, Worlds, look, restart

FLAGS = SUCCESS, TERMINATED, TRUNCATED = 1, 2, 4  # bits in the signals
# The states of `N` environments in two arrays: cells, and all other numbers.
type Packed = tuple[UInt8[Array, "N rows columns"], UInt32[Array, "N numbers"]]


def pack(states: State) -> Packed:
    """Return states as two arrays."""
    cells, *others = jax.tree.leaves(states)
    columns = [leaf.reshape(len(cells), -1).astype(jnp.uint32) for leaf in others]
    return cells, jnp.concatenate(columns, axis=1)


def unpack(template: State, packed: Packed) -> State:
    """Return what was packed; the template has the shapes and types."""
    (cells, numbers), ((_, *leaves), tree) = packed, jax.tree.flatten(template)
    ends = np.cumsum([leaf.size // len(cells) for leaf in leaves])
    parts = zip(jnp.split(numbers, ends[:-1], axis=1), leaves, strict=True)
    found = (part.reshape(leaf.shape).astype(leaf.dtype) for part, leaf in parts)
    return cast(State, jax.tree.unflatten(tree, [cells, *found]))


def split(worlds: Worlds) -> tuple[Packed, Worlds]:
    """Return the packed states of worlds, and the worlds without them."""
    others: Any = worlds._replace(states=cast(State, ()))
    return pack(worlds.states), others


def play(
    template: State,
    observer: Observer | None,
    explore: bool,
    packed: Packed,
    others: Worlds | None,
    actions: Int[Array, " N"] | None,
    due: Bool[Array, " N"] | None,
    panorama: bool,
) -> tuple[Packed, Worlds | None, Seen, UInt32[Array, "N 4"] | None]:
    """Take one action in each environment, and begin an episode instead where one is due.

    Args:
        template: as of `unpack`.
        observer: as of `look`.
        explore: whether episodes continue after success.
        packed: the states before.
        others: the worlds without their states (None: no episode is due).
        actions: one action per environment (None: only begin).
        due: environments that begin an episode.
        panorama: as of `look`.

    Returns:
        The states; the worlds without them; the views; and signals, a row for each environment:
        the reward's bits, both words of `Step.interaction`, flags. It is 0 where an episode begins.
    """
    states, signals = unpack(template, packed), None
    if actions is not None:
        states, outcome = jax.vmap(rules.step)(states, actions)
        terminated = rules.episode_ends(outcome, explore=explore)[0]
        flags = zip(FLAGS, (outcome.success, terminated, outcome.timed_out), strict=True)
        told = sum(jnp.where(flag, jnp.uint32(bit), 0) for bit, flag in flags)
        reward = jax.lax.bitcast_convert_type(outcome.reward, jnp.uint32)
        signals = jnp.stack([reward, *outcome.interaction.T, told], axis=1)
    if others is not None and due is not None:
        worlds = restart(others._replace(states=states), due)
        states, (_, others) = worlds.states, split(worlds)
        signals = None if signals is None else jnp.where(due[:, None], jnp.uint32(0), signals)
    return pack(states), others, look(states, observer, panorama=panorama), signals
