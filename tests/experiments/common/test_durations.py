"""What is said of a run's length before it begins."""

from dataclasses import replace

import pytest

from experiments.common import durations
from experiments.common.presets import PRESETS
from tests.support.fake_program import fake_program


def said(settings):
    return durations.before(settings, fake_program(settings))


def test_a_day_of_training_is_told_of_with_a_shorter_way():
    (line,) = said(PRESETS["paper"])
    assert line.startswith("this takes about 12.7 hours on two CPU cores")
    assert "--preset laptop" in line
    assert "25.4 hours" in said(replace(PRESETS["paper"], seeds=2))[0]


def test_a_laptop_run_says_only_how_its_frames_are_rounded():
    laptop = PRESETS["laptop"]
    (line,) = said(replace(laptop, train=replace(laptop.train, frames=9_000_000)))
    assert line == "9,000,000 frames are rounded up to 9,024,000: whole chunks of 192,000"


@pytest.mark.parametrize("field", [{"lstm_units": 512}, {"factors": "bfloat16"}])
def test_only_measured_networks_are_estimated(field):
    paper = PRESETS["paper"]
    changed = replace(paper.train, network=replace(paper.train.network, **field))
    lines = said(replace(paper, train=changed))
    assert bool(lines) == ("factors" in field)


@pytest.mark.parametrize(("method", "told"), [("count", True), ("rnd", False), ("ride", False)])
def test_only_methods_that_count_are_estimated(method, told):
    """The others train networks of their own, too."""
    paper = PRESETS["paper"]
    assert bool(said(replace(paper, train=replace(paper.train, method=method)))) == told
