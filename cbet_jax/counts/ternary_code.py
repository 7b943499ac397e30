"""Ternary codes, which are equal for images that look alike.

Paper, appendix "Habitat Environments Details", after SimHash (Charikar, 2002).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int8, Num, PRNGKeyArray

from cbet_jax.config import Offsets

ENTRIES = 128
THRESHOLD = 0.5


class TernaryCode(NamedTuple):
    """One random projection."""

    projection: Float[Array, "entries numbers"]  # A, standard normal
    offsets: Float[Array, " entries"]  # w


def make_ternary_code(key: PRNGKeyArray, numbers: int, offsets: Offsets) -> TernaryCode:
    """Draw the code of images of `numbers` numbers.

    Args:
        key: draws the projection and the offsets.
        numbers: size of an image.
        offsets: uniform in (-1, 1) as in the published code, or standard normal as in the paper.
    """
    projection_key, offset_key = jax.random.split(key)
    projection = jax.random.normal(projection_key, (ENTRIES, numbers))
    if offsets == "normal":
        return TernaryCode(projection, jax.random.normal(offset_key, (ENTRIES,)))
    return TernaryCode(projection, jax.random.uniform(offset_key, (ENTRIES,), minval=-1.0))


def encode(code: TernaryCode, image: Num[Array, " numbers"]) -> Int8[Array, " entries"]:
    """Return 1 where g = tanh(A x) + w is above 0.5, -1 where it is below -0.5, else 0."""
    product = jnp.dot(code.projection, image.astype(jnp.float32), precision="highest")
    g = jnp.tanh(product) + code.offsets
    return (g > THRESHOLD).astype(jnp.int8) - (g < -THRESHOLD).astype(jnp.int8)
