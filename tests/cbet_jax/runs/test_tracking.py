"""Trackers, read back from what they wrote."""

import shutil
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from PIL import Image

from cbet_jax.analysis import figures
from cbet_jax.config import RunSettings
from cbet_jax.runs import checkpoint, metrics_table, tracking
from cbet_jax.runs.directory import RunDirectory, checkpoints
from experiments import minigrid_pretrain
from experiments.common import endings
from tests.support.fake_program import fake_program
from tests.support.interruptions import interrupt_after
from tests.support.refusal import refused
from tests.support.tiny import ARGUMENTS, CHUNK_FRAMES, FRAMES, SEEDS, SETTINGS

WANDB_HEADER, LOG_HEADER, LOG_BLOCK = 7, 7, 2**15  # bytes
LOG_ENDS = (1, 4)  # types of a record's last part: whole, last


@pytest.fixture(autouse=True)
def _stand_in(monkeypatch):
    def draw(table, folder, actors):
        folder.mkdir(exist_ok=True)
        Image.new("RGB", (8, 8)).save(folder / "film.gif")
        return [folder / "film.gif"]

    monkeypatch.setattr("experiments.common.gridworlds.build", fake_program)
    monkeypatch.setattr(endings, "draw_film", lambda *_: ([], 0))
    monkeypatch.setattr(figures, "draw_learning_curves", draw)


def pretrain(root, *arguments: str) -> RunDirectory:
    minigrid_pretrain.main([*ARGUMENTS, "--out", str(root), *arguments])
    return RunDirectory(root)


def written(directory: RunDirectory) -> dict[str, dict[int, list[tuple[int, float]]]]:
    """Return the table of metrics, without what is for the host only."""
    table = metrics_table.read(directory.metrics)
    table.pop("first_bad_update", None)
    return {
        name: {
            seed: list(zip(column.frames.tolist(), column.values.tolist(), strict=True))
            for seed, column in seeds.items()
        }
        for name, seeds in table.items()
    }


def test_tensorboard_holds_the_metrics_settings_and_pictures_of_a_resumed_run(
    tmp_path, monkeypatch
):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams import plugin_data_pb2

    with monkeypatch.context() as patch:
        interrupt_after(patch, 4)
        with pytest.raises(SystemExit):
            pretrain(tmp_path, "--track", "tensorboard")
    directory = RunDirectory(tmp_path)
    # As if it was killed before it saved the last: what it tracked since then is tracked again.
    shutil.rmtree(checkpoints(directory.checkpoints)[-1])
    minigrid_pretrain.main(["--out", str(tmp_path), "--resume", "--track", "tensorboard"])
    table = written(directory)
    for seed in range(SEEDS):
        events = EventAccumulator(str(tmp_path / "tensorboard" / f"seed-{seed}"))
        events.Reload()
        tags = events.Tags()
        assert set(tags["scalars"]) == set(table)
        for name, seeds in table.items():
            found = [(event.step, event.value) for event in events.Scalars(name)]
            assert found == [(frames, pytest.approx(value)) for frames, value in seeds[seed]]
        (image,) = events.Images("film")
        assert image.encoded_image_string.startswith(b"GIF8")
        assert image.step == FRAMES
        content = events.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
        info = plugin_data_pb2.HParamsPluginData.FromString(content).session_start_info
        assert info.hparams["train.method"].string_value == "cbet"
        assert info.hparams["train.frames"].number_value == FRAMES
        assert info.hparams["seed"].number_value == seed


def test_tensorboard_holds_what_a_checkpoint_has_when_it_is_saved(tmp_path, monkeypatch):
    """A killed run goes on behind it, and tracks what came before no more."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    save, saved = checkpoint.save, []

    def read_and_save(folder, arrays, position, *kept):
        events = EventAccumulator(str(tmp_path / "tensorboard/seed-0"))
        events.Reload()
        for name, seeds in written(RunDirectory(tmp_path)).items():
            found = [(event.step, pytest.approx(event.value)) for event in events.Scalars(name)]
            assert found == seeds[0], name
        saved.append(position.frames)
        return save(folder, arrays, position, *kept)

    monkeypatch.setattr(checkpoint, "save", read_and_save)
    pretrain(tmp_path, "--track", "tensorboard", "--checkpoint-seconds", "0")
    assert saved == list(range(CHUNK_FRAMES, FRAMES + 1, CHUNK_FRAMES))


def log_records(content: bytes) -> Iterator[bytes]:
    """Yield the records of a file in LevelDB's log format, behind wandb's own header."""
    position, record = WANDB_HEADER, b""
    while position + LOG_HEADER <= len(content):
        left = LOG_BLOCK - position % LOG_BLOCK
        if left < LOG_HEADER:
            position += left
            continue
        _, length, kind = struct.unpack_from("<IHB", content, position)
        position += LOG_HEADER
        record += content[position : position + length]
        position += length
        if kind in LOG_ENDS:
            yield record
            record = b""


def finished_log(path: Path) -> list:
    """Return wandb's records of a run: its process writes the last ones after `finish` returned."""
    from wandb.proto import wandb_internal_pb2

    for _ in range(100):
        read = wandb_internal_pb2.Record.FromString
        records = [read(data) for data in log_records(path.read_bytes())]
        if records and records[-1].HasField("exit"):
            return records
        time.sleep(0.1)
    raise TimeoutError(f"wandb did not finish {path}")


@pytest.mark.slow
def test_wandb_keeps_a_resumed_run_offline(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    one_seed = ("--seeds", "1", "--frames", str(6 * CHUNK_FRAMES), "--track", "wandb")
    with monkeypatch.context() as patch:
        interrupt_after(patch, 3)
        with pytest.raises(SystemExit):
            pretrain(tmp_path, *one_seed)
    time.sleep(1)  # wandb names a folder by the second
    minigrid_pretrain.main(["--out", str(tmp_path), "--resume", *one_seed[4:]])
    directory = RunDirectory(tmp_path)
    history, ids, config, films = [], set(), {}, 0
    for path in sorted(tmp_path.glob("wandb/offline-run-*/*.wandb")):
        for record in finished_log(path):
            if record.HasField("run"):
                ids.add(record.run.run_id)
                config |= {item.key: item.value_json for item in record.run.config.update}
            if record.HasField("history"):
                row = {
                    (item.key or item.nested_key[0]): item.value_json
                    for item in record.history.item
                }
                films += "film" in row
                if "interactions" in row:
                    history.append((int(row["frames"]), row["interactions"]))
    assert len(ids) == 1  # the resumed run goes on in the same place
    wanted = written(directory)["interactions"][0]
    assert [(frames, float(value)) for frames, value in sorted(history)] == [
        (frames, pytest.approx(value)) for frames, value in wanted
    ]
    assert '"cbet"' in config["train"]
    assert films == 1


class Failing:
    """A tracker that breaks in the middle of a run."""

    logged = closed = 0

    def __init__(self, *_):
        pass

    def log(self, frames, values):
        Failing.logged += 1
        raise ConnectionError("the service is\ndown")

    def close(self):
        Failing.closed += 1


def test_a_tracker_that_fails_does_not_end_the_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(tracking.TRACKERS, "wandb", Failing)
    directory = pretrain(tmp_path, "--track", "wandb")
    shown = capsys.readouterr().out
    assert shown.count("wandb has failed and is left out: the service is down") == 1
    assert Failing.closed == SEEDS
    assert f"finished at {FRAMES:,} frames" in shown
    assert Failing.logged == 1
    assert not (directory.root / "tensorboard").exists()  # which was not asked for


def trackers_of(name: str, folder: Path, say) -> tracking.Trackers:
    settings = RunSettings(SETTINGS, seeds=SEEDS, first_seed=7)
    return tracking.Trackers([name], RunDirectory(folder), settings, say)


def test_each_seed_is_told_its_own_numbers_whatever_the_first_seed_is(tmp_path, monkeypatch):
    told = []

    def tracker(directory, settings, seed, begun):
        return SimpleNamespace(log=lambda *news: told.append((seed, *news)))

    monkeypatch.setitem(tracking.TRACKERS, "wandb", tracker)
    trackers = trackers_of("wandb", tmp_path, pytest.fail)
    trackers.begin(100)
    chunk = {"loss": np.array([[1.0, 2.0], [3.0, np.nan]]), "first_bad_update": np.ones((2, 2))}
    trackers.log(chunk, 100, 10)
    assert sorted(told, key=lambda news: news[:2]) == [
        *((7, 110, {"loss": 1}), (7, 120, {"loss": 3})),
        *((8, 110, {"loss": 2}), (8, 120, {})),
    ]


def test_a_tracker_that_cannot_begin_is_said_to_have_failed_once(tmp_path, monkeypatch):
    said = []
    monkeypatch.setitem(tracking.TRACKERS, "wandb", Mock(side_effect=OSError("no network")))
    trackers = trackers_of("wandb", tmp_path, said.append)
    trackers.begin(0)
    trackers.close()
    assert said == ["wandb has failed and is left out: no network"]


def test_a_tracker_that_is_not_installed_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(tracking.NEEDED, "tensorboard", "no_such_package")
    arguments = [*ARGUMENTS, "--out", str(tmp_path / "run"), "--track", "tensorboard"]
    assert "--extra tensorboard" in refused(minigrid_pretrain.main, arguments, capsys)
    assert not (tmp_path / "run").exists()
