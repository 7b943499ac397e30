"""Checkpoints: what comes back is what was saved, or it is refused."""

import shutil
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from cbet_jax.runs import checkpoint
from cbet_jax.runs.checkpoint import DamagedCheckpointError, Position
from cbet_jax.runs.directory import RunDirectoryError
from tests.support.tiny import numbers

SETTINGS = {"train": {"frames": 100, "network": {"lstm_units": 16}}, "environments": ["A", "B"]}


class State(NamedTuple):
    params: Array  # [seeds, 2, 3]
    key: Array  # [seeds]
    iteration: Array  # [seeds]
    nothing: Array  # [seeds, 0]; orbax cannot store empty arrays


def make_state(seed: int = 0) -> State:
    keys = jax.random.split(jax.random.key(seed), 2)
    params = jax.random.normal(jax.random.key(seed + 1), (2, 3))
    return State(params, keys, jnp.arange(2), jnp.zeros((2, 0)))


def save(folder, frames: int, seed: int = 0):
    return checkpoint.save(folder, make_state(seed), Position(frames, frames, 7), SETTINGS)


def same(one, other) -> bool:
    one, other = numbers(one), numbers(other)
    return one.keys() == other.keys() and all(
        a.dtype == b.dtype and np.array_equal(a, b)
        for a, b in zip(one.values(), other.values(), strict=True)
    )


def test_what_comes_back_is_what_was_saved(tmp_path):
    path = save(tmp_path, 40)
    template = jax.eval_shape(lambda: make_state(3))
    state, position = checkpoint.load(path, template, SETTINGS)
    assert same(state, make_state())
    assert isinstance(state, State)
    assert jax.random.key_impl(state.key) == jax.random.key_impl(make_state().key)
    assert position == Position(40, 40, 7)


def test_only_the_newest_are_kept(tmp_path):
    for frames in (10, 200, 30_000, 4_000_000):
        save(tmp_path, frames)
    assert [int(p.name) for p in checkpoint.checkpoints(tmp_path)] == [200, 30_000, 4_000_000]
    assert not list(tmp_path.glob(".*"))


def cut(path):
    path.write_bytes(path.read_bytes()[:-2])


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def remove(path):
    path.unlink()


@pytest.mark.parametrize("damage", [cut, flip, remove])
def test_damage_to_any_file_is_noticed(damage, tmp_path):
    path = save(tmp_path, 40)
    files = sorted(p.relative_to(path) for p in path.rglob("*") if p.is_file())
    assert len(files) > 3
    for name in files:
        copy = shutil.copytree(path, tmp_path / "copies" / "000000000040")
        damage(copy / name)
        with pytest.raises(DamagedCheckpointError):
            checkpoint.load(copy, make_state(), SETTINGS)
        shutil.rmtree(copy)


def test_the_newest_good_one_is_found(tmp_path):
    for frames in (10, 20, 30):
        save(tmp_path, frames, seed=frames)
    for frames in (20, 30):
        cut(tmp_path / f"{frames:012d}" / "checkpoint.json")
    loaded = checkpoint.load_newest(tmp_path, make_state(), SETTINGS)
    assert same(loaded.state, make_state(10))
    assert [int(path.name) for path in loaded.damaged] == [30, 20]
    aside = [checkpoint.set_aside(path).name for path in loaded.damaged]
    assert aside == ["000000000030.damaged-1", "000000000020.damaged-1"]
    assert [int(p.name) for p in checkpoint.checkpoints(tmp_path)] == [10]


def test_nothing_is_found_where_nothing_is(tmp_path):
    assert checkpoint.load_newest(tmp_path / "none", make_state(), SETTINGS) is None


def test_other_settings_are_refused_by_name(tmp_path):
    path = save(tmp_path, 40)
    other = {**SETTINGS, "train": {"frames": 100, "network": {"lstm_units": 32}}}
    with pytest.raises(RunDirectoryError, match=r"train\.network\.lstm_units is 16, not 32"):
        checkpoint.load(path, make_state(), other)


def test_a_checkpoint_without_a_runs_settings_is_refused(tmp_path):
    path = checkpoint.save(tmp_path, make_state(), Position(), {})
    with pytest.raises(RunDirectoryError, match="of another run: there train is None"):
        checkpoint.load(path, make_state(), SETTINGS)


def test_checkpoints_are_in_the_order_of_their_frames(tmp_path):
    for frames in (10**12, 10**12 - 1):
        checkpoint.path_at(tmp_path, frames).mkdir()
    assert [int(p.name) for p in checkpoint.checkpoints(tmp_path)] == [10**12 - 1, 10**12]


def test_a_checkpoint_can_be_asked_for_by_its_frames(tmp_path):
    for frames in (10, 20):
        save(tmp_path, frames, seed=frames)
    loaded = checkpoint.load_at(tmp_path, 10, make_state(), SETTINGS)
    assert same(loaded.state, make_state(10))
    with pytest.raises(RunDirectoryError, match="there: 10, 20"):
        checkpoint.load_at(tmp_path, 15, make_state(), SETTINGS)
