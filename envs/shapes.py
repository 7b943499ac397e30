"""The record of a world, and the shapes and types of its functions, checked without playing."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from envs.errors import described, expect
from envs.types import EPISODE_METRICS, RESERVED_METRICS, Step, World


def check_record(world: World) -> None:
    """Expect the fields of a world that are no functions to be as `World` says."""
    for name in ("num_worlds", "num_actions", "max_steps"):
        value = getattr(world, name)
        good = isinstance(value, int) and value >= 1
        expect(good, f"{name} must be a whole number of at least 1, not {value!r}")
    for name in ("view_shape", *(["other_view_shape"] if world.other_view_shape else [])):
        shape = getattr(world, name)
        whole = all(isinstance(x, int) and x > 0 for x in shape)
        good = len(shape) == 3 and shape[2] == 3 and whole
        expect(good, f"{name} must be (height, width, 3), not {shape!r}")
    names = world.environments
    good = isinstance(names, tuple) and bool(names) and all(isinstance(x, str) for x in names)
    expect(good, f"environments must be a tuple of names, not {names!r}")
    distinct = len(set(names)) == len(names)
    expect(distinct, f"environments must have names of their own, not {names!r}")
    unmeasured, known = world.unmeasured, ", ".join(EPISODE_METRICS)
    good = isinstance(unmeasured, tuple) and set(unmeasured) <= set(EPISODE_METRICS)
    expect(good, f"unmeasured must be a tuple of {known}, not {unmeasured!r}")


def check_shapes(world: World) -> None:
    """Expect the shapes and types of `World` and `Step` from a world's functions."""
    key, actions = jax.random.key(0), jax.ShapeDtypeStruct((world.num_worlds,), jnp.int32)
    state, step = _pair("init", jax.eval_shape(world.init, key))
    _check_step("init", world, step)
    after, step = _pair("step", jax.eval_shape(world.step, state, actions))
    _check_step("step", world, step)
    _check_state("step", state, after)
    if world.step_with_final:
        name, shapes = "step_with_final", jax.eval_shape(world.step_with_final, state, actions)
        after, step = _pair(name, shapes)
        _check_step(name, world, step, "final_view")
        _check_state(name, state, after)
    _check_state("refresh", state, jax.eval_shape(world.refresh, state))
    metrics = jax.eval_shape(world.report, state)
    good = isinstance(metrics, Mapping)
    expect(good, f"report must return a dictionary, not {type(metrics).__name__}")
    for name, metric in metrics.items():
        good = name not in RESERVED_METRICS
        expect(good, f"report: {name!r} is a metric that every world has")
        good = not metric.shape and jnp.issubdtype(metric.dtype, jnp.floating)
        expect(good, f"report: {name!r} must be one real number, not {described(metric)}")


def _pair(name: str, returned: Any) -> tuple[Any, Step]:
    good = isinstance(returned, tuple) and len(returned) == 2
    expect(good, f"{name} must return (state, Step), not {described(returned)}")
    good = isinstance(returned[1], Step)
    expect(good, f"{name} must return a Step second, not {described(returned[1])}")
    return returned


def _check_step(name: str, world: World, step: Step, *also: str) -> None:
    worlds = [int(world.num_worlds)]
    expected = {}
    for field in ("view", *also):
        expected[field] = f"uint8{[*worlds, *world.view_shape]}"
        if world.other_view_shape:
            expected[f"other_{field}"] = f"uint8{[*worlds, *world.other_view_shape]}"
    expected |= {
        "reward": f"float32{worlds}",
        **dict.fromkeys(("success", "terminated", "truncated"), f"bool{worlds}"),
        "length": f"int32{worlds}",
        "environment": f"int32{worlds}",
        "interaction": f"uint32{[*worlds, 2]}",
    }
    for field, wanted in expected.items():
        found = described(getattr(step, field))
        expect(found == wanted, f"{name}: {field} must be {wanted}, not {found}")
    panorama, wanted = step.panorama, f"integers[{world.num_worlds}, numbers]"
    good = hasattr(panorama, "dtype") and panorama.ndim == 2 and [*panorama.shape[:1]] == worlds
    good = good and jnp.issubdtype(panorama.dtype, jnp.integer)
    expect(good, f"{name}: panorama must be {wanted}, not {described(panorama)}")


def _check_state(name: str, before: Any, after: Any) -> None:
    """Refuse a state whose type differs from that of `init`: a loop could not carry it."""
    same = str(jax.tree.structure(before)) == str(jax.tree.structure(after))
    expect(same, f"the state that {name} returns has other fields than init's")
    old, new = (jax.tree.leaves_with_path(state) for state in (before, after))
    for (path, leaf), (_, other) in zip(old, new, strict=True):
        same = (leaf.shape, leaf.dtype) == (other.shape, other.dtype)
        where = f"state{jax.tree_util.keystr(path)} is {described(other)}, not {described(leaf)}"
        expect(same, f"the state that {name} returns differs from init's: {where}")
