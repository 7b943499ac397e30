"""The embedded views of each actor's episode, and the distances of new ones to the nearest.

A rollout is compared at once: its views are one factor of a matrix product, all views before the
other. Step by step, each step would read the whole memory.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from cbet_jax.config import TrainSettings
from cbet_jax.intrinsic.interface import each_actor
from envs.types import Step

NEIGHBOURS = 10  # views whose distances are found
SLOTS = 640  # views that are remembered where the longest episode is not known


class Memory(NamedTuple):
    """The embedded views of each actor's episode: 4 bytes a number."""

    views: Float[Array, "N slots numbers"]
    number: Int[Array, " N"]  # number of views so far; view i is in slot i % slots


class Signal(NamedTuple):
    """The record of a step."""

    distances: Float[Array, "N neighbours"]  # squared, to the nearest; 0 where there are fewer
    number: Int[Array, " N"]  # number of neighbours


class Places(NamedTuple):
    """Where the steps of a rollout stand in their episodes."""

    episode: Int[Array, " T"]  # of the view that is remembered; 0 is the one that goes on
    place: Int[Array, " T"]  # of that view in its episode
    episode_reached: Int[Array, " T"]  # of the view that is compared
    known: Int[Array, " T"]  # views of that episode before it


def begin_memory(settings: TrainSettings, seen: Float[Array, "N numbers"]) -> Memory:
    """Return the memory of the first embedded views."""
    actors, numbers = seen.shape
    slots = max(settings.auxiliary.episode_views or SLOTS, NEIGHBOURS)
    views = jnp.zeros((actors, slots, numbers)).at[:, 0].set(seen)
    return Memory(views, jnp.ones(actors, jnp.int32))


def visit_rollout(
    memory: Memory, steps: Step, embed: Callable[[Array], Array]
) -> tuple[Memory, Signal]:
    """Compare the views that actions led to with those before, and remember them.

    The view of an episode's end is compared, and the next episode's first view remembered. A world
    without final views has only the latter, which is compared with nothing.

    Args:
        memory: before the rollout.
        steps: the rollout, arrays [T, N, ...].
        embed: embeds views [T, N, ...].

    Returns:
        The memory after it, and the record of each step, arrays [T, N, ...].
    """
    ended = steps.ended
    reached = seen = embed(steps.reached)
    if steps.final_view is not None:

        def embed_firsts(step: tuple[Array, Array, Array]) -> Array:
            ends, view, here = step
            embedded = jax.lax.cond(ends.any(), lambda: embed(view[None])[0], lambda: here)
            return jnp.where(ends[:, None], embedded, here)

        seen = jax.lax.map(embed_firsts, (ended, steps.view, reached))

    def visit(actor: tuple[Array, ...]) -> tuple[Array, Array, Signal]:
        views, number, reached, seen, ended = actor
        at = places(number, ended, final=steps.final_view is not None)
        slots, last = len(views), number - 1
        numbers = last - (last - jnp.arange(slots)) % slots  # place of each remembered view
        old = (at.episode_reached[:, None] == 0) & (numbers >= 0)
        earlier = jnp.arange(len(ended)) < jnp.arange(len(ended))[:, None]
        new = earlier & (at.episode == at.episode_reached[:, None])
        is_known = jnp.concatenate([old, new], axis=1)
        is_known &= jnp.concatenate([numbers, at.place]) >= at.known[:, None] - slots
        signal = nearest(reached, jnp.concatenate([views, seen]), is_known)
        count = (at.place[-1] + 1).astype(number.dtype)  # also with 64 bits
        stays = (at.episode == at.episode[-1]) & (at.place >= count - slots)
        to = jnp.where(stays, at.place % slots, slots)
        return views.at[to].set(seen, mode="drop"), count, signal

    of_actors = (*memory, *(jnp.moveaxis(each, 1, 0) for each in (reached, seen, ended)))
    views, number, signal = each_actor(visit, of_actors)
    return Memory(views, number), jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 0, 1), signal)


def places(number: Int[Array, ""], ended: Bool[Array, " T"], *, final: bool) -> Places:
    """Return where steps stand in their episodes.

    Args:
        number: views of the episode that goes on.
        ended: whether a step ends an episode.
        final: whether a step that ends one leads to its final view, not to the next one's first.
    """
    steps = jnp.arange(len(ended))
    after = jax.lax.cummax(jnp.where(ended, steps, -1))  # last end up to each step
    before = jnp.concatenate([jnp.array([-1]), after[:-1]])
    known = steps - before + jnp.where(before < 0, number - 1, 0)
    episode = jnp.cumsum(ended)
    place = jnp.where(ended, 0, known)
    if final:
        return Places(episode, place, episode - ended, known)
    return Places(episode, place, episode, place)


def nearest(
    reached: Float[Array, "T numbers"],
    views: Float[Array, "views numbers"],
    is_known: Bool[Array, "T views"],
) -> Signal:
    """Return the squared distances of each reached view to the nearest of those it knows."""
    # Up to rounding, the largest numbers of a row are its smallest squared distances.
    middle = views[0]
    products = jnp.matmul(reached - middle, (views - middle).T, precision="highest")
    nearness = jnp.where(is_known, 2 * products - ((views - middle) ** 2).sum(-1), -jnp.inf)
    nearness, where = jax.lax.top_k(nearness, NEIGHBOURS)
    exact = ((views[where] - reached[:, None]) ** 2).sum(-1)
    found = jnp.sort(jnp.where(jnp.isinf(nearness), jnp.inf, exact))
    return Signal(jnp.where(jnp.isinf(found), 0.0, found), jnp.isfinite(found).sum(-1))
