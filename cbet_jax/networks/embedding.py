"""Embeddings of views, and how far apart they are: what RND, Curiosity and RIDE build on."""

from typing import Any, cast

import flax.linen as nn
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray, UInt8

from cbet_jax.networks.policy_network import Convolution, elu

BRIGHTEST = 255  # the embeddings read every view as an image


class Embedding(nn.Module):
    """phi: 3x3 convolutions of stride 2, an ELU after each (paper, appendix "hyperparameters").

    The channels make 128 numbers: (32, 32, 128) of a 7x7 view, five times 32 of a 64x64 one.
    """

    channels: tuple[int, ...]

    @nn.compact
    def __call__(self, view: UInt8[Array, "T N height width 3"]) -> Float[Array, "T N numbers"]:
        x = view.reshape(-1, *view.shape[2:]).astype(jnp.float32) / BRIGHTEST
        for layer, channels in enumerate(self.channels):
            x = elu(Convolution(channels, name=f"convolution_{layer}")(x))
        return x.reshape(*view.shape[:2], -1)


def draw(module: nn.Module, key: PRNGKeyArray, *inputs: Array) -> Any:
    """Returns the parameters of a module before it has learnt, for inputs of such shapes."""
    return module.init(key, *inputs)["params"]


def apply(module: nn.Module, params: Any, *inputs: Array) -> Array:
    """Returns what a module makes of its inputs."""
    return cast(Array, module.apply({"params": params}, *inputs))


def distance(
    one: Float[Array, "T N numbers"], other: Float[Array, "T N numbers"], *, squared: bool
) -> Float[Array, "T N"]:
    """Returns the Euclidean norm of the difference (its gradient is 0 at 0), or its square."""
    difference = one - other
    return (difference**2).sum(-1) if squared else optax.safe_norm(difference, 0.0, axis=-1)


def sequence_loss(errors: Float[Array, "T N"]) -> Float[Array, ""]:
    """Returns the errors summed over the steps and averaged over the batch."""
    return errors.sum(0).mean()
