"""Matrix products with factors in float32 or bfloat16, and sums in float32.

Processors multiply numbers of 16 bits (bfloat16: the range of float32, 8 bits of precision) two to
sixteen times as fast as numbers of 32. Parameters, activations, gradients and the optimizer stay in
float32. Only the factors of a product are rounded, forward and backward.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from cbet_jax.config import Factors
from envs.barrier import materialize, row_major

LARGE_WEIGHTS = 512 * 2048  # recurrent weights of 512 LSTM units
FEW_ROWS = range(16, 65, 16)  # 16 numbers fill a CPU's register; beyond 64 rows nothing is gained


def round_factor(x: Float[Array, "*shape"], factors: Factors) -> Float[Array, "*shape"]:
    """Return `x` rounded to the precision of a factor."""
    return x.astype(factors)


def matmul(
    x: Float[Array, "*N inputs"], weights: Float[Array, "inputs outputs"], factors: Factors
) -> Float[Array, "*N outputs"]:
    """Return `x @ weights` in float32. The products of its gradient round their factors too.

    Args:
        x: the inputs.
        weights: may be rounded already.
        factors: precision of the factors.
    """
    return _rounded_matmul(x.reshape(-1, x.shape[-1]), weights, factors).reshape(*x.shape[:-1], -1)


def matmul_like(
    x: Float[Array, "N inputs"], weights: Float[Array, "inputs outputs"]
) -> Float[Array, "N outputs"]:
    """Return `x @ weights` in float32, with `x` rounded as `weights` are; has no gradient."""
    return jnp.matmul(x.astype(weights.dtype), weights, preferred_element_type=jnp.float32)


def weights_gradient(
    x: Float[Array, "N inputs"], gradient: Float[Array, "N outputs"]
) -> Float[Array, "inputs outputs"]:
    """Return the gradient of `x @ weights` by the weights, from rounded factors.

    On a CPU this product takes 1.7 times as long with the wider factor on the left.
    """
    if x.shape[1] > gradient.shape[1]:
        return materialize(matmul_like(transpose(gradient), x)).T
    return matmul_like(transpose(x), gradient)


def transpose(matrix: Float[Array, "rows columns"]) -> Float[Array, "columns rows"]:
    """Return the transpose as a factor of a product.

    On a CPU the transpose of 16-bit numbers is written out in memory. XLA's fast 16-bit products
    take only factors in that order. It would turn any other factor into 32-bit numbers, which take
    three times as long. On a GPU writing it out would add a seventh to the bytes of learning.
    """
    if matrix.dtype == jnp.float32:
        return matrix.T
    return jax.lax.platform_dependent(matrix.T, cpu=row_major, default=lambda same: same)


def loop_matmul(
    weights: Float[Array, "inputs outputs"], rows: int, steps: int, *, transposed: bool = False
) -> Callable[[Array], Array]:
    """Return the function `x -> x @ weights` for use inside a loop; it has no gradient.

    On a CPU a product packs its right factor anew each time. With few rows and large weights that
    takes a quarter to half of the time, so there the weights become the left factor.

    Args:
        weights: already rounded.
        rows: number of rows of `x`.
        steps: number of steps of the loop.
        transposed: multiply by `weights.T` instead.
    """
    pays = weights.size >= LARGE_WEIGHTS and rows in FEW_ROWS and steps > 1
    if not pays:
        return partial(matmul_like, weights=transpose(weights) if transposed else weights)
    return partial(_matmul_from_left, left=weights if transposed else row_major(weights.T))


def _matmul_from_left(
    x: Float[Array, "N inputs"], left: Float[Array, "outputs inputs"]
) -> Float[Array, "N outputs"]:
    """Return `x @ left.T`. Without `materialize`, XLA would swap the factors back."""
    right = materialize(row_major(materialize(x.astype(left.dtype)).T))
    result = materialize(jnp.matmul(left, right, preferred_element_type=jnp.float32))
    return materialize(row_major(result.T))


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def _rounded_matmul(x: Array, weights: Array, factors: Factors) -> Array:
    return matmul_like(x, round_factor(weights, factors))


def _forward(x: Array, weights: Array, factors: Factors) -> tuple[Array, tuple[Array, Array]]:
    rounded = round_factor(x, factors), round_factor(weights, factors)
    return matmul_like(*rounded), rounded


def _backward(
    factors: Factors, rounded: tuple[Array, Array], gradient: Array
) -> tuple[Array, Array]:
    x, weights = rounded
    gradient = round_factor(gradient, factors)
    return matmul_like(gradient, transpose(weights)), weights_gradient(x, gradient)


_rounded_matmul.defvjp(_forward, _backward)
