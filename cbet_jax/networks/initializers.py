"""Initialisers of the published code (the paper names none): orthogonal, PyTorch's in an LSTM.

Biases are zeros, except an LSTM's.
"""

from collections.abc import Callable

import flax.linen as nn
import jax
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

HIDDEN = nn.initializers.orthogonal(np.sqrt(2))  # before a ReLU or an ELU
OUTPUT = nn.initializers.orthogonal(1.0)  # last layer, without a nonlinearity
ZEROS = nn.initializers.zeros_init()


def lstm(units: int) -> Callable[[PRNGKeyArray, tuple[int, ...]], Float[Array, "..."]]:
    """Return PyTorch's initialiser of an LSTM layer: uniform in +-1 / sqrt(units)."""
    bound = 1 / np.sqrt(units)

    def uniform(key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, "..."]:
        return jax.random.uniform(key, shape, minval=-bound, maxval=bound)

    return uniform
