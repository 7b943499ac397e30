"""Worlds that keep records of their episodes, for the metrics: return, success, interactions.

A wrapper, as the log wrappers of gymnax and purejaxrl: the records are a part of the worlds' state.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from cbet_jax.counts.table import CountTable, empty_tables, reset, visit
from cbet_jax.types import ArrayTree
from envs.types import Step, World

FEWEST_SLOTS = 64


class CurrentEpisodes(NamedTuple):
    """The current episodes of `N` worlds, up to the last step."""

    ended: Bool[Array, " N"]  # at the last step
    environment: Int[Array, " N"]
    success: Bool[Array, " N"]
    interactions: Int[Array, " N"]  # unique ones
    length: Int[Array, " N"]
    extrinsic_return: Float[Array, " N"]


class Recorded(NamedTuple):
    """The state of worlds that keep records."""

    worlds: ArrayTree
    episodes: CurrentEpisodes
    met: CountTable  # interactions of the current episodes, arrays [N, ...]


def with_episode_records(world: World[Any]) -> World[Recorded]:
    """Return the same worlds, with records of the current episodes in their state.

    Whether steps have final views is settled before (`World.with_final_views`).
    """

    def init(beginning: Any) -> tuple[Recorded, Step]:
        worlds, step = world.init(beginning)
        number = world.num_worlds
        episodes = CurrentEpisodes(
            ended=jnp.zeros(number, bool),
            environment=step.environment,
            success=jnp.zeros(number, bool),
            interactions=jnp.zeros(number, jnp.int32),
            length=step.length,
            extrinsic_return=jnp.zeros(number),
        )
        met = empty_tables(number, interaction_slots(world.max_steps))
        return Recorded(worlds, episodes, met), step

    def play(state: Recorded, action: Int[Array, " N"]) -> tuple[Recorded, Step]:
        worlds, step = world.step(state.worlds, action)
        before, goes_on = state.episodes, ~state.episodes.ended
        met, count = jax.vmap(visit)(state.met, step.interaction)
        is_new = (count == 1) & step.interaction.any(axis=-1)
        episodes = CurrentEpisodes(
            ended=step.ended,
            environment=step.environment,
            success=before.success & goes_on | step.success,
            interactions=jnp.where(goes_on, before.interactions, 0) + is_new,
            length=step.length,
            extrinsic_return=jnp.where(goes_on, before.extrinsic_return, 0.0) + step.reward,
        )
        return Recorded(worlds, episodes, jax.vmap(reset)(met, step.ended)), step

    return replace(
        world,
        init=init,
        step=play,
        step_with_final=None,
        refresh=lambda state: state._replace(worlds=world.refresh(state.worlds)),
        report=lambda state: world.report(state.worlds),
    )


def interaction_slots(max_steps: int) -> int:
    """Return the slots of an episode's table of interactions: at most half of them are filled."""
    return max(FEWEST_SLOTS, 2 << (max_steps - 1).bit_length())
