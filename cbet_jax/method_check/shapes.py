"""The shapes and types of a method's functions, compared without running them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cbet_jax.intrinsic.interface import Intrinsic, Params
from cbet_jax.method_check import corridor
from cbet_jax.method_check.walk import Walk, experience, make_trajectory
from cbet_jax.types import Trajectory, unchanged
from envs.errors import ContractError, described, expect, in_a_line
from envs.types import RESERVED_METRICS


def compare_shapes(
    method: Intrinsic, walk: Walk, batch: int, num_actions: int = corridor.ACTIONS
) -> None:
    """Expect the shapes and types that a walk, or its shapes, and a batch of sequences ask for."""
    key, (steps, actors) = jax.random.key(0), walk.action.shape
    weight = np.asarray(method.coefficient)
    is_number = np.issubdtype(weight.dtype, np.number) and np.isrealobj(weight)
    is_weight = is_number and weight.ndim == 0 and 0 <= weight < np.inf
    expect(is_weight, "its coefficient must be a finite number of at least 0")

    params, memory = _pair("init", "(Params, memory)", method.init, key, walk.first)
    expect(isinstance(params, Params), f"init must return Params first, not {described(params)}")
    for part, networks in params._asdict().items():
        is_dict = isinstance(networks, dict)
        expect(is_dict, f"Params.{part} must be a dict, not {described(networks)}")
    begun = _shapes("begin_rollout", method.begin_rollout, memory, key, walk.first)
    _expect_same("begin_rollout", "its memory", memory, begun)

    seen = params, memory, jax.random.split(key, steps), jax.eval_shape(experience, walk)
    after, signal = _pair("observe", "(memory, signal)", method.observe, *seen)
    _expect_same("observe", "its memory", memory, after)
    for name, leaf in named_leaves(signal):
        wanted = f"observe's signal must have a row for each of {steps} steps and {actors} actors"
        expect(leaf.shape[:2] == (steps, actors), f"{wanted}, but {name} is {described(leaf)}")

    trajectory = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct((leaf.shape[0], batch, *leaf.shape[2:]), leaf.dtype),
        jax.eval_shape(partial(make_trajectory, num_actions=num_actions), walk, signal),
    )
    adapt = lambda params, played: method.adapt(params, played, unchanged)  # noqa: E731
    _expect_same("adapt", "its parameters", params, _shapes("adapt", adapt, params, trajectory))
    found = _shapes("reward", method.reward, params, trajectory)
    is_pair = isinstance(found, tuple) and len(found) == 2
    reward, loss = found if is_pair else (found, (jax.ShapeDtypeStruct((), jnp.float32), {}))
    wanted = described(jax.ShapeDtypeStruct((steps, batch), jnp.float32))
    good = described(reward) == wanted
    expect(good, f"reward must return {wanted}, of steps and actors, not {described(reward)}")
    good = isinstance(loss, tuple) and len(loss) == 2
    expect(good, f"reward must return (loss, its terms) second, not {described(loss)}")
    total, terms = loss
    _expect_numbers("reward's loss", {"loss": total})
    _expect_numbers("reward's terms", terms)

    def loss_of(learnt: Any, fixed: Any, trajectory: Trajectory) -> Any:
        return method.reward_and_loss(Params(learnt, fixed), trajectory)[1][0]

    _shapes("the gradient of reward's loss", jax.grad(loss_of), *params, trajectory)
    metrics = _shapes("metrics", method.metrics, memory)
    _expect_numbers("metrics", metrics)
    twice = (terms.keys() & metrics.keys()) | {*RESERVED_METRICS} & {*terms, *metrics}
    expect(not twice, f"two metrics have the name {', '.join(sorted(twice))}: rename one")


def named_leaves(tree: Any) -> list[tuple[str, Any]]:
    """Return the arrays of a tree with their names; random keys as numbers."""

    def number(leaf: Any) -> Any:
        if isinstance(leaf, jax.ShapeDtypeStruct):
            return leaf
        is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        return np.asarray(jax.random.key_data(leaf) if is_key else leaf)

    return [
        (jax.tree_util.keystr(path, simple=True, separator=".") or "an array", number(leaf))
        for path, leaf in jax.tree.leaves_with_path(tree)
    ]


def _shapes(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        for _ in range(2):  # what the first trace leaves in a variable, the second reads there
            trace = jax.make_jaxpr(lambda *each: function(*each), return_shape=True)
            program, shapes = trace(*arguments)
    except (Exception, SystemExit) as error:
        raise ContractError(f"{name} cannot be compiled: {in_a_line(error)}") from None
    left = any(isinstance(constant, jax.core.Tracer) for constant in program.consts)
    expect(not left, f"{name} reads an array that was left in a variable: keep it in the memory")
    return shapes


def _pair(name: str, wanted: str, function: Callable[..., Any], *arguments: Any) -> Any:
    pair = _shapes(name, function, *arguments)
    good = isinstance(pair, tuple) and len(pair) == 2
    expect(good, f"{name} must return {wanted}, not {described(pair)}")
    return pair


def _expect_same(name: str, what: str, before: Any, after: Any) -> None:
    """Expect equal structure, shapes and types."""
    old, new = (dict(named_leaves(tree)) for tree in (before, after))
    same = str(jax.tree.structure(before)) == str(jax.tree.structure(after))
    found = f"{', '.join(new) or 'nothing'}, not {', '.join(old) or 'nothing'}"
    expect(same, f"{name} must return the same arrays as {what}, but returns {found}")
    for key, leaf in old.items():
        one, other = described(leaf), described(new[key])
        expect(one == other, f"{name} must keep {what}: {key} was {one} and is {other}")


def _expect_numbers(name: str, values: Any) -> None:
    expect(isinstance(values, dict), f"{name} must give a dict of numbers, not {described(values)}")
    for key, value in values.items():
        expect(isinstance(key, str), f"{name} must have names, not {key!r}")
        kind = getattr(value, "dtype", object)
        is_real = jnp.issubdtype(kind, jnp.floating) or jnp.issubdtype(kind, jnp.integer)
        good = is_real and value.shape == ()
        expect(good, f"{name} must give single real numbers, but {key} is {described(value)}")
