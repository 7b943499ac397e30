"""The policy's network: convolutions, dense layers, an LSTM, a policy and a value head.

Sizes are those of the paper (appendix "Hyperparameter Details"); the published code has two LSTM
layers and one linear layer for each head. Views are [T, N, height, width, channels].
"""

from functools import partial
from typing import Any, cast

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree, UInt8

from cbet_jax.config import Factors, NetworkSettings
from cbet_jax.networks import initializers
from cbet_jax.networks.convolution import MATRICES, Convolution
from cbet_jax.networks.lstm import Carry, unroll
from cbet_jax.networks.matmul import matmul, round_factor
from cbet_jax.types import LSTMState

FACTORS = ("kernel", "matrix", "input_weights", "hidden_weights")  # factors of products
HEADS = ("policy", "value")  # their products are float32

Outputs = tuple[Float[Array, "T N actions"], Float[Array, "T N *heads"], LSTMState]


class LSTMLayer(nn.Module):
    """One LSTM layer with PyTorch's initialisation and its two bias vectors."""

    units: int
    factors: Factors = "float32"

    @nn.compact
    def __call__(
        self, inputs: Float[Array, "T N features"], first: Bool[Array, "T N"], carry: Carry
    ) -> tuple[Float[Array, "T N units"], Carry]:
        uniform, gates = initializers.lstm(self.units), 4 * self.units
        input_weights = self.param("input_weights", uniform, (inputs.shape[-1], gates))
        hidden_weights = self.param("hidden_weights", uniform, (self.units, gates))
        input_bias = self.param("input_bias", uniform, (gates,))
        hidden_bias = self.param("hidden_bias", uniform, (gates,))
        projected = matmul(inputs, input_weights, self.factors)
        projected = projected + (input_bias + hidden_bias)
        return unroll(projected, first, hidden_weights, carry, self.factors)


class PolicyNetwork(nn.Module):
    """The policy and its value, for `T` steps of `N` agents."""

    settings: NetworkSettings
    num_actions: int

    @nn.compact
    def __call__(
        self, view: UInt8[Array, "T N height width 3"], first: Bool[Array, "T N"], state: LSTMState
    ) -> Outputs:
        """Return the logits, the values and the recurrent state after the last step.

        With several value heads, values have a last axis of heads.

        Args:
            view: what each agent sees.
            first: where true, the agent's recurrent state is zeroed before the step.
            state: the recurrent state before the first step.
        """
        features, hidden, cell = self._features(view), [], []
        for layer in range(self.settings.lstm_layers):
            carry = Carry(state.hidden[layer], state.cell[layer])
            units, factors = self.settings.lstm_units, self.settings.factors
            lstm = LSTMLayer(units, factors, name=f"lstm_{layer}")
            features, carry = lstm(features, first, carry)
            hidden.append(carry.hidden)
            cell.append(carry.cell)
        heads = self.settings.value_heads
        policy_head = nn.Dense(self.num_actions, kernel_init=initializers.OUTPUT, name="policy")
        value_head = nn.Dense(heads, kernel_init=initializers.OUTPUT, name="value")
        recurrent = LSTMState(jnp.stack(hidden), jnp.stack(cell))
        logits, value = policy_head(features), value_head(features)
        return logits, value[..., 0] if heads == 1 else value, recurrent

    def _features(self, view: UInt8[Array, "T N height width 3"]) -> Float[Array, "T N units"]:
        """Return the output of the convolutions and dense layers for each view."""
        settings = self.settings
        x = view.reshape(-1, *view.shape[2:]).astype(jnp.float32)
        if settings.brightest is not None:
            x = x / settings.brightest
        for layer in range(settings.conv_layers):
            convolution = Convolution(
                settings.channels, settings.factors, name=f"convolution_{layer}"
            )
            x = convolution(x)
        x = x.reshape(len(x), -1)
        for layer in range(settings.dense_layers):
            dense = nn.Dense(
                settings.dense_units,
                kernel_init=initializers.HIDDEN,
                dot_general=partial(_dense_matmul, settings.factors),
                name=f"dense_{layer}",
            )
            x = nn.relu(dense(x))
        return x.reshape(*view.shape[:2], -1)


def _dense_matmul(factors: Factors, x: Array, kernel: Array, *_: Any, **__: Any) -> Array:
    """Call `matmul` as `nn.Dense` calls its product, whose other arguments are defaults."""
    return matmul(x, kernel, factors)


def initial_state(settings: NetworkSettings, agents: int) -> LSTMState:
    """Return the recurrent state before a first view: zeros."""
    shape = (settings.lstm_layers, agents, settings.lstm_units)
    return LSTMState(jnp.zeros(shape), jnp.zeros(shape))


def init_params(
    network: PolicyNetwork, key: Array, view_shape: tuple[int, int, int]
) -> dict[str, PyTree]:
    """Return the network's initial parameters, for views of shape (height, width, channels)."""
    view = jnp.zeros((1, 1, *view_shape), jnp.uint8)
    first, state = jnp.zeros((1, 1), bool), initial_state(network.settings, 1)
    return {"params": cast(Any, network.init(key, view, first, state))["params"]}


def precompute(
    network: PolicyNetwork, params: PyTree, view: UInt8[Array, "N height width 3"]
) -> PyTree:
    """Return parameters with which `apply` is faster, for acting only.

    They have the convolutions' matrices and rounded factors, made once for all steps. Only the
    shape of `view` matters; `apply` must be given views of this shape.
    """
    agents = len(view)
    first, state = jnp.zeros((1, agents), bool), initial_state(network.settings, agents)
    _, matrices = network.apply(params, view[None], first, state, mutable=[MATRICES])
    return jax.tree.map_with_path(partial(_rounded, network.settings), {**params, **matrices})


def _rounded(settings: NetworkSettings, path: Any, leaf: Array) -> Array:
    """Round a parameter that is a factor of `matmul` or `unroll`, as they would."""
    *_, module, name = (part.key for part in path)
    is_factor = name in FACTORS and not module.startswith(HEADS)
    return round_factor(leaf, settings.factors) if is_factor else leaf


def apply(
    network: PolicyNetwork,
    params: PyTree,
    view: UInt8[Array, "T N height width 3"],
    first: Bool[Array, "T N"],
    state: LSTMState,
) -> Outputs:
    """Return what `PolicyNetwork` does with these parameters, which may be precomputed."""
    return cast(Any, network.apply(params, view, first, state))


def sample_actions(key: Array, logits: Float[Array, "*N actions"]) -> Int[Array, "*N"]:
    """Return an action drawn from each agent's policy."""
    return jax.random.categorical(key, logits).astype(jnp.int32)
