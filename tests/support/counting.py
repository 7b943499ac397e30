"""Count-based methods, played by hand moment by moment."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cbet_jax.config import AuxiliarySettings, CountSettings, TrainSettings
from cbet_jax.intrinsic import make_intrinsic
from cbet_jax.intrinsic.interface import Experience, Intrinsic, Params
from envs.types import Step
from tests.support.moments import experience, moment

KEY = jax.random.key(0)
ACTIONS = 3
NO_PARAMS = Params({}, {})
TINY = AuxiliarySettings(channels=(1,))
NEVER = CountSettings(reset_probability=0.0, capacity=16)
ALWAYS = CountSettings(reset_probability=1.0, capacity=16)


def make(name: str, counts: CountSettings) -> Intrinsic:
    """Return the method, with networks as small as can be if it has any."""
    return make_intrinsic(TrainSettings(method=name, counts=counts, auxiliary=TINY), ACTIONS)


def observe(method: Intrinsic, moments, *, first, begin=()) -> list[dict[str, list[int]]]:
    """Return the counts at each of `moments`; a rollout begins before those in `begin`.

    A single actor is played twice, so all tests share the operations compiled for two.
    """
    actors = len(first.view)
    first, *moments = (_of_two(each) for each in (first, *moments))
    _, memory = method.init(KEY, first)
    counted, last = [], first
    for number, here in enumerate(moments):
        if number in begin:
            memory = method.begin_rollout(memory, KEY, last)
        memory, signal = method.observe(NO_PARAMS, memory, KEY[None], rollout_of(here))
        counted.append({kind: count[0].tolist()[:actors] for kind, count in signal.items()})
        last = here
    return counted


def rollout_of(step: Step) -> Experience:
    """Return what a method observes of a rollout of a single step."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], experience(step))


def _of_two(step: Step) -> Step:
    if len(step.view) > 1:
        return step
    return jax.tree.map(lambda leaf: jnp.asarray(np.repeat(np.asarray(leaf), 2, 0)), step)


def observe_states(*arguments: Any, **options: Any) -> list[list[int]]:
    """Return the counts of states, see `observe`."""
    return [counted["states"] for counted in observe(*arguments, **options)]


def resets(method: Intrinsic, actors: int) -> dict[str, np.ndarray]:
    """Return which actors' tables are reset at the first step, by kind: bool [actors]."""
    here = moment([1] * actors)
    _, memory = jax.jit(method.init)(KEY, here)
    memory, _ = jax.jit(method.observe)(NO_PARAMS, memory, KEY[None], rollout_of(here))
    return {kind: np.asarray(counts.tables.generation) == 2 for kind, counts in memory.items()}


def drawn_resets(probability: float, kinds: int, actors: int) -> np.ndarray:
    """Return what `resets` should be, in the order of the kinds."""
    return np.asarray(jax.random.bernoulli(KEY, probability, (kinds, actors)))
