"""The presets, and what the command line makes of settings."""

import re
from pathlib import Path

import pytest

from cbet_jax.config import RunSettings
from cbet_jax.intrinsic import make_intrinsic
from experiments import minigrid_pretrain
from experiments.common import opening
from experiments.common.presets import PRESETS


def test_paper_has_the_published_settings():
    run = PRESETS["paper"]
    train = run.train
    assert run.environments == ("MultiRoom-N4-S5", "KeyCorridorS3R3", "BlockedUnlockPickup")
    assert make_intrinsic(train, num_actions=7).coefficient == 0.005
    assert (train.method, train.extrinsic_weight) == ("cbet", 0)
    assert (train.frames, train.worlds, train.batch, train.unroll) == (50_000_000, 40, 32, 100)
    network = train.network
    assert (network.conv_layers, network.channels) == (3, 32)
    assert (network.dense_layers, network.dense_units) == (2, 1024)
    assert (network.lstm_layers, network.lstm_units) == (2, 1024)
    optimizer = train.optimizer
    assert (optimizer.learning_rate, optimizer.decay_frames) == (1e-4, 100_000_000)
    assert (optimizer.rms_decay, optimizer.rms_epsilon) == (0.99, 1e-5)
    assert optimizer.max_gradient_norm == 40
    loss = train.loss
    assert (loss.discount, loss.value_weight, loss.entropy_weight) == (0.99, 0.5, 0.0005)
    auxiliary = train.auxiliary
    assert (auxiliary.channels, auxiliary.hidden_units) == ((32, 32, 128), 256)
    assert (auxiliary.forward_weight, auxiliary.inverse_weight) == (10, 0.1)
    assert auxiliary.prediction_weight == 0.1
    choices = auxiliary.squared_norms, auxiliary.decay_rate, auxiliary.final_views
    assert choices == (False, False, False)


def settings_of(arguments: list[str]) -> RunSettings:
    return opening.read(minigrid_pretrain.EXPERIMENT, arguments)[0].settings


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_what_the_command_line_gives(name):
    assert settings_of(["--preset", name]) == PRESETS[name]


def test_help_is_whole():
    """Of a comment that begins beside a field and goes on below it, tyro shows the first line."""
    root = Path(minigrid_pretrain.__file__).parents[1]
    split = re.compile(r"^    \w+: .*  # .*\n    # .*", re.MULTILINE)
    for path in [root / "cbet_jax/config.py", *root.glob("experiments/**/*.py")]:
        assert not split.findall(path.read_text()), path
