"""The world contract, checked with readable messages."""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from itertools import islice
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from envs.errors import Check, ContractError, NotChecked, checked
from envs.types import EPISODE_METRICS, RESERVED_METRICS, Step, World

MOST_STEPS = 2_000  # played in a check: more than two episodes of most worlds
FEWEST_STEPS = 50
STARTS = 4  # keys of `init` compared, to find whether all episodes begin alike
SHAPES = "shapes and types"
SEEN = tuple(name for name in Step._fields if name not in Step._field_defaults)


def check_world(world: World) -> Iterator[Check]:
    """Check a world against the contract of `envs.types`, with about two episodes of random play.

    Whether its views and rewards are the intended ones is not checked.
    """
    found = checked("record", lambda: _check_record(world))
    yield found
    shapes = Check(SHAPES, skipped="the record must be right first")
    if not found.problem:
        shapes = checked(SHAPES, lambda: _check_shapes(world))
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


def _check_record(world: World) -> None:
    for name in ("num_worlds", "num_actions", "max_steps"):
        value = getattr(world, name)
        if not isinstance(value, int) or value < 1:
            raise ContractError(f"{name} must be a whole number of at least 1, not {value!r}")
    shape = world.view_shape
    if len(shape) != 3 or shape[2] != 3 or not all(isinstance(x, int) and x > 0 for x in shape):
        raise ContractError(f"view_shape must be (height, width, 3), not {shape!r}")
    names = world.environments
    if not isinstance(names, tuple) or not names or not all(isinstance(x, str) for x in names):
        raise ContractError(f"environments must be a tuple of names, not {names!r}")
    if len(set(names)) < len(names):
        raise ContractError(f"environments must have names of their own, not {names!r}")
    unmeasured = world.unmeasured
    if not isinstance(unmeasured, tuple) or not set(unmeasured) <= set(EPISODE_METRICS):
        raise ContractError(
            f"unmeasured must be a tuple of {', '.join(EPISODE_METRICS)}, not {unmeasured!r}"
        )


def _check_shapes(world: World) -> None:
    key, actions = jax.random.key(0), jax.ShapeDtypeStruct((world.num_worlds,), jnp.int32)
    state, step = _pair("init", jax.eval_shape(world.init, key))
    _check_step("init", world, step)
    after, step = _pair("step", jax.eval_shape(world.step, state, actions))
    _check_step("step", world, step)
    _check_state("step", state, after)
    if world.step_with_final:
        after, step = _pair(
            "step_with_final", jax.eval_shape(world.step_with_final, state, actions)
        )
        _check_step("step_with_final", world, step, "final_view")
        _check_state("step_with_final", state, after)
    _check_state("refresh", state, jax.eval_shape(world.refresh, state))
    metrics = jax.eval_shape(world.report, state)
    if not isinstance(metrics, Mapping):
        raise ContractError(f"report must return a dictionary, not {type(metrics).__name__}")
    for name, metric in metrics.items():
        if name in RESERVED_METRICS:
            raise ContractError(f"report: {name!r} is a metric that every world has")
        if metric.shape or not jnp.issubdtype(metric.dtype, jnp.floating):
            raise ContractError(f"report: {name!r} must be one real number, not {_kind(metric)}")


def _pair(name: str, returned: Any) -> tuple[Any, Step]:
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise ContractError(f"{name} must return (state, Step), not {type(returned).__name__}")
    if not isinstance(returned[1], Step):
        raise ContractError(f"{name} must return a Step second, not {_kind(returned[1])}")
    return returned


def _check_step(name: str, world: World, step: Step, *also: str) -> None:
    worlds = (world.num_worlds,)
    view = (*worlds, *world.view_shape), "uint8"
    flags = dict.fromkeys(("success", "terminated", "truncated"), (worlds, "bool"))
    expected = {
        "view": view,
        **dict.fromkeys(also, view),
        "reward": (worlds, "float32"),
        **flags,
        "length": (worlds, "int32"),
        "environment": (worlds, "int32"),
        "interaction": ((*worlds, 2), "uint32"),
    }
    for field, (shape, dtype) in expected.items():
        found = getattr(step, field)
        if not hasattr(found, "dtype") or (found.shape, str(found.dtype)) != (shape, dtype):
            wanted = f"{dtype}[{', '.join(map(str, shape))}]"
            raise ContractError(f"{name}: {field} must be {wanted}, not {_kind(found)}")
    found = step.panorama
    is_array = hasattr(found, "dtype") and found.ndim == 2 and found.shape[:1] == worlds
    if not is_array or not jnp.issubdtype(found.dtype, jnp.integer):
        wanted = f"[{world.num_worlds}, numbers]"
        raise ContractError(f"{name}: panorama must be integers{wanted}, not {_kind(found)}")


def _check_state(name: str, before: Any, after: Any) -> None:
    """Refuse a state whose type differs from that of `init`: a loop could not carry it."""
    old, new = (jax.tree.leaves_with_path(state) for state in (before, after))
    if str(jax.tree.structure(before)) != str(jax.tree.structure(after)):
        raise ContractError(f"the state that {name} returns has other fields than init's")
    for (path, leaf), (_, other) in zip(old, new, strict=True):
        if (leaf.shape, leaf.dtype) != (other.shape, other.dtype):
            where = jax.tree_util.keystr(path)
            raise ContractError(
                f"the state that {name} returns differs from init's: state{where} is "
                f"{_kind(other)}, not {_kind(leaf)}"
            )


def _kind(leaf: Any) -> str:
    if not hasattr(leaf, "dtype"):
        return type(leaf).__name__
    return f"{leaf.dtype}[{', '.join(map(str, leaf.shape))}]"


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
    if found := _where(steps.terminated & steps.truncated):
        raise ContractError(
            f"{found}: terminated and truncated are both true; an end is one of them"
        )


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
    if found := _where((steps.length >= limit) & ~ended):
        raise ContractError(f"{found}: the episode goes on after max_steps, {limit}")


def _check_resets(subject: _Subject) -> None:
    steps = subject.played.steps
    ended = steps.terminated | steps.truncated
    if not ended.any():
        raise NotChecked(f"no episode ended in the {subject.count} steps that were played")
    starts = np.concatenate([subject.play(seed).first.view for seed in range(STARTS)])
    if (starts != starts[0]).any():
        return  # episodes begin differently: no view is wrong
    differs = (steps.view != starts[0]).any(axis=(-1, -2, -3))
    if found := _where(ended & differs):
        raise ContractError(
            f"{found}: the episode ended, but the view is not the first one of the next episode"
        )


def _check_final_views(subject: _Subject) -> None:
    """Check that steps with final views are the same steps, and their views final only at ends."""
    if subject.world.step_with_final is None:
        return
    one, other = subject.played.steps, _Subject(subject.world.with_final_views()).played.steps
    for field in SEEN:
        if not np.array_equal(getattr(one, field), getattr(other, field), equal_nan=True):
            raise ContractError(f"{field} differs between step and step_with_final")
    differs = (np.asarray(other.final_view) != other.view).any(axis=(-1, -2, -3))
    if found := _where(differs & ~(other.terminated | other.truncated)):
        raise ContractError(f"{found}: final_view must be the view, for the episode goes on")


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
        if found := _where(~same):
            raise ContractError(f"{found}: {field} depends on the actions in another world")


def _check_numbers(subject: _Subject) -> None:
    steps, names = subject.played.steps, subject.world.environments
    if found := _where(~np.isfinite(steps.reward)):
        raise ContractError(f"{found}: the reward is not finite")
    if found := _where((steps.environment < 0) | (steps.environment >= len(names))):
        raise ContractError(f"{found}: environment must be 0..{len(names) - 1}, an index of names")


def _check_counts(subject: _Subject) -> None:
    played = subject.played
    views, panoramas = played.steps.view, played.steps.panorama
    if (views == views[:1]).all():
        raise ContractError("the view never changes, whatever is done: there is nothing to count")
    if (panoramas == panoramas[:1]).all():
        raise ContractError("the panorama never changes, but views do: no change can be counted")


def _where(wrong: Bool[Array | np.ndarray, "T N"]) -> str:
    """Return the first place of a mask in words, or ''."""
    if not wrong.any():
        return ""
    time, world = np.argwhere(np.asarray(wrong))[0]
    return f"step {time} of world {world}"


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
