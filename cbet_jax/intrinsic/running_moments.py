"""Running means and variances of what a method sees, by Chan's parallel formula.

They are fixed parameters of a method: its `adapt` includes each batch before it is learnt from.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from cbet_jax.types import SameType


class Moments(NamedTuple):
    """The mean and the variance of all values so far."""

    mean: Float[Array, "*shape"]
    variance: Float[Array, "*shape"]
    weight: Float[Array, ""]  # values per number, of all devices: a run may move to fewer or more

    @property
    def deviation(self) -> Float[Array, "*shape"]:
        """The standard deviation."""
        return jnp.sqrt(self.variance)


def begin(*shape: int) -> Moments:
    """Return the moments before any value: mean 0, variance 1, with next to no weight."""
    return Moments(jnp.zeros(shape), jnp.ones(shape), jnp.asarray(1e-4, jnp.float32))


def include(moments: Moments, values: Float[Array, "..."], mean: SameType) -> Moments:
    """Return the moments with a batch of values added; the batch axes come first.

    Args:
        moments: those of all values so far.
        values: this device's part of the batch.
        mean: averages over the devices, whose number is its `devices` if there are several.
    """
    batch = tuple(range(values.ndim - moments.mean.ndim))
    new, squares = mean((values.mean(batch), (values**2).mean(batch)))
    number = jnp.float32(values.size // moments.mean.size * getattr(mean, "devices", 1))
    total = moments.weight + number
    share, kept = number / total, moments.weight / total  # 1 - share would round to 0
    difference = new - moments.mean
    between = difference**2 * share * kept
    within = moments.variance * kept + jnp.maximum(squares - new**2, 0) * share
    return Moments(moments.mean + difference * share, within + between, total)
