"""Embeddings of views and their distance, for methods with networks."""

from typing import cast

import flax.linen as nn
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Num, PRNGKeyArray, PyTree

from cbet_jax.config import BRIGHTEST_PIXEL
from cbet_jax.networks.convolution import Convolution


class Embedding(nn.Module):
    """phi: 3x3 convolutions of stride 2 and padding 1, an ELU after each.

    Paper, appendix "Hyperparameter Details". The published code has layers of (32, 32, 128) filters
    for MiniGrid's 7x7 views, and five of 32 for Habitat's 64x64 images. Both embeddings have 128
    numbers.
    """

    channels: tuple[int, ...]

    @nn.compact
    def __call__(self, view: Num[Array, "T N height width 3"]) -> Float[Array, "T N numbers"]:
        x = view.reshape(-1, *view.shape[2:]).astype(jnp.float32) / BRIGHTEST_PIXEL
        for layer, channels in enumerate(self.channels):
            x = Convolution(channels, name=f"convolution_{layer}")(x)
        return x.reshape(*view.shape[:2], -1)


def init_params(module: nn.Module, key: PRNGKeyArray, *inputs: Array) -> PyTree:
    """Return the initial parameters of a module for inputs of these shapes."""
    return module.init(key, *inputs)["params"]


def apply(module: nn.Module, params: PyTree, *inputs: Array) -> Array:
    """Return the module's output."""
    return cast(Array, module.apply({"params": params}, *inputs))


def distance(
    one: Float[Array, "T N numbers"], other: Float[Array, "T N numbers"], *, squared: bool
) -> Float[Array, "T N"]:
    """Return the Euclidean norm of the difference, or its square; the gradient at 0 is 0."""
    difference = one - other
    return (difference**2).sum(-1) if squared else optax.safe_norm(difference, 0.0, axis=-1)
