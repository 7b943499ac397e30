"""What every method must keep, checked on a method and said in words.

Steps are drawn here: actors walk through places with looks of their own, with ends of episodes and
successes. So no simulator is needed, and the checks take seconds; only the last one trains.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cbet_jax.config import AuxiliarySettings, CountSettings, TrainSettings
from cbet_jax.intrinsic import corridor, make_intrinsic
from cbet_jax.intrinsic.expectations import (
    are_close,
    described,
    expect,
    expect_numbers,
    expect_pair,
    expect_same,
    first_line,
    is_weight,
    kind,
    named_leaves,
    shapes_of,
)
from cbet_jax.intrinsic.types import Intrinsic, Memory, Params
from cbet_jax.intrinsic.walk import (
    ACTORS,
    ENDS,
    PLACES,
    STEPS,
    Played,
    Walk,
    experience,
    make_trajectory,
    make_walk,
    observe_each,
    play,
    random_walk,
)
from cbet_jax.learner import reward_and_loss
from cbet_jax.setting_types import SettingsError
from cbet_jax.types import Trajectory, unchanged
from envs.errors import Check, ContractError

SHAPES, RESETS, REACHES = "shapes and types", "resets leave no trace", "learns in a corridor"
CUT = 6  # steps from here on are changed, to find what looks ahead
END = 5  # the step that ends an episode, to find what is left of it
FURTHER = 1.3  # times as far as at random
NO_END = "no end"
QUICKLY = {"xla_backend_optimization_level": 0}  # to compile; each function runs a few times


def check_settings(method: str, own: tuple[str, ...] = ()) -> TrainSettings:
    """Return the settings that a method is checked with: small networks, small count tables."""
    return TrainSettings(
        method=method,
        own=own,
        auxiliary=AuxiliarySettings(channels=(8, 16), hidden_units=32),
        counts=CountSettings(capacity=1024),
    )


def check_method(
    settings: TrainSettings, *, lasting: bool = False, learns: bool = True
) -> Iterator[Check]:
    """Check the method that the settings name, one thing after the other.

    Args:
        settings: as of `check_settings`.
        lasting: the memory also has what is meant to outlive episodes: resets are not checked.
        learns: also train with it in a corridor, which takes longer than all else.

    Raises:
        SettingsError: the method is unknown, or refuses the settings.
    """
    subject = Subject(settings)
    skipped = {} if learns else {REACHES: "left out"}
    if lasting:
        skipped[RESETS] = "its memory outlives episodes"
    if not subject.method.coefficient:
        skipped[REACHES] = "the reward has coefficient 0"
    for name, check in CHECKS.items():
        if name in skipped:
            yield Check(name, skipped=skipped[name])
            continue
        found = _try(name, check, subject)
        if name == SHAPES and found.problem:  # nothing else can be tried
            skipped = dict.fromkeys(CHECKS, "shapes and types must be right first")
        yield found


def _try(name: str, check: Callable[["Subject"], None], subject: "Subject") -> Check:
    try:
        check(subject)
    except ContractError as error:
        return Check(name, str(error))
    except SettingsError:
        raise
    except Exception as error:  # whatever a method raises is what is to be shown
        return Check(name, f"{type(error).__name__}: {first_line(error)}")
    return Check(name)


class Subject:
    """The method that is checked, and its compiled functions."""

    def __init__(self, settings: TrainSettings) -> None:
        """Make the method.

        Raises:
            SettingsError: it is unknown, or refuses the settings.
        """
        self.settings = settings
        self.method = make_intrinsic(settings, corridor.ACTIONS)
        self.traces = 0
        self._init = jax.jit(self.method.init, compiler_options=QUICKLY)
        self._play = jax.jit(self._traced, compiler_options=QUICKLY)

    def _traced(self, *arguments: Any) -> Played:
        self.traces += 1
        return play(self.method, *arguments)

    def begin(self, walk: Walk) -> tuple[Params, Memory]:
        """Return the method's parameters and memory before the first step."""
        params, memory = self._init(jax.random.key(0), walk.first)
        return params, memory

    def play(self, params: Params, memory: Memory, walk: Walk) -> Played:
        """Return what the method makes of a walk, always with the same key."""
        played: Played = self._play(params, memory, jax.random.key(1), walk)
        return played

    def rewards(self, walk: Walk) -> np.ndarray:
        """Return the rewards of a walk for a method that has just begun: [T, N]."""
        return np.asarray(self.play(*self.begin(walk), walk).reward)


# Each check raises `ContractError` if it finds a problem.


def _check_shapes(subject: Subject) -> None:
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


def _check_traces(subject: Subject) -> None:
    walk = random_walk(0)
    played = subject.play(*subject.begin(walk), walk)
    subject.play(played.params, played.memory, walk)
    expect(
        subject.traces == 1,
        "it is compiled again for the parameters and the memory that it returned: their types "
        "differ from those of init (numbers of Python have weak types: use jnp.zeros, not 0.0)",
    )


def _check_finite(subject: Subject) -> None:
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


def _check_same_key(subject: Subject) -> None:
    walk = random_walk(0)
    one, other = (_numbers_of(each, walk) for each in (subject, Subject(subject.settings)))
    for name, value in one.items():
        good = np.array_equal(value, other[name], equal_nan=True)
        expect(good, f"{name} differs when the method is made again, with the same key")


def _check_adapt(subject: Subject) -> None:
    params, memory = subject.begin(random_walk(0))
    adapted = subject.play(params, memory, random_walk(0)).params
    for (name, before), (_, after) in zip(
        named_leaves(params.learnt), named_leaves(adapted.learnt), strict=True
    ):
        good = np.array_equal(before, after)
        expect(good, f"adapt may change fixed parameters only, but changes learnt {name}")


def _check_devices(subject: Subject) -> None:
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


def _check_gradients(subject: Subject) -> None:
    walk = random_walk(0)
    for name, gradient in subject.play(*subject.begin(walk), walk).gradient.items():
        moves = any(np.any(leaf) for _, leaf in named_leaves(gradient))
        expect(moves, f"the gradient of the loss by {name} is 0: it would never learn")


def _check_observe_rollout(subject: Subject) -> None:
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


def _check_reward_and_loss(subject: Subject) -> None:
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


def _check_look_ahead(subject: Subject) -> None:
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


def _check_actors(subject: Subject) -> None:
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


def _check_panoramas(subject: Subject) -> None:
    walk = random_walk(0)
    panorama = jnp.asarray(np.random.default_rng(1).permutation(walk.steps.panorama))
    other = walk._replace(steps=walk.steps._replace(panorama=panorama))
    good = subject.method.panoramas or are_close(subject.rewards(walk), subject.rewards(other))
    expect(good, "it says panoramas=False, but the rewards change when only panoramas do")


def _check_resets(subject: Subject) -> None:
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


def _check_reach(subject: Subject) -> None:
    reached, at_random = corridor.reach(subject.settings), corridor.random_reach()
    expect(
        reached >= FURTHER * at_random,
        f"an agent that learns from this reward gets to place {reached:.1f} of "
        f"{corridor.LENGTH - 1}, a random one to {at_random:.1f}; {FURTHER} times as far was "
        "expected",
    )


CHECKS: dict[str, Callable[[Subject], None]] = {
    SHAPES: _check_shapes,
    "one trace": _check_traces,
    "finite": _check_finite,
    "same key, same numbers": _check_same_key,
    "adapt keeps what is learnt": _check_adapt,
    "adapt agrees on all devices": _check_devices,
    "every network learns": _check_gradients,
    "observe_rollout is observe": _check_observe_rollout,
    "reward_and_loss is both": _check_reward_and_loss,
    "no look ahead": _check_look_ahead,
    "actors are separate": _check_actors,
    "panoramas as said": _check_panoramas,
    RESETS: _check_resets,
    REACHES: _check_reach,
}


def _adapt(method: Intrinsic, params: Params, trajectory: Trajectory) -> Params:
    return method.adapt(params, trajectory, unchanged)


def _numbers_of(subject: Subject, walk: Walk) -> dict[str, np.ndarray]:
    params, memory = subject.begin(walk)
    return dict(named_leaves({"params": params, "played": subject.play(params, memory, walk)}))
