"""Checks of what a method's rewards depend on. They raise `ContractError`."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from cbet_jax.method_check import corridor
from cbet_jax.method_check.expectations import are_close, expect
from cbet_jax.method_check.subject import Subject
from cbet_jax.method_check.walk import ACTORS, ENDS, PLACES, Walk, make_walk, random_walk

CUT = 6  # steps from here on are changed, to find what looks ahead
END = 5  # the step that ends an episode, to find what is left of it
FURTHER = 1.3  # times as far as at random
NO_END = "no end"


def check_look_ahead(subject: Subject) -> None:
    """Expect rewards to stay the same when only later steps change."""
    walk, other = random_walk(0), random_walk(1)
    joined = jax.tree.map(
        lambda one, later: np.concatenate([one[:CUT], later[CUT:]]), walk[1:], other[1:]
    )
    before, after = (subject.rewards(each)[:CUT] for each in (walk, Walk(walk.first, *joined)))
    for step in range(CUT):
        good = are_close(before[step], after[step])
        expect(
            good,
            f"the reward of step {step} changes when only steps from {CUT} on do: it may use "
            f"nothing later than view[{step + 1}], which step {step} led to",
        )


def check_actors(subject: Subject) -> None:
    """Expect an actor's rewards to stay the same when only other actors change."""
    walk, other = random_walk(0), random_walk(1)
    first = jax.tree.map(_of_actor_0(0), walk.first, other.first)
    steps, action = jax.tree.map(_of_actor_0(1), walk[1:], other[1:])
    before, after = (subject.rewards(each)[:, 0] for each in (walk, Walk(first, steps, action)))
    good = are_close(before, after)
    expect(good, "the reward of an actor changes when only the other actors play differently")


def _of_actor_0(axis: int) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    def joined(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        others = np.arange(ACTORS).reshape(-1, *[1] * (one.ndim - axis - 1)) > 0
        return np.where(others, other, one)

    return joined


def check_panoramas(subject: Subject) -> None:
    """Expect a method that says it reads no panoramas to read none."""
    walk = random_walk(0)
    panorama = jnp.asarray(np.random.default_rng(1).permutation(walk.steps.panorama))
    other = walk._replace(steps=walk.steps._replace(panorama=panorama))
    good = subject.method.panoramas or are_close(subject.rewards(walk), subject.rewards(other))
    expect(good, "it says panoramas=False, but the rewards change when only panoramas do")


def check_resets(subject: Subject) -> None:
    """If episodes' ends change what is rewarded later, nothing before an end may.

    The record does not say whether a memory is meant to end with its episode. One that the ends
    change, is.
    """
    later = {end: _rewards_after(subject, end, shift=0) for end in (NO_END, *ENDS)}
    forgetting = [end for end in ENDS if not are_close(later[end], later[NO_END])]
    if not forgetting:
        return
    for end in ENDS:
        expect(
            end in forgetting,
            f"episodes that end by {forgetting[0]} are forgotten, but those by {end} are not",
        )
        expect(
            are_close(later[end], _rewards_after(subject, end, shift=PLACES // 2)),
            f"episodes that end by {end} change what is rewarded later, so the memory should "
            "begin anew, but the rewards still depend on the episode before (if a part of the "
            "memory is meant to outlive episodes: --lasting)",
        )


def _rewards_after(subject: Subject, end: str, shift: int) -> np.ndarray:
    """Return the rewards after an episode's end.

    Before it other places are visited if they are shifted, after it always the same.
    """
    random = np.random.default_rng(0)
    before = random.integers(PLACES // 2, size=(END + 1, ACTORS))
    walk = make_walk(np.concatenate([before + shift, before, before[:1]]), random)
    if end != NO_END:
        getattr(walk.steps, end)[END] = True
    return subject.rewards(walk)[END + 1 :]


def check_reach(subject: Subject) -> None:
    """Expect an agent that learns from the rewards to come further than a random one."""
    reached, at_random = corridor.reach(subject.settings), corridor.random_reach()
    expect(
        reached >= FURTHER * at_random,
        f"an agent that learns from this reward gets to place {reached:.1f} of "
        f"{corridor.LENGTH - 1}, a random one to {at_random:.1f}; {FURTHER} times as far was "
        "expected",
    )
