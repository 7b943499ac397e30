"""The presets, and settings on their way to disk and back."""

import json
import math
import re
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import pytest

from cbet_jax.config import RANGES, RunSettings, SettingsError, TrainSettings, TransferSettings
from cbet_jax.intrinsic import make_intrinsic
from cbet_jax.runs.json_files import first_difference, from_json, to_json
from experiments import minigrid_pretrain
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


@pytest.mark.parametrize("name", PRESETS)
def test_settings_come_back_from_json(name):
    settings = PRESETS[name]
    assert from_json(RunSettings, json.loads(json.dumps(to_json(settings)))) == settings


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_what_the_command_line_gives(name):
    assert minigrid_pretrain.read(["--preset", name]).settings == PRESETS[name]


def numbers_of(kind, prefix=""):
    """Returns the names of all settings that are, or may be, a number, and their kinds."""
    found = {}
    for item in fields(kind):
        if is_dataclass(item.type):
            found |= numbers_of(item.type, f"{prefix}{item.name}.")
        elif item.type in (int, float, int | None, float | None):
            found[prefix + item.name] = item.type
    return found


def with_number(settings, name, value):
    head, _, rest = name.partition(".")
    inner = with_number(getattr(settings, head), rest, value) if rest else value
    return replace(settings, **{head: inner})


OUT_OF_RANGE = [
    (name, value)
    for name, kind in numbers_of(TrainSettings).items()
    for value in ((-1,) if kind in (int, int | None) else (-1.0, math.nan, math.inf, -math.inf))
]


@pytest.mark.parametrize(("name", "value"), OUT_OF_RANGE)
def test_no_number_is_out_of_its_range(name, value):
    """A field that is added later needs a range, too."""
    with pytest.raises(SettingsError, match=name.rpartition(".")[2]):
        with_number(TrainSettings(), name, value)


def test_the_ranges_are_of_settings_that_there_are():
    names = [name for _, names in RANGES.values() for name in names]
    assert len(set(names)) == len(names)
    assert set(names) <= set(numbers_of(TrainSettings))


@pytest.mark.parametrize("alpha", [math.nan, math.inf, -1.0])
def test_a_bias_has_a_weight(alpha):
    with pytest.raises(SettingsError, match="alpha must be at least 0"):
        TransferSettings("run", 1, TrainSettings().network, alpha=alpha)


def test_every_field_can_be_overridden():
    arguments = ["--frames", "7", "--preset=smoke", "--counts.capacity", "64", "--envs", "X", "Y"]
    settings = minigrid_pretrain.read(arguments).settings
    assert settings.train.frames == 7
    assert settings.train.counts.capacity == 64
    assert settings.environments == ("X", "Y")
    assert settings.train.network == PRESETS["smoke"].train.network


def test_the_first_difference_is_named():
    one = {"a": 1, "b": {"c": [1, 2], "d": 4}}
    assert first_difference(one, one) is None
    assert first_difference(one, {"a": 1, "b": {"c": [1, 3], "d": 5}}) == "b.c is 1 2, not 1 3"
    assert first_difference({"a": 1}, {"a": 1, "z": 2}) == "z is None, not 2"


def test_help_goes_to_stdout(capsys):
    with pytest.raises(SystemExit) as stop:
        minigrid_pretrain.main(["--help"])
    assert stop.value.code == 0
    assert "--network.lstm-units" in capsys.readouterr().out


def test_help_is_whole():
    """Of a comment that begins beside a field and goes on below it, tyro shows the first line."""
    root = Path(minigrid_pretrain.__file__).parents[1]
    split = re.compile(r"^    \w+: .*  # .*\n    # .*", re.MULTILINE)
    for path in [root / "cbet_jax/config.py", *root.glob("experiments/**/*.py")]:
        assert not split.findall(path.read_text()), path
