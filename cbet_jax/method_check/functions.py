"""Checks of what a method's functions return, each by itself. They raise `ContractError`."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from cbet_jax.intrinsic.types import Intrinsic, Params
from cbet_jax.learner import reward_and_loss
from cbet_jax.method_check.expectations import (
    are_close,
    described,
    expect,
    expect_numbers,
    expect_pair,
    expect_same,
    is_weight,
    kind,
    named_leaves,
    shapes_of,
)
from cbet_jax.method_check.subject import QUICKLY, Subject
from cbet_jax.method_check.walk import (
    ACTORS,
    STEPS,
    Walk,
    experience,
    make_trajectory,
    make_walk,
    observe_each,
    random_walk,
)
from cbet_jax.types import Trajectory, unchanged


def check_shapes(subject: Subject) -> None:
    """Compare shapes and types; JAX only traces the functions."""
    method, walk, key = subject.method, random_walk(0), jax.random.key(0)
    one = jax.tree.map(lambda leaf: leaf[0], experience(walk))
    expect(is_weight(method.coefficient), "its coefficient must be a number of at least 0")

    params, memory = expect_pair("init", "(Params, memory)", method.init, key, walk.first)
    expect(isinstance(params, Params), f"init must return Params first, not {kind(params)}")
    for part, networks in params._asdict().items():
        expect(isinstance(networks, dict), f"Params.{part} must be a dict, not {kind(networks)}")

    begun = shapes_of("begin_rollout", method.begin_rollout, memory, key, one.step)
    expect_same("begin_rollout", "its memory", memory, begun)
    after, noted = expect_pair(
        "observe", "(memory, signal)", method.observe, params, memory, key, one
    )
    expect_same("observe", "its memory", memory, after)
    for name, leaf in named_leaves(noted):
        wanted = f"observe's signal must have a row for each of {ACTORS} actors"
        expect(leaf.shape[:1] == (ACTORS,), f"{wanted}, but {name} is {described(leaf)}")
    _, signal = jax.eval_shape(partial(observe_each, method), params, memory, key, walk)
    if method.observe_rollout is not None:
        keys = jax.random.split(key, STEPS)
        arguments = params, memory, keys, experience(walk)
        after, all_noted = expect_pair(
            "observe_rollout", "(memory, signal)", method.observe_rollout, *arguments
        )
        expect_same("observe_rollout", "its memory", memory, after)
        expect_same("observe_rollout", "the signals of observe", signal, all_noted)

    trajectory = jax.eval_shape(make_trajectory, walk, signal)
    adapted = shapes_of("adapt", partial(_adapt, method), params, trajectory)
    expect_same("adapt", "its parameters", params, adapted)
    reward = shapes_of("reward", method.reward, params, trajectory)
    rewards = described(jax.ShapeDtypeStruct((STEPS, ACTORS), jnp.float32))
    good = described(reward) == rewards
    expect(good, f"reward must return {rewards}, of steps and actors, not {described(reward)}")
    loss, terms = expect_pair("loss", "(loss, its terms)", method.loss, params, trajectory)
    expect_numbers("loss", {"loss": loss})
    expect_numbers("loss", terms)
    if method.reward_and_loss is not None:
        both = shapes_of("reward_and_loss", method.reward_and_loss, params, trajectory)
        expect_same("reward_and_loss", "reward and loss", (reward, (loss, terms)), both)
    expect_numbers("metrics", shapes_of("metrics", method.metrics, memory))


def check_traces(subject: Subject) -> None:
    """Expect one trace for two rollouts: what comes back has the types of what went in."""
    walk = random_walk(0)
    played = subject.play(*subject.begin(walk), walk)
    subject.play(played.params, played.memory, walk)
    expect(
        subject.traces == 1,
        "it is compiled again for the parameters and the memory that it returned: their types "
        "differ from those of init (numbers of Python have weak types: use jnp.zeros, not 0.0)",
    )


def check_finite(subject: Subject) -> None:
    """Expect finite numbers, also in a second rollout and where nothing changes."""
    walk = random_walk(0)
    still = make_walk(np.zeros((STEPS + 1, ACTORS), int), np.random.default_rng(0))
    played = subject.play(*subject.begin(walk), walk)
    later = subject.play(played.params, played.memory, walk)
    for when, found in (
        ("in a first rollout", played),
        ("in a second rollout", later),
        ("where an actor stays in its place", subject.play(*subject.begin(still), still)),
    ):
        for name, leaf in named_leaves(found):
            good = not np.issubdtype(leaf.dtype, np.floating) or np.isfinite(leaf).all()
            expect(good, f"{name} must be finite, but is not {when}")


def check_same_key(subject: Subject) -> None:
    """Expect the same numbers when the method is made again."""
    walk = random_walk(0)
    one, other = (_numbers_of(each, walk) for each in (subject, Subject(subject.settings)))
    for name, value in one.items():
        good = np.array_equal(value, other[name], equal_nan=True)
        expect(good, f"{name} differs when the method is made again, with the same key")


def check_adapt(subject: Subject) -> None:
    """Expect `adapt` to leave what is learnt as it is."""
    params, memory = subject.begin(random_walk(0))
    adapted = subject.play(params, memory, random_walk(0)).params
    for (name, before), (_, after) in zip(
        named_leaves(params.learnt), named_leaves(adapted.learnt), strict=True
    ):
        good = np.array_equal(before, after)
        expect(good, f"adapt may change fixed parameters only, but changes learnt {name}")


def check_devices(subject: Subject) -> None:
    """Share a batch out, an actor to each device: all must have the same parameters afterwards."""
    method, walk = subject.method, random_walk(0)
    params, memory = subject.begin(walk)
    trajectory = make_trajectory(walk, subject.play(params, memory, walk).signal)
    shares = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 1, 0)[:, :, None], trajectory)
    mean = partial(jax.lax.pmean, axis_name="devices")
    adapt = jax.vmap(lambda share: method.adapt(params, share, mean), axis_name="devices")
    for name, leaf in named_leaves(jax.jit(adapt, compiler_options=QUICKLY)(shares)):
        good = are_close(leaf, leaf[:1])
        expect(good, f"adapt must average with `mean`: {name} differs from device to device")


def check_gradients(subject: Subject) -> None:
    """Expect the loss to depend on every network that learns."""
    walk = random_walk(0)
    for name, gradient in subject.play(*subject.begin(walk), walk).gradient.items():
        moves = any(np.any(leaf) for _, leaf in named_leaves(gradient))
        expect(moves, f"the gradient of the loss by {name} is 0: it would never learn")


def check_observe_rollout(subject: Subject) -> None:
    """Expect the faster form of `observe` to give the same signals."""
    method, walk = subject.method, random_walk(0)
    if method.observe_rollout is None:
        return
    params, memory = subject.begin(walk)
    begin_key, key = jax.random.split(jax.random.key(1))
    memory = method.begin_rollout(memory, begin_key, walk.first)
    each = jax.jit(partial(observe_each, method), compiler_options=QUICKLY)(
        params, memory, key, walk
    )[1]
    together = subject.play(*subject.begin(walk), walk).signal
    for (name, one), (_, other) in zip(named_leaves(each), named_leaves(together), strict=True):
        expect(are_close(one, other), f"observe_rollout and observe must note the same {name}")


def check_reward_and_loss(subject: Subject) -> None:
    """Expect the faster form of `reward` and `loss` to give the same numbers."""
    method, walk = subject.method, random_walk(0)
    if method.reward_and_loss is None:
        return
    params, memory = subject.begin(walk)
    played = subject.play(params, memory, walk)
    learn = jax.jit(partial(reward_and_loss, method), compiler_options=QUICKLY)
    together = learn(params, make_trajectory(walk, played.signal))
    apart = played.reward, (played.loss, played.terms), played.gradient
    names = ("reward", "loss", "gradient")
    for name, *pair in zip(names, apart, together, strict=True):
        for one, other in zip(*map(jax.tree.leaves, pair), strict=True):
            expect(are_close(one, other), f"reward_and_loss and {name} must give the same {name}")


def _adapt(method: Intrinsic, params: Params, trajectory: Trajectory) -> Params:
    return method.adapt(params, trajectory, unchanged)


def _numbers_of(subject: Subject, walk: Walk) -> dict[str, np.ndarray]:
    params, memory = subject.begin(walk)
    return dict(named_leaves({"params": params, "played": subject.play(params, memory, walk)}))
