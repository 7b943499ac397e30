"""Encode observations of other libraries as bytes, for networks (views) and for counts.

- An image of bytes with three channels stays as it is; other images place their channels side by
  side, three at a time.
- A vector of n numbers becomes an image one pixel high, three numbers a pixel.
- A whole number takes as many bytes as its bounds need; a real number is scaled from its bounds to
  0..255 (`--network.brightest 255` divides views by 255).
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, UInt8

BYTE = 256
CHANNELS = 3  # channels of a view

type Bounds = tuple[Any, Any]  # low and high: numbers, or arrays of an observation's shape
type BytesOf = Callable[[Array], tuple[UInt8[Array, "N height width 3"], UInt8[Array, "N numbers"]]]


def make_view(
    seen: Any, bounds: Bounds | None, levels: int = BYTE
) -> tuple[BytesOf, tuple[int, int, int]]:
    """Return an encoder of observations `[N, ...]`, and the shape of its views.

    Args:
        seen: shape and dtype of one observation, a `jax.ShapeDtypeStruct`.
        bounds: bounds of its numbers (None: unknown).
        levels: quantization levels of a real number in `panorama`, 2 to 256 (`view` keeps 256).

    Raises:
        ValueError: an observation is not one array of numbers, or lacks finite bounds.
    """
    if not isinstance(seen, jax.ShapeDtypeStruct):
        raise ValueError(f"an observation must be one array, not a {type(seen).__name__}")
    if levels not in range(2, BYTE + 1):
        raise ValueError(f"levels must be 2 to {BYTE}, a whole number, not {levels}")
    if jnp.issubdtype(seen.dtype, jnp.floating):
        if bounds is None:
            raise ValueError(
                "its observations are real numbers without bounds: give bounds=(low, high)"
            )
        encode = _encode_reals(bounds, seen.shape)
    elif jnp.issubdtype(seen.dtype, jnp.integer) or seen.dtype == bool:
        encode = _encode_integers(*_integer_bounds(seen, bounds))
        levels = BYTE  # whole numbers are counted as they are
    else:
        raise ValueError(f"an observation must hold numbers, not {seen.dtype}")

    def bytes_of(observation: Array) -> tuple[Array, Array]:
        numbers = encode(observation)
        counted = (numbers.astype(jnp.uint32) * levels // BYTE).astype(jnp.uint8)
        return _as_image(numbers), counted.reshape(len(counted), -1)

    probe = jax.ShapeDtypeStruct((1, *seen.shape), seen.dtype)
    height, width, channels = jax.eval_shape(bytes_of, probe)[0].shape[1:]
    return bytes_of, (height, width, channels)


def _encode_reals(bounds: Bounds, shape: tuple[int, ...]) -> Callable[[Array], Array]:
    try:
        low, high = (np.broadcast_to(np.asarray(bound, np.float32), shape) for bound in bounds)
    except (ValueError, TypeError):
        raise ValueError(
            f"bounds must be (low, high), numbers or arrays of shape {shape}"
        ) from None
    with np.errstate(over="ignore", invalid="ignore"):
        finite = np.isfinite(high - low).all()  # as float32, so is what is clipped
    if not (finite and (low < high).all()):
        raise ValueError("bounds and their ranges must be finite, each low below its high")

    def encode(observation: Array) -> UInt8[Array, "N *shape 1"]:
        share = (jnp.clip(observation, low, high) - low) / (high - low)
        return jnp.round(share * (BYTE - 1)).astype(jnp.uint8)[..., None]

    return encode


def _encode_integers(low: int, high: int) -> Callable[[Array], Array]:
    """Return an encoder into as many bytes as the bounds need, least significant first."""
    places = max(1, math.ceil(math.log2(high - low + 1) / 8))

    def encode(observation: Array) -> UInt8[Array, "N *shape places"]:
        if observation.dtype == bool:  # cannot be clipped
            return observation.astype(jnp.uint8)[..., None]
        number = observation.dtype.type
        within = jnp.clip(observation, number(low), number(high))
        if low == 0 and places == 1:
            return within.astype(jnp.uint8)[..., None]
        above = within.astype(jnp.int32).astype(jnp.uint32) - np.uint32(low % 2**32)
        digits = [(above >> 8 * place) & (BYTE - 1) for place in range(places)]
        return jnp.stack(digits, axis=-1).astype(jnp.uint8)

    return encode


def _integer_bounds(seen: jax.ShapeDtypeStruct, bounds: Bounds | None) -> tuple[int, int]:
    if seen.dtype == bool:
        return 0, 1
    type_bounds = jnp.iinfo(seen.dtype)
    low, high = (type_bounds.min, type_bounds.max) if bounds is None else bounds
    lowest, highest = max(np.min(low), type_bounds.min), min(np.max(high), type_bounds.max)
    if not (np.isfinite(low).all() and np.isfinite(high).all() and lowest <= highest):
        raise ValueError(f"bounds must be finite, in {seen.dtype}'s range, and low at most high")
    return int(lowest), int(highest)


def _as_image(numbers: UInt8[Array, "N *shape places"]) -> UInt8[Array, "N height width 3"]:
    """Return images of encoded observations; those neither 2-D nor 3-D become one row."""
    batch, *shape, places = numbers.shape
    if len(shape) not in (2, 3):
        return _padded(numbers.reshape(batch, -1)).reshape(batch, 1, -1, CHANNELS)
    height, width = shape[:2]
    image = _padded(numbers.reshape(batch, height, width, math.prod(shape[2:]) * places))
    groups = image.reshape(batch, height, width, -1, CHANNELS)
    return jnp.moveaxis(groups, 3, 2).reshape(batch, height, -1, CHANNELS)


def _padded(numbers: UInt8[Array, "*shape"]) -> UInt8[Array, "*padded"]:
    """Pad the last axis with zeros to a multiple of three."""
    more = -numbers.shape[-1] % CHANNELS
    return jnp.pad(numbers, [(0, 0)] * (numbers.ndim - 1) + [(0, more)])
