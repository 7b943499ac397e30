"""Checkpoints: what comes back is what was saved, or it is refused."""

import errno
import os
import random
from functools import partial
from typing import NamedTuple
from unittest.mock import Mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from cbet_jax.runs import checkpoint
from cbet_jax.runs.checkpoint import DamagedCheckpointError, OtherProgramError, Position
from cbet_jax.runs.directory import RunDirectoryError, checkpoints, frames_of, path_at
from cbet_jax.runs.reading import UnreadableError
from tests.support.damage import cut
from tests.support.tiny import numbers


class State(NamedTuple):
    params: dict[str, Array]  # [seeds, ...]
    key: Array  # [seeds]
    iteration: Array  # [seeds]
    nothing: Array  # [seeds, 0]


def make_state(seed: int = 0, **params: Array) -> State:
    keys = jax.random.split(jax.random.key(seed), 2)
    kernel = jax.random.normal(jax.random.key(seed + 1), (2, 3))
    params = {"kernel": kernel, "half": kernel.astype(jnp.bfloat16), **params}
    return State(params, keys, jnp.arange(2), jnp.zeros((2, 0)))


def save(folder, frames: int, seed: int = 0):
    return checkpoint.save(folder, make_state(seed), Position(frames, frames, 7, "digest"))


def same(one, other) -> bool:
    one, other = numbers(one), numbers(other)
    return one.keys() == other.keys() and all(
        a.dtype == b.dtype and a.tobytes() == b.tobytes()
        for a, b in zip(one.values(), other.values(), strict=True)
    )


def test_what_comes_back_is_what_was_saved(tmp_path):
    path = save(tmp_path, 40)
    template = jax.eval_shape(lambda: make_state(3))
    state, position = checkpoint.load(path, template)
    assert same(state, make_state())
    assert isinstance(state, State)
    assert jax.random.key_impl(state.key) == jax.random.key_impl(make_state().key)
    assert position == checkpoint.read_arrays(path, ())[1] == Position(40, 40, 7, "digest")
    arrays, _ = checkpoint.read_arrays(path, ("params.half", "it"))
    assert {name: array.dtype.name for name, array in arrays.items()} == {
        "iteration": "int32",
        "params.half": "bfloat16",
    }


def test_only_the_newest_are_kept_in_the_order_of_their_frames(tmp_path):
    for frames in (10, 200, 30_000, 10**12):
        save(tmp_path, frames)
    assert list(map(frames_of, checkpoints(tmp_path))) == [200, 30_000, 10**12]
    assert not list(tmp_path.glob(".*"))


def test_damage_is_noticed(tmp_path):
    """Only bits that mean nothing, such as a date's, may change."""
    path, draw, damaged = save(tmp_path, 40), random.Random(0), 0
    file = path / checkpoint.FILE
    whole = file.read_bytes()
    changed = [whole[:-2], whole[: len(whole) // 2], b"", bytes(len(whole))]
    for _ in range(400):
        content = bytearray(whole)
        content[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
        changed.append(bytes(content))
    for content in changed:
        file.write_bytes(content)
        try:
            state, position = checkpoint.load(path, make_state())
        except DamagedCheckpointError:
            damaged += 1
        else:
            assert same(state, make_state())
            assert position == Position(40, 40, 7, "digest")
    assert damaged > len(changed) / 2


def test_links_and_pipes_are_damage(tmp_path):
    path = save(tmp_path, 40)
    file = path / checkpoint.FILE
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DamagedCheckpointError):
        checkpoint.load(path, make_state())
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(DamagedCheckpointError):
        checkpoint.load(path, make_state())


def test_what_would_unpack_to_more_than_a_packed_policy_is_damage(tmp_path, monkeypatch):
    """A small file of a stranger's must not fill the memory."""
    path = save(tmp_path, 40)
    with np.load(path / checkpoint.FILE) as arrays:
        np.savez_compressed(path / checkpoint.FILE, **arrays)
    assert same(checkpoint.load(path, make_state())[0], make_state())
    monkeypatch.setattr(checkpoint, "LARGEST_PACKED", 100)
    with pytest.raises(DamagedCheckpointError):
        checkpoint.load(path, make_state())


def newest(folder):
    return checkpoint.newest_good(folder, partial(checkpoint.load, template=make_state()))


def test_what_a_run_has_deleted_meanwhile_is_not_damaged(tmp_path):
    """It keeps its newest three, one of which is found."""
    for frames in (10, 20, 30):
        save(tmp_path, frames)

    def read(path):
        if frames_of(path) == 30:
            for frames in (40, 50, 60):
                save(tmp_path, frames, seed=frames)
            cut(path_at(tmp_path, 60))
        return checkpoint.load(path, make_state())

    loaded = checkpoint.newest_good(tmp_path, read)
    assert list(map(frames_of, checkpoints(tmp_path))) == [40, 50, 60]
    assert same(loaded.state, make_state(50))
    assert list(map(frames_of, loaded.damaged)) == [60]


@pytest.mark.parametrize("number", [errno.EACCES, errno.EMFILE, errno.EIO, errno.ESTALE])
def test_what_cannot_be_read_now_is_not_damaged(number, tmp_path, monkeypatch):
    """Nor is an older one used, nor what cannot be listed taken for nothing."""
    for frames in (10, 20):
        save(tmp_path, frames)
    error = OSError(number, os.strerror(number))
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "open_to_read", Mock(side_effect=error))
        with pytest.raises(UnreadableError, match=f"read: {error.strerror}") as said:
            newest(tmp_path)
    assert type(said.value) is UnreadableError
    monkeypatch.setattr(type(tmp_path), "iterdir", Mock(side_effect=error))
    with pytest.raises(UnreadableError, match=error.strerror):
        checkpoints(tmp_path)


def test_what_a_killed_process_was_writing_is_deleted(tmp_path):
    left_over = tmp_path / f"{save(tmp_path, 40).name}{checkpoint.UNFINISHED}-1"
    left_over.mkdir()
    (tmp_path / "7").mkdir()  # somebody's own
    save(tmp_path, 50)
    assert not left_over.exists()
    assert (tmp_path / "7").exists()
    assert list(map(frames_of, checkpoints(tmp_path))) == [40, 50]


def test_the_newest_good_one_is_found(tmp_path):
    for frames in (10, 20, 30):
        path = save(tmp_path, frames, seed=frames)
        if frames > 10:
            cut(path)
    loaded = newest(tmp_path)
    assert same(loaded.state, make_state(10))
    assert list(map(frames_of, loaded.damaged)) == [30, 20]
    cut(checkpoints(tmp_path)[0])
    with pytest.raises(RunDirectoryError, match=r"every checkpoint .* is damaged \(3 of them\)"):
        newest(tmp_path)
    assert newest(tmp_path / "none") is None


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"kernel": jnp.zeros((2, 4))}, r"params\.kernel is float32\[2, 3\], not float32\[2, 4\]"),
        ({"half": jnp.zeros((2, 3))}, r"params\.half is bfloat16\[2, 3\], not float32\[2, 3\]"),
        ({"bias": jnp.zeros(2)}, r"params\.bias is missing, not float32\[2\]"),
    ],
)
def test_another_program_is_refused_by_name(change, why, tmp_path):
    path = save(tmp_path, 40)
    with pytest.raises(OtherProgramError, match=why):
        checkpoint.load(path, make_state(**change))
