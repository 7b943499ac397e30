"""Matrix products, with factors in the precision that is asked for and sums in float32.

Processors multiply numbers of 16 bits (bfloat16: the range of float32, 8 bits of precision) two
to sixteen times as fast as those of 32. Parameters, activations, gradients and the optimizer
stay in float32: numbers are rounded on their way into a product alone, forward and backward.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jax.experimental.layout import Layout, with_layout_constraint
from jax.lax import optimization_barrier as barrier
from jaxtyping import Array, Float

from cbet_jax.config import Factors

LARGE_WEIGHTS = 512 * 2048  # numbers in weights: those of a layer of 512 LSTM units
FEW = range(16, 65, 16)  # rows; sixteen numbers fill a CPU's register, and more rows gain nothing


def rounded(x: Float[Array, "*shape"], factors: Factors) -> Float[Array, "*shape"]:
    """Returns `x` as the factor of a product."""
    return x.astype(factors)


def product(
    x: Float[Array, "*N inputs"], weights: Float[Array, "inputs outputs"], factors: Factors
) -> Float[Array, "*N outputs"]:
    """Returns `x @ weights` in float32; its gradient is computed from rounded factors, too."""
    if factors == "float32":
        return x @ weights
    flat = x.reshape(-1, x.shape[-1])
    return _rounded_product(flat, weights, factors).reshape(*x.shape[:-1], -1)


def multiply(x: Float[Array, "N inputs"], weights: Float[Array, "inputs outputs"]) -> Array:
    """Returns `x @ weights` in float32, `x` rounded as `weights` is; not to be differentiated."""
    return jnp.matmul(x.astype(weights.dtype), weights, preferred_element_type=jnp.float32)


def transposed(matrix: Array) -> Array:
    """Returns the transpose as a factor of a product.

    On a CPU it is written out in memory: XLA's fast products of 16-bit numbers take factors in
    that order alone, and where a factor is turned by its strides, numbers of 32 bits are
    multiplied instead, which takes three times as long.
    """
    if matrix.dtype == jnp.float32 or jax.default_backend() != "cpu":
        return matrix.T
    return _written(matrix.T)


def repeated(
    weights: Float[Array, "inputs outputs"], rows: int, times: int, *, turned: bool = False
) -> Callable[[Array], Array]:
    """Returns `x -> x @ weights` for a loop of such products; not to be differentiated.

    On a CPU a product packs its right factor anew each time, which takes a quarter to a half of
    the time of few rows and large weights. There the weights are the left factor.

    Args:
        weights: of the products, rounded.
        rows: of `x`.
        times: how often it is multiplied.
        turned: multiply by `weights.T` instead.
    """
    fits = weights.size >= LARGE_WEIGHTS and rows in FEW and times > 1
    if not fits or jax.default_backend() != "cpu":
        return partial(multiply, weights=transposed(weights) if turned else weights)
    return partial(_multiply_from_left, left=weights if turned else _written(weights.T))


def _multiply_from_left(
    x: Float[Array, "N inputs"], left: Float[Array, "outputs inputs"]
) -> Float[Array, "N outputs"]:
    """Returns `x @ left.T`; without the barriers XLA would turn the product around again."""
    turned_x = barrier(_written(barrier(x.astype(left.dtype)).T))
    result = barrier(jnp.matmul(left, turned_x, preferred_element_type=jnp.float32))
    return barrier(_written(result.T))


def _written(matrix: Array) -> Array:
    return with_layout_constraint(matrix, Layout((0, 1)))


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def _rounded_product(x: Array, weights: Array, factors: Factors) -> Array:
    return multiply(x, rounded(weights, factors))


def _forward(x: Array, weights: Array, factors: Factors) -> tuple[Array, tuple[Array, Array]]:
    factors_of_product = rounded(x, factors), rounded(weights, factors)
    return multiply(*factors_of_product), factors_of_product


def _backward(
    factors: Factors, factors_of_product: tuple[Array, Array], gradient: Array
) -> tuple[Array, Array]:
    x, weights = factors_of_product
    gradient = rounded(gradient, factors)
    return multiply(gradient, transposed(weights)), multiply(transposed(x), gradient)


_rounded_product.defvjp(_forward, _backward)
