"""What programs compute: their floating-point operations, and what their products move."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn

from cbet_jax.config import Factors, NetworkSettings
from experiments.benchmarks.timing import TimedTask

PRODUCTS = ("dot_general", "conv_general_dilated")
MATRIX_SHAPE = (1024, 1024, 4096)  # rows, inner, columns of the product that sets the ceiling


def matrix_product(
    shape: tuple[int, int, int] = MATRIX_SHAPE, factors: Factors = "float32"
) -> TimedTask:
    """Return the plain matrix product that other speeds are compared with; sums are float32.

    Args:
        shape: rows, inner, columns.
        factors: dtype of the factors.
    """
    rows, inner, columns = shape
    left = jax.random.normal(jax.random.key(0), (rows, inner)).astype(factors)
    right = jax.random.normal(jax.random.key(1), (inner, columns)).astype(factors)
    product = jax.jit(partial(jnp.matmul, preferred_element_type=jnp.float32))
    return TimedTask(
        run=lambda: jax.block_until_ready(product(left, right)),
        amount=2.0 * rows * inner * columns,
        unit="FLOP",
    )


def forward_flops(
    settings: NetworkSettings, view_shape: tuple[int, int, int], actions: int
) -> float:
    """Return the floating-point operations of the policy network for one view.

    Each weight counts two wherever it is used. A frame of training takes four times as many:
    forward to act, forward to learn, and backward, which is two forward passes.
    """
    height, width, channels = view_shape
    products = 0
    for _ in range(settings.conv_layers):
        height, width = (height + 1) // 2, (width + 1) // 2
        products += height * width * 9 * channels * settings.channels
        channels = settings.channels
    features = height * width * channels
    for _ in range(settings.dense_layers):
        products += features * settings.dense_units
        features = settings.dense_units
    for _ in range(settings.lstm_layers):
        products += 4 * settings.lstm_units * (features + settings.lstm_units)
        features = settings.lstm_units
    return 2.0 * (products + features * (actions + 1))


def product_bytes(function: Callable[..., Any], *arguments: Any) -> float:
    """Return the bytes that a program's matrix products and convolutions read and write.

    Each product reads both factors and writes its result, whatever the caches still hold. One
    inside a loop counts at every turn; loops must have a known length.

    Args:
        function: the program.
        *arguments: its arguments, or their shapes.
    """
    products = _products(jax.make_jaxpr(function)(*arguments).jaxpr)
    return float(sum(turns * _bytes(product) for product, turns in products))


def _products(jaxpr: Jaxpr, turns: int = 1) -> Iterator[tuple[JaxprEqn, int]]:
    """Yield every product and how often it is computed."""
    for equation in jaxpr.eqns:
        if equation.primitive.name in PRODUCTS:
            yield equation, turns
        for inner in inner_jaxprs(equation):
            yield from _products(inner, turns * equation.params.get("length", 1))


def inner_jaxprs(equation: JaxprEqn) -> Iterator[Jaxpr]:
    """Yield the programs inside an equation, such as the body of a loop or of a function."""
    for value in jax.tree.leaves(tuple(equation.params.values()), is_leaf=_is_jaxpr):
        if _is_jaxpr(value):
            yield value.jaxpr if isinstance(value, ClosedJaxpr) else value


def _is_jaxpr(value: Any) -> bool:
    return isinstance(value, Jaxpr | ClosedJaxpr)


def _bytes(equation: JaxprEqn) -> int:
    arrays: list[Any] = [variable.aval for variable in (*equation.invars, *equation.outvars)]
    return sum(array.size * array.dtype.itemsize for array in arrays)
