"""Convert the tensors of a policy of the published PyTorch code into our parameters.

Both networks have three convolutions for gridworlds or five for images, two dense layers, a
two-layer LSTM and two heads. The published convolutions see the image transposed, `(B, H, W, C) ->
(B, C, W, H)`, so their kernels and responses are in the order channel, width, height. Ours are in
the order height, width, channel. The LSTM's gates have the same order (input, forget, cell,
output).
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32

from cbet_jax.config import BRIGHTEST_PIXEL, NetworkSettings
from cbet_jax.networks.convolution import KERNEL, output_size

Tensors = Mapping[str, np.ndarray]
Params = dict[str, dict[str, Float32[np.ndarray, "..."]]]

CONVOLUTIONS, IMAGE_CONVOLUTIONS = 3, 5
DENSE_LAYERS = LSTM_LAYERS = 2
LSTM_PARTS = {
    "weight_ih": "input_weights",
    "weight_hh": "hidden_weights",
    "bias_ih": "input_bias",
    "bias_hh": "hidden_bias",
}


class WeightsError(ValueError):
    """The tensors are not a policy's. The message says why, in one line."""


class Policy(NamedTuple):
    """A converted policy."""

    network: NetworkSettings
    params: dict[str, Params]  # as `policy_network.init_params` returns them


def convert(
    tensors: Tensors, num_actions: int, view_shape: tuple[int, int, int], *, images: bool = False
) -> Policy:
    """Return the converted policy.

    Args:
        tensors: name -> numbers, as in the `state_dict` of the published code's policy.
        num_actions: number of actions of the policy.
        view_shape: height, width and channels of its views.
        images: whether the views are images (0 to 255) or a gridworld's (MiniGrid's numbers).

    Raises:
        WeightsError: the tensors belong to another network.
    """
    network = _network(tensors, images=images)
    wanted = shapes(network, num_actions, view_shape)
    for name, shape in wanted.items():
        if name not in tensors:
            raise WeightsError(f"tensor {name} is missing")
        if tensors[name].shape != shape:
            found = _shape_text(tensors[name].shape)
            raise WeightsError(f"tensor {name} is {found}, not {_shape_text(shape)}")
        if not np.isfinite(tensors[name]).all():
            raise WeightsError(f"tensor {name} holds numbers that are not finite")
    unknown = sorted(set(tensors) - set(wanted))
    if unknown:
        raise WeightsError(f"tensor {unknown[0]} belongs to another network")
    return Policy(network, {"params": _params(tensors, network, view_shape)})


def shapes(
    network: NetworkSettings, num_actions: int, view_shape: tuple[int, int, int]
) -> dict[str, tuple[int, ...]]:
    """Return the shape of each tensor of a policy in the published code, by name."""
    height, width, channels = view_shape
    found: dict[str, tuple[int, ...]] = {}
    for layer in range(network.conv_layers):
        found |= _layer(f"feat_extract.{2 * layer}", network.channels, channels, KERNEL, KERNEL)
        channels = network.channels
    inputs = channels * _response_size(height, network) * _response_size(width, network)
    for layer in range(network.dense_layers):
        found |= _layer(f"fc.{2 * layer}", network.dense_units, inputs)
        inputs = network.dense_units
    gates = 4 * network.lstm_units
    for layer in range(network.lstm_layers):
        found[f"core.weight_ih_l{layer}"] = (gates, inputs)
        found[f"core.weight_hh_l{layer}"] = (gates, network.lstm_units)
        found[f"core.bias_ih_l{layer}"] = found[f"core.bias_hh_l{layer}"] = (gates,)
        inputs = network.lstm_units
    return found | _layer("policy", num_actions, inputs) | _layer("baseline", 1, inputs)


def _layer(name: str, outputs: int, *inputs: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (outputs, *inputs), f"{name}.bias": (outputs,)}


def _response_size(size: int, network: NetworkSettings) -> int:
    """Return the height or width of the last convolution's response."""
    for _ in range(network.conv_layers):
        size = output_size(size)
    return size


def _network(tensors: Tensors, *, images: bool) -> NetworkSettings:
    """Return the network's sizes. The numbers of layers are those of the published code.

    Raises:
        WeightsError: the tensors belong to another network.
    """
    found = sum(f"feat_extract.{2 * layer}.weight" in tensors for layer in range(9))
    wanted, other = CONVOLUTIONS, IMAGE_CONVOLUTIONS
    what, others = "gridworlds", "Habitat's images"
    if images:
        wanted, other, what, others = other, wanted, others, what
    if found == other:
        raise WeightsError(
            f"it is a policy for {others} ({found} convolutions): {what} are seen by policies "
            f"with {wanted}"
        )
    return NetworkSettings(
        conv_layers=wanted,
        channels=_outputs(tensors, "feat_extract.0.weight"),
        dense_layers=DENSE_LAYERS,
        dense_units=_outputs(tensors, "fc.0.weight"),
        lstm_layers=LSTM_LAYERS,
        lstm_units=max(_outputs(tensors, "core.weight_hh_l0") // 4, 1),
        brightest=BRIGHTEST_PIXEL if images else None,
    )


def _outputs(tensors: Tensors, name: str) -> int:
    if name not in tensors:
        raise WeightsError(f"tensor {name} is missing")
    if tensors[name].size == 0 or tensors[name].ndim == 0:
        raise WeightsError(f"tensor {name} is empty")
    return tensors[name].shape[0]


def _params(tensors: Tensors, network: NetworkSettings, view_shape: tuple[int, int, int]) -> Params:
    """Return the parameters of tensors whose names and shapes are right."""
    params: Params = {}
    for layer in range(network.conv_layers):
        name = f"feat_extract.{2 * layer}"
        params[f"convolution_{layer}"] = {
            "kernel": _height_width_channels(tensors[f"{name}.weight"]),
            "bias": _float32(tensors[f"{name}.bias"]),
        }
    for layer in range(network.dense_layers):
        params[f"dense_{layer}"] = _dense(tensors, f"fc.{2 * layer}")
    height, width = (_response_size(size, network) for size in view_shape[:2])
    first = tensors["fc.0.weight"].reshape(-1, network.channels, width, height)
    params["dense_0"]["kernel"] = _height_width_channels(first)
    for layer in range(network.lstm_layers):
        params[f"lstm_{layer}"] = {
            ours: _float32(tensors[f"core.{theirs}_l{layer}"].T)
            for theirs, ours in LSTM_PARTS.items()
        }
    return params | {"policy": _dense(tensors, "policy"), "value": _dense(tensors, "baseline")}


def _height_width_channels(weight: np.ndarray) -> Float32[np.ndarray, "numbers outputs"]:
    """Return `[outputs, channels, width, height]` as `[height * width * channels, outputs]`."""
    return _float32(weight.transpose(3, 2, 1, 0).reshape(-1, weight.shape[0]))


def _dense(tensors: Tensors, name: str) -> dict[str, Float32[np.ndarray, "..."]]:
    return {
        "kernel": _float32(tensors[f"{name}.weight"].T),
        "bias": _float32(tensors[f"{name}.bias"]),
    }


def _float32(tensor: np.ndarray) -> Float32[np.ndarray, "..."]:
    return np.ascontiguousarray(tensor, np.float32)


def _shape_text(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "a single number"
