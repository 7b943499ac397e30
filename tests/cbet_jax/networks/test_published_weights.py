"""Tensors of the published code as parameters of ours, against its network written in numpy."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.config import NetworkSettings
from cbet_jax.networks import policy_network
from cbet_jax.networks.published_weights import WeightsError, convert, shapes
from cbet_jax.types import LSTMState
from tests.support.published import ACTIONS, GRIDWORLD, HABITAT, NETWORK, drawn

VIEW = (20, 12, 3)  # the convolutions leave 3 x 2 of it: every axis has its own length
IMAGE = (72, 40, 3)  # five convolutions, too
STEPS, AGENTS = 100, 2


def elu(x):
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def convolved(x, weight, bias):
    """A 3x3 convolution of stride 2 and padding 1 on `[N, C, W, H]`."""
    x = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    patches = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))[:, :, ::2, ::2]
    return np.einsum("ncwhij,ocij->nowh", patches, weight) + bias[:, None, None]


def played(tensors, views, first, network):
    """Return logits, values and the LSTM's state, computed as the published network does."""
    hidden, cell = np.zeros((2, 2, AGENTS, NETWORK.lstm_units))
    logits, values = [], []
    layer = lambda x, name: x @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]  # noqa: E731
    for view, is_first in zip(views, first, strict=True):
        x = view.astype(float).transpose(0, 3, 2, 1)  # [N, H, W, C] -> [N, C, W, H]
        x = x / (network.brightest or 1)
        for i in range(network.conv_layers):
            name = f"feat_extract.{2 * i}"
            x = elu(convolved(x, tensors[f"{name}.weight"], tensors[f"{name}.bias"]))
        x = x.reshape(AGENTS, -1)
        for i in (0, 2):
            x = np.maximum(layer(x, f"fc.{i}"), 0)
        hidden, cell = (np.where(is_first[:, None], 0, state) for state in (hidden, cell))
        for i in range(2):
            from_input = x @ tensors[f"core.weight_ih_l{i}"].T + tensors[f"core.bias_ih_l{i}"]
            from_state = hidden[i] @ tensors[f"core.weight_hh_l{i}"].T
            gates = from_input + from_state + tensors[f"core.bias_hh_l{i}"]
            enter, forget, new, leave = np.split(gates, 4, axis=-1)
            cell[i] = sigmoid(forget) * cell[i] + sigmoid(enter) * np.tanh(new)
            hidden[i] = x = sigmoid(leave) * np.tanh(cell[i])
        logits.append(layer(x, "policy"))
        values.append(layer(x, "baseline")[:, 0])
    return np.array(logits), np.array(values), hidden, cell


@pytest.mark.parametrize(
    ("settings", "actions", "view"), [(NETWORK, ACTIONS, VIEW), (HABITAT, 3, IMAGE)]
)
def test_the_converted_policy_computes_what_the_published_network_does(settings, actions, view):
    """Over 100 steps of play with episode ends: logits, values, recurrent state."""
    tensors, images = drawn(settings, actions, view), settings == HABITAT
    policy = convert(tensors, actions, view, images=images)
    assert policy.network == settings
    random = np.random.default_rng(1)
    views = random.integers(0, 256 if images else 11, (STEPS, AGENTS, *view), np.uint8)
    first = random.random((STEPS, AGENTS)) < 0.05
    assert 3 < first.sum() < 30
    logits, values, hidden, cell = played(tensors, views, first, settings)
    network = policy_network.PolicyNetwork(settings, actions)
    state = policy_network.initial_state(settings, AGENTS)
    run = jax.jit(lambda *inputs: policy_network.apply(network, *inputs, state))
    found = run(policy.params, jnp.asarray(views), jnp.asarray(first))
    assert np.ptp(logits, axis=(0, 1)).min() > 0.1
    wanted = (logits, values, LSTMState(hidden, cell))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), found, wanted)


def test_the_parameters_are_those_that_our_network_draws():
    network = policy_network.PolicyNetwork(NETWORK, ACTIONS)
    draw = lambda key: policy_network.init_params(network, key, GRIDWORLD)  # noqa: E731
    described = lambda tree: jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype.name), tree)  # noqa: E731
    converted = convert(drawn(), ACTIONS, GRIDWORLD).params
    assert described(converted) == described(jax.eval_shape(draw, jax.random.key(0)))


def test_the_papers_network_has_its_published_shapes():
    wanted = shapes(NetworkSettings(), ACTIONS, GRIDWORLD)
    assert wanted["feat_extract.4.weight"] == (32, 32, 3, 3)
    assert wanted["fc.0.weight"] == (1024, 32)
    assert wanted["core.weight_ih_l1"] == (4096, 1024)
    assert wanted["core.bias_hh_l1"] == (4096,)
    assert wanted["policy.weight"] == (7, 1024)
    assert wanted["baseline.bias"] == (1,)
    assert shapes(replace(NetworkSettings(), conv_layers=5), 3, (64, 64, 3))["fc.0.weight"] == (
        1024,
        128,
    )
    assert sum(int(np.prod(shape)) for shape in wanted.values()) == 17_904_584


FAULTS = {
    "of Habitat": (lambda t: drawn(NetworkSettings(5, 4, 2, 8, 2, 6)), "a policy for Habitat's"),
    "missing": (lambda t: {k: t[k] for k in t if k != "core.bias_hh_l1"}, "core.bias_hh_l1"),
    "none at all": (lambda t: {}, "feat_extract.0.weight is missing"),
    "a number": (lambda t: t | {"fc.0.weight": np.zeros(())}, "fc.0.weight is empty"),
    "another shape": (lambda t: t | {"fc.2.bias": np.zeros(9)}, "fc.2.bias is 9, not 8"),
    "other actions": (lambda t: drawn(actions=3), "policy.weight is 3x6, not 7x6"),
    "two frames at once": (
        lambda t: drawn(view=(7, 7, 6)),
        "feat_extract.0.weight is 4x6x3x3, not 4x3x3x3",
    ),
    "not finite": (lambda t: t | {"policy.bias": np.full(7, np.nan)}, "policy.bias holds"),
    "more": (lambda t: t | {"fc.4.bias": np.zeros(8)}, "fc.4.bias belongs to another network"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_other_tensors_are_refused_in_one_line(name):
    change, expected = FAULTS[name]
    with pytest.raises(WeightsError, match=expected) as refusal:
        convert(change(drawn()), ACTIONS, GRIDWORLD)
    assert "\n" not in str(refusal.value)


def test_a_policy_for_gridworlds_does_not_see_images():
    with pytest.raises(WeightsError, match="a policy for gridworlds"):
        convert(drawn(), 3, (64, 64, 3), images=True)
