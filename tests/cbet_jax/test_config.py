"""Settings: every number has a range, and what is static is known."""

import math
from dataclasses import dataclass, is_dataclass, replace
from typing import Literal, get_type_hints

import jax
import pytest

from cbet_jax.config import (
    AuxiliarySettings,
    CountSettings,
    LossSettings,
    NetworkSettings,
    RunSettings,
    SettingsError,
    TrainSettings,
    TransferSettings,
)
from cbet_jax.program import make_program, seed_keys
from cbet_jax.settings.ranges import Mark, check_between, check_fields, hints, parts_of
from tests.support import tiny
from tests.support.worlds import corridor


@dataclass(frozen=True)
class Walk:
    metres: float


@dataclass(frozen=True)
class Pet:
    kind: Literal["cat", "dog"] | None = None


def numbers_of(kind, prefix=""):
    """Return the names of all settings that are, or may be, a number, and their types."""
    found = {}
    for name, hint in get_type_hints(kind).items():
        if is_dataclass(hint):
            found |= numbers_of(hint, f"{prefix}{name}.")
        elif hint in (int, float, int | None, float | None):
            found[prefix + name] = hint
    return found


def changed(settings, name, value):
    head, _, rest = name.partition(".")
    inner = changed(getattr(settings, head), rest, value) if rest else value
    return replace(settings, **{head: inner})


NUMBERS = numbers_of(TrainSettings)


@pytest.mark.parametrize("name", NUMBERS)
def test_no_number_is_out_of_its_range(name):
    """A field that is added later needs a range, too.

    Larger ones would fill the memory, or count past what the program's integers hold.
    """
    whole = NUMBERS[name] in (int, int | None)
    for value in (-1, 10**31) if whole else (-1.0, 1e300, math.nan, math.inf, -math.inf):
        with pytest.raises(SettingsError, match=f"^{name} must be "):
            changed(TrainSettings(), name, value)


def test_no_two_seeds_are_the_same():
    """Numbers of 2^31 and more do not wrap."""
    last = jax.random.key_data(seed_keys(2, 2**32 - 2)).tolist()
    assert last == [[0, 2**32 - 2], [0, 2**32 - 1]]
    for seed in (0, 7, 2**31 - 1):
        expected = jax.random.key_data(jax.random.key(seed))
        assert (jax.random.key_data(seed_keys(1, seed))[0] == expected).all()


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: CountSettings(capacity=8), "capacity must be a power of two of 16 or more, not 8"),
        (lambda: CountSettings(capacity=48), "capacity must be a power of two"),
        (lambda: check_fields(Pet("cow")), "kind must be cat or dog, not 'cow'"),
        (lambda: check_fields(Walk(10**39)), "metres must be a finite number of at most 3.4e38"),
        (lambda: AuxiliarySettings(channels=()), "channels must be one or more numbers"),
        (lambda: RunSettings(environments=()), "at least one environment"),
        (lambda: RunSettings(environments=("A", "B", "A")), "environment 'A' is named twice"),
        (lambda: RunSettings(seeds=10**9), "seeds must be at most 65536"),
        (lambda: RunSettings(first_seed=2**32 - 1, seeds=2), "first_seed must be at most"),
        (lambda: TrainSettings(worlds=33, batch=32), "do not divide"),
        (
            lambda: TrainSettings(frames=2**31, worlds=1, batch=1, unroll=1),
            "frames must be at most 2147483647 here",
        ),
        (
            lambda: TransferSettings("run", 1, NetworkSettings(), alpha=-1.0),
            "alpha must be at least 0, not",
        ),
        (lambda: check_between("frames", 0, 1, 9), r"frames must be in 1\.\.9, not 0"),
    ],
)
def test_what_cannot_be_run_is_refused(make, problem):
    with pytest.raises(SettingsError, match=problem):
        make()


@pytest.mark.parametrize(
    ("kind", "change", "problem"),
    [
        (TrainSettings, {"frames": 1e6}, "frames must be a whole number, not 1000000.0"),
        (TrainSettings, {"network": None}, "network must be NetworkSettings, not None"),
        (
            TrainSettings,
            {"own": "b=1"},
            "own must be a tuple of which each part is text, not 'b=1'",
        ),
        (NetworkSettings, {"lstm_units": None}, "lstm_units must be a whole number, not None"),
        (NetworkSettings, {"factors": 16}, "factors must be float32 or bfloat16, not 16"),
        (CountSettings, {"shared": "no"}, "shared must be True or False, not 'no'"),
        (LossSettings, {"discount": "0.9"}, "discount must be a number, not '0.9'"),
        (RunSettings, {"environments": "A"}, "environments must be a tuple of which each"),
    ],
)
def test_values_of_another_type_are_refused_in_one_line(kind, change, problem):
    """The types of tests are checked before: the values come in behind that check."""
    with pytest.raises(SettingsError, match=problem):
        check_again(kind(), change)


def test_a_method_remembers_the_longest_episode_unless_told_otherwise():
    assert TrainSettings().for_episodes(500).auxiliary.episode_views == 500
    asked = TrainSettings(auxiliary=AuxiliarySettings(episode_views=20))
    assert asked.for_episodes(500) == asked


def test_a_real_number_may_be_whole():
    check_again(LossSettings(), {"entropy_weight": 1})


def check_again(settings, change):
    vars(settings).update(change)
    settings.__post_init__()


def static_settings(kind: type, prefix: str = "") -> tuple[str, ...]:
    """Return the names of a dataclass's static settings, such as `network.channels`.

    Args:
        kind: the dataclass; those inside it are searched, too.
        prefix: begins the names.
    """
    found: list[str] = []
    for name, hint in hints(kind).items():
        if Mark.STATIC in parts_of(hint):
            found.append(prefix + name)
        for inner in parts_of(hint):
            if isinstance(inner, type) and is_dataclass(inner) and inner is not kind:
                found += static_settings(inner, f"{prefix}{name}.")
    return tuple(found)


def test_static_settings_are_named():
    static = static_settings(RunSettings)
    assert {"seeds", "chunk", "train.worlds", "train.network.lstm_units"} <= set(static)
    assert "train.optimizer.learning_rate" not in static
    assert "train.frames" not in static


def test_numbers_that_are_not_static_leave_all_shapes_as_they_are():
    """So a sweep over them could share one program."""

    def shapes(settings):
        program = make_program(settings, corridor(settings.worlds), 1, iterations_per_chunk=1)
        state = jax.eval_shape(program.init, seed_keys(1))
        return jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), state)

    settings = tiny.SETTINGS
    for name in NUMBERS.keys() - set(static_settings(TrainSettings)):
        settings = changed(settings, name, 3 if NUMBERS[name] in (int, int | None) else 0.125)
    assert shapes(settings) == shapes(tiny.SETTINGS)
