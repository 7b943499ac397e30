"""The checks of a method. A check that finds a problem raises `ContractError`."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cbet_jax.method_check import corridor
from cbet_jax.method_check.shapes import compare_shapes, named_leaves
from cbet_jax.method_check.walk import (
    ACTORS,
    ENDS,
    PLACES,
    QUICKLY,
    STEPS,
    Subject,
    Walk,
    make_trajectory,
    make_walk,
    random_walk,
)
from envs.errors import expect

CLOSE = 1e-4  # relative tolerance for sums in another order
CUT = 6  # first changed step in the search for methods that look ahead
END = 5  # step that ends an episode, to find traces of it
FURTHER = 1.3  # least ratio to how far a random agent gets
NO_END = "no end"


def check_shapes(subject: Subject) -> None:
    """Compare shapes and types, without running the functions."""
    compare_shapes(subject.method, random_walk(0), ACTORS)


def check_traces(subject: Subject) -> None:
    """Expect one trace for two rollouts: outputs have the types of inputs."""
    played = subject.play(random_walk(0))
    subject.play(random_walk(0), (played.params, played.memory))
    expect(
        subject.traces == 1,
        "it is compiled again for the parameters and the memory that it returned: their types "
        "differ from those of init (numbers of Python have weak types: use jnp.zeros, not 0.0)",
    )


def check_finite(subject: Subject) -> None:
    """Expect finite numbers, also in a second rollout and where nothing changes."""
    still = make_walk(np.zeros((STEPS + 1, ACTORS), int), np.random.default_rng(0))
    played = subject.play(random_walk(0))
    for when, found in (
        ("in a first rollout", played),
        ("in a second rollout", subject.play(random_walk(0), (played.params, played.memory))),
        ("where an actor stays in its place", subject.play(still)),
    ):
        for name, leaf in named_leaves(found):
            good = not np.issubdtype(leaf.dtype, np.floating) or np.isfinite(leaf).all()
            expect(good, f"{name} must be finite, but is not {when}")


def check_same_key(subject: Subject) -> None:
    """Expect the same numbers when the method is made again."""
    walk = random_walk(0)
    one, other = (
        named_leaves({"params": each.begin(walk)[0], "played": each.play(walk)})
        for each in (subject, Subject(subject.settings))
    )
    for (name, value), (_, again) in zip(one, other, strict=True):
        good = np.array_equal(value, again, equal_nan=True)
        expect(good, f"{name} differs when the method is made again, with the same key")


def check_adapt(subject: Subject) -> None:
    """Expect `adapt` to leave what is learnt as it is."""
    walk = random_walk(0)
    before, after = subject.begin(walk)[0].learnt, subject.play(walk).params.learnt
    for (name, one), (_, other) in zip(named_leaves(before), named_leaves(after), strict=True):
        good = np.array_equal(one, other)
        expect(good, f"adapt may change fixed parameters only, but changes learnt {name}")


def check_devices(subject: Subject) -> None:
    """Expect equal parameters on all devices when each has one actor of the batch."""
    walk = random_walk(0)
    params, _ = subject.begin(walk)
    trajectory = make_trajectory(walk, subject.play(walk).signal)
    shares = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 1, 0)[:, :, None], trajectory)
    mean = partial(jax.lax.pmean, axis_name="devices")
    adapt = jax.vmap(lambda share: subject.method.adapt(params, share, mean), axis_name="devices")
    for name, leaf in named_leaves(jax.jit(adapt, compiler_options=QUICKLY)(shares)):
        good = are_close(leaf, leaf[:1])
        expect(good, f"adapt must average with `mean`: {name} differs from device to device")


def check_gradients(subject: Subject) -> None:
    """Expect the loss to depend on every network that learns."""
    for name, gradient in subject.play(random_walk(0)).gradient.items():
        moves = any(np.any(leaf) for _, leaf in named_leaves(gradient))
        expect(moves, f"the gradient of the loss by {name} is 0: it would never learn")


def check_look_ahead(subject: Subject) -> None:
    """Expect rewards to stay the same when only later steps change."""
    walk, other = random_walk(0), random_walk(1)
    joined = jax.tree.map(
        lambda one, later: np.concatenate([one[:CUT], later[CUT:]]), walk[1:], other[1:]
    )
    before, after = (subject.rewards(each)[:CUT] for each in (walk, Walk(walk.first, *joined)))
    for step in range(CUT):
        expect(
            are_close(before[step], after[step]),
            f"the reward of step {step} changes when only steps from {CUT} on do: it may use "
            f"nothing later than view[{step + 1}], which step {step} led to",
        )


def check_actors(subject: Subject) -> None:
    """Expect an actor's rewards to stay the same when only other actors change."""

    def of_actor_0(axis: int) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        others = np.arange(ACTORS) > 0
        return lambda one, other: np.where(
            others.reshape(-1, *[1] * (one.ndim - axis - 1)), other, one
        )

    walk, other = random_walk(0), random_walk(1)
    first = jax.tree.map(of_actor_0(0), walk.first, other.first)
    steps, action = jax.tree.map(of_actor_0(1), walk[1:], other[1:])
    before, after = (subject.rewards(each)[:, 0] for each in (walk, Walk(first, steps, action)))
    good = are_close(before, after)
    expect(good, "the reward of an actor changes when only the other actors play differently")


def check_panoramas(subject: Subject) -> None:
    """Expect a method that says it reads no panoramas to read none."""
    walk = random_walk(0)
    panorama = jnp.asarray(np.random.default_rng(1).permutation(walk.steps.panorama))
    other = walk._replace(steps=walk.steps._replace(panorama=panorama))
    good = subject.method.panoramas or are_close(subject.rewards(walk), subject.rewards(other))
    expect(good, "it says panoramas=False, but the rewards change when only panoramas do")


def check_resets(subject: Subject) -> None:
    """Expect an episodic memory to keep nothing across an episode's end.

    If episode ends change later rewards, the memory is treated as episodic.
    """

    def rewards_after(end: str, shift: int) -> np.ndarray:
        """Return the rewards after the end; `shift` changes the places before it only."""
        random = np.random.default_rng(0)
        before = random.integers(PLACES // 2, size=(END + 1, ACTORS))
        walk = make_walk(np.concatenate([before + shift, before, before[:1]]), random)
        if end != NO_END:
            getattr(walk.steps, end)[END] = True
        return subject.rewards(walk)[END + 1 :]

    later = {end: rewards_after(end, shift=0) for end in (NO_END, *ENDS)}
    forgetting = [end for end in ENDS if not are_close(later[end], later[NO_END])]
    for end in ENDS if forgetting else ():
        expect(
            end in forgetting,
            f"episodes that end by {forgetting[0]} are forgotten, but those by {end} are not",
        )
        expect(
            are_close(later[end], rewards_after(end, shift=PLACES // 2)),
            f"rewards after an episode that ends by {end} still depend on what was seen in it: "
            "reset the whole memory there, or add --lasting if a part is meant to outlive episodes",
        )


def check_reach(subject: Subject) -> None:
    """Expect an agent trained on the reward to get further than a random one."""
    reached, at_random = corridor.reach(subject.settings), corridor.random_reach()
    expect(
        reached >= FURTHER * at_random,
        f"an agent that learns from this reward gets to place {reached:.1f} of "
        f"{corridor.LENGTH - 1}, a random one to {at_random:.1f}; {FURTHER} times as far was "
        "expected",
    )


def are_close(one: Any, other: Any) -> bool:
    return np.allclose(one, other, rtol=CLOSE, atol=1e-6, equal_nan=True)
