"""The policy of the published PyTorch code as a policy of ours: tensors in, parameters out.

It has three convolutions for gridworlds or five for images, two dense layers, a two-layer LSTM
and two heads, as ours. Its convolutions see the image transposed, `(B, H, W, C) -> (B, C, W,
H)`, so that their kernels and the numbers that they leave are in the order channel, width,
height; ours are in the order height, width, channel. The LSTM's gates stand in the same order
in both (input, forget, cell, output).
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32

from cbet_jax.config import NetworkSettings
from cbet_jax.networks.policy_network import KERNEL, STRIDE

Tensors = Mapping[str, np.ndarray]
Params = dict[str, dict[str, Float32[np.ndarray, "..."]]]

CONVOLUTIONS, IMAGE_CONVOLUTIONS = 3, 5
BRIGHTEST = 255  # what it divides images by; gridworlds' views it takes as they are
DENSE_LAYERS = LSTM_LAYERS = 2
LSTM_PARTS = {
    "weight_ih": "input_weights",
    "weight_hh": "hidden_weights",
    "bias_ih": "input_bias",
    "bias_hh": "hidden_bias",
}


class WeightsError(ValueError):
    """Tensors that are not those of such a policy, with one line that says why."""


class Policy(NamedTuple):
    """A policy of ours."""

    network: NetworkSettings
    params: dict[str, Params]  # as `networks.init_params` draws them


def convert(
    tensors: Tensors, num_actions: int, view_shape: tuple[int, int, int], *, images: bool = False
) -> Policy:
    """Returns the policy that the tensors are.

    Args:
        tensors: name -> numbers, as in the `state_dict` of the published code's policy.
        num_actions: that it must choose among.
        view_shape: of what it must see: height, width, channels.
        images: whether these are images, 0..255, and not a gridworld's views.

    Raises:
        WeightsError: the tensors are not those of a policy that can do this.
    """
    network = _network(tensors, images=images)
    wanted = shapes(network, num_actions, view_shape)
    for name, shape in wanted.items():
        if name not in tensors:
            raise WeightsError(f"tensor {name} is missing")
        if tensors[name].shape != shape:
            found = _written(tensors[name].shape)
            raise WeightsError(f"tensor {name} is {found}, not {_written(shape)}")
        if not np.isfinite(tensors[name]).all():
            raise WeightsError(f"tensor {name} holds what is not a finite number")
    unknown = sorted(set(tensors) - set(wanted))
    if unknown:
        raise WeightsError(f"tensor {unknown[0]} belongs to another network")
    return Policy(network, {"params": _params(tensors, network, view_shape)})


def shapes(
    network: NetworkSettings, num_actions: int, view_shape: tuple[int, int, int]
) -> dict[str, tuple[int, ...]]:
    """Returns the names and the shapes of the tensors of such a policy."""
    height, width, channels = view_shape
    found: dict[str, tuple[int, ...]] = {}
    for layer in range(network.conv_layers):
        found |= _layer(f"feat_extract.{2 * layer}", network.channels, channels, KERNEL, KERNEL)
        channels = network.channels
    inputs = channels * _convolved(height, network) * _convolved(width, network)
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


def _convolved(size: int, network: NetworkSettings) -> int:
    """Returns the height or the width that the convolutions leave of `size`."""
    for _ in range(network.conv_layers):
        size = (size - 1) // STRIDE + 1
    return size


def _network(tensors: Tensors, *, images: bool) -> NetworkSettings:
    """Returns the network's sizes; how many layers it has is the published code's.

    Raises:
        WeightsError: it is no such network.
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
        brightest=BRIGHTEST if images else None,
    )


def _outputs(tensors: Tensors, name: str) -> int:
    if name not in tensors:
        raise WeightsError(f"tensor {name} is missing")
    if tensors[name].size == 0 or tensors[name].ndim == 0:
        raise WeightsError(f"tensor {name} is empty")
    return tensors[name].shape[0]


def _params(tensors: Tensors, network: NetworkSettings, view_shape: tuple[int, int, int]) -> Params:
    """Returns the parameters; all tensors are there and have their shapes."""
    params: Params = {}
    for layer in range(network.conv_layers):
        name = f"feat_extract.{2 * layer}"
        params[f"convolution_{layer}"] = {
            "kernel": _images_last(tensors[f"{name}.weight"]),
            "bias": _numbers(tensors[f"{name}.bias"]),
        }
    for layer in range(network.dense_layers):
        params[f"dense_{layer}"] = _dense(tensors, f"fc.{2 * layer}")
    height, width = (_convolved(size, network) for size in view_shape[:2])
    first = tensors["fc.0.weight"].reshape(-1, network.channels, width, height)
    params["dense_0"]["kernel"] = _images_last(first)
    for layer in range(network.lstm_layers):
        params[f"lstm_{layer}"] = {
            ours: _numbers(tensors[f"core.{theirs}_l{layer}"].T)
            for theirs, ours in LSTM_PARTS.items()
        }
    return params | {"policy": _dense(tensors, "policy"), "value": _dense(tensors, "baseline")}


def _images_last(weight: np.ndarray) -> Float32[np.ndarray, "numbers outputs"]:
    """Returns `[outputs, channels, width, height]` as `[height * width * channels, outputs]`."""
    return _numbers(weight.transpose(3, 2, 1, 0).reshape(-1, weight.shape[0]))


def _dense(tensors: Tensors, name: str) -> dict[str, Float32[np.ndarray, "..."]]:
    return {
        "kernel": _numbers(tensors[f"{name}.weight"].T),
        "bias": _numbers(tensors[f"{name}.bias"]),
    }


def _numbers(tensor: np.ndarray) -> Float32[np.ndarray, "..."]:
    return np.ascontiguousarray(tensor, np.float32)


def _written(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "a single number"
