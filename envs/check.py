"""The world contract, checked with readable messages."""

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from itertools import islice
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from envs.errors import Check, ContractError, NotChecked, checked
from envs.shapes import check_record, check_shapes
from envs.types import Step, World

MOST_STEPS = 2_000  # played in a check: more than two episodes of most worlds
FEWEST_STEPS = 50
STARTS = 4  # keys of `init` compared, to find whether all episodes begin alike
SHAPES = "shapes and types"
SEEN = tuple(name for name in Step._fields if name not in Step._field_defaults)


def check_world(world: World) -> Iterator[Check]:
    """Check a world against the contract of `envs.types`, with about two episodes of random play.

    Whether its views and rewards are the intended ones is not checked.
    """
    found = checked("record", lambda: check_record(world))
    yield found
    shapes = Check(SHAPES, skipped="the record must be right first")
    if not found.problem:
        shapes = checked(SHAPES, lambda: check_shapes(world))
    yield shapes
    if shapes.problem or shapes.skipped:
        for name in CHECKS:
            yield Check(name, skipped="shapes and types must be right first")
        return
    subject = _Subject(world)
    for name, check in CHECKS.items():
        yield checked(name, partial(check, subject))


def first_problem(world: World) -> str:
    """Return the first problem of a world's record, shapes or types, or ''.

    Nothing is compiled or played.
    """
    record_and_shapes = islice(check_world(world), 2)
    return next((found.problem for found in record_and_shapes if found.problem), "")


class _Played(NamedTuple):
    """Random play: first moments `[N]` and steps `[T, N]`, in numpy."""

    first: Step
    steps: Step


class _Subject:
    """A world under check, and its random actions."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.count = int(np.clip(2 * world.max_steps + 2, FEWEST_STEPS, MOST_STEPS))
        self._play = jax.jit(self._rollout)
        shape = self.count, world.num_worlds
        self.actions = np.random.default_rng(0).integers(world.num_actions, size=shape)

    def _rollout(self, key: Any, actions: Any) -> _Played:
        state, first = self.world.init(key)
        return _Played(first, jax.lax.scan(self.world.step, self.world.refresh(state), actions)[1])

    @cached_property
    def played(self) -> _Played:
        """The random play of seed 0."""
        return self.play()

    def play(self, seed: int = 0, actions: np.ndarray | None = None) -> _Played:
        """Play actions `[T, N]` (None: the random ones)."""
        chosen = self.actions if actions is None else actions
        played = self._play(jax.random.key(seed), jnp.asarray(chosen, jnp.int32))
        return jax.tree.map(np.asarray, played)


def _check_trace(subject: _Subject) -> None:
    traces = []

    def step(state: Any, actions: Any) -> Any:
        traces.append(jax.tree.leaves_with_path(state))
        return subject.world.step(state, actions)

    compiled = jax.jit(step)
    state, _ = jax.jit(subject.world.init)(jax.random.key(0))
    for actions in subject.actions[:3]:
        state, _ = compiled(state, jnp.asarray(actions, jnp.int32))
    if len(traces) > 1:
        changed = [
            jax.tree_util.keystr(path)
            for (path, leaf), (_, other) in zip(*traces[:2], strict=True)
            if leaf.aval != other.aval
        ]
        where = f": state{changed[0]} has a weak type at first, give it one" if changed else ""
        raise ContractError(f"step is traced {len(traces)} times in 3 steps, not once{where}")


def _check_same(subject: _Subject) -> None:
    one, other = subject.played, subject.play()
    for part, a, b in zip(("first", "steps"), one, other, strict=True):
        for field in SEEN:
            if not np.array_equal(getattr(a, field), getattr(b, field), equal_nan=True):
                where = "the first moment" if part == "first" else "a step"
                raise ContractError(f"{field} of {where} differs between two plays of one key")


def _check_first(subject: _Subject) -> None:
    first = subject.played.first
    for field in ("reward", "success", "terminated", "truncated", "length", "interaction"):
        if getattr(first, field).any():
            raise ContractError(f"{field} must be zero at the first moment, before any action")


def _check_ends(subject: _Subject) -> None:
    steps = subject.played.steps
    both = steps.terminated & steps.truncated
    _expect_nowhere(both, "terminated and truncated are both true; an end is one of them")


def _check_lengths(subject: _Subject) -> None:
    """Check that lengths grow by one at each action and restart where an episode ended."""
    steps, limit = subject.played.steps, subject.world.max_steps
    ended = steps.terminated | steps.truncated
    expected = np.zeros_like(steps.length[0])
    for time, length in enumerate(steps.length):
        expected = expected + 1
        if (wrong := length != expected).any():
            world = int(wrong.argmax())
            after_end = time and ended[time - 1, world]
            why = ", the first of a new episode" if after_end else ""
            raise ContractError(
                f"step {time} of world {world}: length must be {expected[world]}{why}, not "
                f"{length[world]}"
            )
        expected = np.where(ended[time], 0, expected)
    late = (steps.length >= limit) & ~ended
    _expect_nowhere(late, f"the episode goes on after max_steps, {limit}")


def _check_resets(subject: _Subject) -> None:
    steps = subject.played.steps
    ended = steps.terminated | steps.truncated
    if not ended.any():
        raise NotChecked(f"no episode ended in the {subject.count} steps that were played")
    starts = np.concatenate([subject.play(seed).first.view for seed in range(STARTS)])
    if (starts != starts[0]).any():
        return  # episodes begin differently: no view is wrong
    differs = (steps.view != starts[0]).any(axis=(-1, -2, -3))
    problem = "the episode ended, but the view is not the first one of the next episode"
    _expect_nowhere(ended & differs, problem)


def _check_final_views(subject: _Subject) -> None:
    """Check that steps with final views are the same steps, and their views final only at ends."""
    if subject.world.step_with_final is None:
        return
    one, other = subject.played.steps, _Subject(subject.world.with_final_views()).played.steps
    for field in SEEN:
        if not np.array_equal(getattr(one, field), getattr(other, field), equal_nan=True):
            raise ContractError(f"{field} differs between step and step_with_final")
    differs = (np.asarray(other.final_view) != other.view).any(axis=(-1, -2, -3))
    early = differs & ~(other.terminated | other.truncated)
    _expect_nowhere(early, "final_view must be the view, for the episode goes on")


def _check_independence(subject: _Subject) -> None:
    """Check that the actions of the last world change nothing in the others.

    The check stops at the first end of an episode, because worlds may share their fresh levels.
    """
    world = subject.world
    if world.num_worlds < 2 or world.num_actions < 2:
        return
    other_actions = subject.actions.copy()
    other_actions[:, -1] = (other_actions[:, -1] + 1) % world.num_actions
    one, other = subject.played.steps, subject.play(actions=other_actions).steps
    ends = [(each.terminated | each.truncated).any(axis=1) for each in (one, other)]
    ended = ends[0] | ends[1]
    until = max(int(np.argmax(ended)), 1) if ended.any() else len(ended)
    for field in SEEN:
        a, b = getattr(one, field)[:until, :-1], getattr(other, field)[:until, :-1]
        if field in ("view", "panorama") and ended[0]:
            continue
        same = np.isclose(a, b, 0, 0, equal_nan=True).reshape(*a.shape[:2], -1).all(axis=-1)
        _expect_nowhere(~same, f"{field} depends on the actions in another world")


def _check_numbers(subject: _Subject) -> None:
    steps, names = subject.played.steps, subject.world.environments
    _expect_nowhere(~np.isfinite(steps.reward), "the reward is not finite")
    unknown = (steps.environment < 0) | (steps.environment >= len(names))
    _expect_nowhere(unknown, f"environment must be 0..{len(names) - 1}, an index of names")


def _check_counts(subject: _Subject) -> None:
    played = subject.played
    views, panoramas = played.steps.view, played.steps.panorama
    if (views == views[:1]).all():
        raise ContractError("the view never changes, whatever is done: there is nothing to count")
    if (panoramas == panoramas[:1]).all():
        raise ContractError("the panorama never changes, but views do: no change can be counted")


def _expect_nowhere(wrong: Bool[Array | np.ndarray, "T N"], problem: str) -> None:
    """End a check with this problem at the first place where a mask is true."""
    if wrong.any():
        time, world = np.argwhere(np.asarray(wrong))[0]
        raise ContractError(f"step {time} of world {world}: {problem}")


CHECKS: dict[str, Callable[[_Subject], None]] = {
    "one trace": _check_trace,
    "first moment": _check_first,
    "same key, same numbers": _check_same,
    "worlds are independent": _check_independence,
    "one kind of end": _check_ends,
    "lengths of episodes": _check_lengths,
    "automatic resets": _check_resets,
    "numbers": _check_numbers,
    "counts": _check_counts,
    "final views": _check_final_views,
}
