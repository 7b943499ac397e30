"""Settings to JSON and back."""

import json

import pytest

from cbet_jax.config import LossSettings, RunSettings, SettingsError
from cbet_jax.settings.as_json import first_difference, from_json, to_json
from experiments.common.presets import HABITAT_PRESETS, PRESETS

RUNS = {**PRESETS, **{f"habitat {name}": run for name, run in HABITAT_PRESETS.items()}}


@pytest.mark.parametrize("name", RUNS)
def test_settings_come_back_from_json(name):
    settings = RUNS[name]
    assert from_json(RunSettings, json.loads(json.dumps(to_json(settings)))) == settings


@pytest.mark.parametrize(
    ("change", "problem"),
    [({"habitat": {"heigth": 1}}, "unknown field heigth"), ({"chunks": 1}, "unknown field chunks")],
)
def test_fields_that_there_are_not_are_refused(change, problem):
    with pytest.raises(TypeError, match=problem):
        from_json(RunSettings, to_json(RunSettings()) | change)


@pytest.mark.parametrize(
    "change",
    [
        {"seeds": 1.5},
        {"seeds": True},
        {"seeds": "1"},
        {"seeds": None},
        {"environments": "Unlock"},
        {"environments": [1]},
        {"explore": 1},
        {"train": 3},
        {"train": None},
        {"habitat": {"simulator": 7}},
        {"chunk": [1]},
    ],
)
def test_values_of_other_types_are_refused(change):
    nested = to_json(RunSettings()) | change
    with pytest.raises((SettingsError, TypeError, AttributeError, KeyError)):
        from_json(RunSettings, nested)


def test_a_setting_added_since_has_its_default():
    nested = to_json(RunSettings())
    del nested["train"]["loss"]["relative_entropy"]
    assert from_json(RunSettings, nested) == RunSettings()
    nested["train"]["loss"]["bootstrap"] = "final"  # a field after it keeps its value
    assert from_json(RunSettings, nested).train.loss == LossSettings(bootstrap="final")


def test_the_first_difference_is_named():
    one = {"a": 1, "b": {"c": [1, 2], "d": 4}}
    assert first_difference(one, one) is None
    assert first_difference(one, {"a": 1, "b": {"c": [1, 3], "d": 5}}) == "b.c is 1 2, not 1 3"
    assert first_difference({"a": 1}, {"a": 1, "z": 2}) == "z is None, not 2"
