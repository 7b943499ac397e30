"""One compiled step of many gridworlds of one kind, for `gymnasium_vector`."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt8, UInt32

from envs.minigrid import cells as c
from envs.minigrid import rules, views
from envs.minigrid.rules import State
from envs.minigrid.world import VIEW_SHAPE, Worlds, restart


class Pictures(NamedTuple):
    """What `N` agents see after a step."""

    view: UInt8[Array, "N 7 7 3"]
    panorama: UInt8[Array, "N 4 7 7 3"] | None
    last: UInt8[Array, "N 7 7 3"] | None  # views at the ends of the episodes that have just ended


class Seen(NamedTuple):
    """What else a step of `N` environments returns, before the host makes it gymnasium's."""

    reward: Float[Array, " N"]
    success: Bool[Array, " N"]
    terminated: Bool[Array, " N"]
    truncated: Bool[Array, " N"]
    interaction: UInt32[Array, "N 2"]  # key of what the action changed, zeros if nothing


def step(
    worlds: Worlds,
    actions: Int[Array, " N"],
    pending: Bool[Array, " N"],
    *,
    explore: bool,
    same_step: bool,
    panorama: bool,
) -> tuple[Worlds, tuple[Pictures, Seen]]:
    """Take one action in each environment; begin the next episode where one has ended.

    Args:
        worlds: before the step.
        actions: one for each.
        pending: which begin an episode instead, because the last one ended at the step before.
        explore: whether episodes continue after success.
        same_step: whether an episode that ends is followed by the next one at once.
        panorama: whether the panorama is returned.
    """
    states, outcome = jax.vmap(rules.step)(worlds.states, actions)
    acted = ~pending
    terminated, truncated = (ends & acted for ends in rules.episode_ends(outcome, explore=explore))
    ended = terminated | truncated
    last = None
    if same_step:
        last = jax.lax.cond(ended.any(), _view, _no_view, states)
    following = restart(worlds._replace(states=states), ended if same_step else pending)
    view, around = look(following.states, panorama=panorama)
    seen = Seen(
        reward=jnp.where(acted, outcome.reward, 0.0),
        success=outcome.success & acted,
        terminated=terminated,
        truncated=truncated,
        interaction=jnp.where(acted[:, None], outcome.interaction, 0),
    )
    return following, (Pictures(view, around, last), seen)


def look(
    states: State, *, panorama: bool
) -> tuple[UInt8[Array, "N 7 7 3"], UInt8[Array, "N 4 7 7 3"] | None]:
    """Return what each agent sees, and the views to the four directions if asked for."""
    seen = views.look_around_batch(states)
    view = jnp.moveaxis(views.egocentric(states, seen), -1, 0)
    return view, c.encode(jnp.moveaxis(seen, -1, 0)) if panorama else None


def _view(states: State) -> UInt8[Array, "N 7 7 3"]:
    return look(states, panorama=False)[0]


def _no_view(states: State) -> UInt8[Array, "N 7 7 3"]:
    return jnp.zeros((len(states.step_count), *VIEW_SHAPE), jnp.uint8)
