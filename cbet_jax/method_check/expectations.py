"""What is expected of what a method returns, said in words where it is not met."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs.errors import ContractError

CLOSE = 1e-4  # relative, of numbers that may be added in another order


def expect(good: Any, problem: str) -> None:
    if not good:
        raise ContractError(problem)


def is_weight(coefficient: Any) -> bool:
    try:
        return float(coefficient) >= 0
    except (TypeError, ValueError):
        return False


def shapes_of(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the shapes that a function of the method would return."""
    try:
        return jax.eval_shape(function, *arguments)
    except Exception as error:
        raise ContractError(
            f"{name} cannot be compiled: {type(error).__name__}: {first_line(error)}"
        ) from None


def expect_pair(name: str, wanted: str, function: Callable[..., Any], *arguments: Any) -> Any:
    pair = shapes_of(name, function, *arguments)
    good = isinstance(pair, tuple) and len(pair) == 2
    expect(good, f"{name} must return {wanted}, not {kind(pair)}")
    return pair


def expect_same(name: str, what: str, before: Any, after: Any) -> None:
    """Expect the same arrays, by place, shape and type."""
    old, new = (dict(named_leaves(tree)) for tree in (before, after))
    same = str(jax.tree.structure(before)) == str(jax.tree.structure(after))
    found = f"{', '.join(new) or 'nothing'}, not {', '.join(old) or 'nothing'}"
    expect(same, f"{name} must return the same arrays as {what}, but returns {found}")
    for key, leaf in old.items():
        one, other = described(leaf), described(new[key])
        expect(one == other, f"{name} must keep {what}: {key} was {one} and is {other}")


def expect_numbers(name: str, values: Any) -> None:
    expect(isinstance(values, dict), f"{name} must give a dict of numbers, not {kind(values)}")
    for key, value in values.items():
        good = getattr(value, "shape", None) == ()
        expect(good, f"{name} must give single numbers, but {key} is {described(value)}")


def named_leaves(tree: Any) -> list[tuple[str, Any]]:
    """Return the arrays of a tree with their names; keys as their numbers."""

    def number(leaf: Any) -> Any:
        if isinstance(leaf, jax.ShapeDtypeStruct):
            return leaf
        is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        return np.asarray(jax.random.key_data(leaf) if is_key else leaf)

    leaves, _ = jax.tree.flatten_with_path(tree)
    return [
        (jax.tree_util.keystr(path, simple=True, separator=".") or "an array", number(leaf))
        for path, leaf in leaves
    ]


def are_close(one: Any, other: Any) -> bool:
    return np.allclose(one, other, rtol=CLOSE, atol=1e-6, equal_nan=True)


def kind(value: Any) -> str:
    return type(value).__name__ if jax.tree.leaves(value) else repr(value)


def described(leaf: Any) -> str:
    if not hasattr(leaf, "shape"):
        return kind(leaf)
    return f"{leaf.dtype}[{', '.join(map(str, leaf.shape))}]"


def first_line(error: Exception) -> str:
    return (str(error).splitlines() or ["no more is said"])[0][:200]
