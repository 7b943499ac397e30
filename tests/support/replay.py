"""Play plans in levels: one compiled program for levels of all sizes, for any number of them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from envs.minigrid import cells as c
from envs.minigrid import rules
from envs.minigrid.level import Level
from tests.support.play import CANVAS

LONGEST = 400  # actions of a plan
WORLDS = 100  # played at once


class Ends(NamedTuple):
    """What each action of the plans did: bool `[LONGEST, B]`."""

    success: Any
    died: Any


def replay(states: rules.State, plans: Sequence[Sequence[int] | None]) -> Ends:
    """Play a plan in each world (`[B]`), then do nothing; where there is no plan, do nothing."""
    count = len(plans)
    actions = np.full((LONGEST, count), rules.DONE, np.int32)
    for world, plan in enumerate(plans):
        actions[: len(plan or []), world] = plan or []
    states = jax.device_get(states)
    states = states._replace(level=on_canvas(states.level))
    parts = []
    for first in range(0, count, WORLDS):
        chosen = np.minimum(np.arange(first, first + WORLDS), count - 1)  # the last one again
        some = jax.tree.map(lambda leaf, chosen=chosen: leaf[chosen], states)
        parts.append(jax.device_get(_replay(some, actions[:, chosen])))
    return Ends(*(np.concatenate(part, axis=1)[:, :count] for part in zip(*parts, strict=True)))


def on_canvas(levels: Level) -> Level:
    """Pad levels (`[B]`) with wall to the size that holds every level."""
    cells = np.asarray(levels.cells)
    added = [(0, 0), *((0, CANVAS - size) for size in cells.shape[1:])]
    return levels._replace(cells=np.pad(cells, added, constant_values=c.WALL))


@jax.jit
def _replay(states, actions):
    _, outcomes = jax.lax.scan(jax.vmap(rules.step), states, actions)
    return Ends(outcomes.success, outcomes.died)
