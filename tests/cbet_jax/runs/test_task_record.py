"""The record of a task: its best policies, a fall, and the ends that rules ask for."""

from dataclasses import asdict, replace

import numpy as np
import pytest

from cbet_jax.config import RunSettings, SettingsError
from cbet_jax.runs import checkpoint, manifest, metrics_table
from cbet_jax.runs.checkpoint import Position
from cbet_jax.runs.directory import RunDirectory, RunDirectoryError, checkpoints
from cbet_jax.runs.run_files import Run, RunFiles
from cbet_jax.runs.task_record import EarlyEnd, TaskRecord
from experiments.common.presets import PRESETS
from tests.support.damage import cut

CHUNK = 100_000  # frames
ACTORS = 10


def chunk(success, episodes=10):
    """One iteration of `[seeds]`; a success returns 0.5."""
    success = np.asarray([success], np.float32)
    ended = np.full(success.shape, episodes, np.float32)
    return {"episodes": ended, "success": success, "extrinsic_return": 0.5 * success}


def played(successes, early_end=EarlyEnd()) -> TaskRecord:  # noqa: B008
    """The record of chunks, of which each policy is the number of its chunk."""
    record = TaskRecord(len(successes[0]), ACTORS, early_end)
    for number, success in enumerate(successes, 1):
        better = record.add(number * CHUNK, chunk(success))
        if better.any():
            record.keep(better, {"policy": np.full((len(success), 2), number)})
    return record


def test_each_seed_keeps_the_policy_that_did_best_over_its_recent_episodes():
    """Means are over two chunks: 0.1, 0.3, 0.7, 0.5 and 0.1, 0.1, 0.1, 0.4."""
    record = played([(0.1, 0.1), (0.5, 0.1), (0.9, 0.1), (0.1, 0.7)])
    np.testing.assert_array_equal(record.best["policy"], [[3, 3], [4, 4]])
    np.testing.assert_array_equal(record.best_frames, [3 * CHUNK, 4 * CHUNK])
    np.testing.assert_allclose(record.best_success, [0.7, 0.4], rtol=1e-6)
    np.testing.assert_allclose(record.best_return, [0.35, 0.2], rtol=1e-6)


@pytest.mark.parametrize(
    ("successes", "expected"),
    [
        ([0.9, 0.9, 0.0, 0.0], "best success 0.90 at 200,000 frames, and 0.00 at 400,000: "),
        ([0.9, 0.9, 0.6, 0.6], "best success 0.90 at 200,000 frames"),
        ([0.05, 0.05, 0.0, 0.0], "best success 0.05 at 200,000 frames"),  # too little to lose
        ([0.0], "best success 0.00 at 100,000 frames"),
    ],
)
def test_a_fall_is_told_with_what_was_best(successes, expected):
    record = played([(each,) for each in successes])
    assert record.story().startswith(expected)
    assert record.fallen.tolist() == ["and" in expected]
    assert played([(0.1, each) for each in successes]).story().startswith("best success of seed ")


@pytest.mark.parametrize(
    ("early_end", "successes", "expected"),
    [
        (EarlyEnd(0.9, 3 * CHUNK), [0.9] * 2, ""),  # too short
        (EarlyEnd(0.9, 3 * CHUNK), [0.0, 0.9, 0.9, 0.9], "success 0.90 over the last 300,000"),
        (EarlyEnd(0.9, 3 * CHUNK), [0.0, 0.9, 0.8, 0.9], ""),
        (EarlyEnd(without_success=2 * CHUNK), [0.1, 0.0], ""),
        (EarlyEnd(without_success=2 * CHUNK), [0.1, 0.0, 0.0], "no success in the last 200,000"),
        (EarlyEnd(), [1.0] * 9, ""),
    ],
)
def test_a_task_ends_early_as_asked(early_end, successes, expected):
    ending = played([(each,) for each in successes], early_end).ending
    assert ending.startswith(expected)
    assert bool(ending) == bool(expected)


def test_all_seeds_must_be_good_enough():
    assert not played([(1.0, 0.5)] * 9, EarlyEnd(0.9, CHUNK)).ending
    assert played([(1.0, 0.9)] * 9, EarlyEnd(0.9, CHUNK)).ending


def test_a_chunk_without_episodes_changes_nothing():
    record = TaskRecord(1, ACTORS)
    nothing = chunk((np.nan,), episodes=0)
    assert not record.add(CHUNK, nothing).any()
    assert record.add(2 * CHUNK, chunk((0.5,))).all()
    np.testing.assert_allclose(record.success, [0.5])


def test_failures_that_end_together_are_not_left_out():
    """A third of the episodes succeed, in five chunks; the others time out in each tenth."""
    record = TaskRecord(1, ACTORS, EarlyEnd(0.9, 2 * CHUNK))
    for number in range(40):
        cycle = number % 10
        episodes = ACTORS if cycle == 9 else ACTORS / 10 if cycle < 5 else 0
        record.add((number + 1) * CHUNK, chunk((float(cycle < 5),), episodes))
        assert not record.ending
    assert record.best_success < 0.5


@pytest.mark.parametrize("early_end", [EarlyEnd(0.9, CHUNK), EarlyEnd()])
def test_the_first_episodes_to_end_are_no_record(early_end):
    """They are short, since nothing else can have ended: successes."""
    record = TaskRecord(2, ACTORS, early_end)
    assert not record.add(CHUNK, chunk((1.0, 1.0), episodes=ACTORS / 2 - 1)).any()
    assert not record.ending
    assert record.add(2 * CHUNK, chunk((0.1, 0.2), episodes=ACTORS)).all()
    np.testing.assert_allclose(record.best_success, [0.1, 0.2], rtol=1e-6)
    assert record.best_frames.tolist() == [2 * CHUNK, 2 * CHUNK]
    assert not record.ending
    assert not record.fallen.any()


@pytest.mark.parametrize("late", [1, 3])
def test_a_restored_record_is_that_of_each_seed(late, tmp_path):
    """The first seed ends no episode in the first chunks, so the table has no success of it."""
    rule, chunks = EarlyEnd(without_success=3 * CHUNK), [(0.5, 1.0), (0.25, 0.0), (0.75, 0.0)]
    live, restored = TaskRecord(2, ACTORS, rule), TaskRecord(2, ACTORS, rule)
    with metrics_table.table(tmp_path / "metrics.csv", 3, Position()) as rows:
        for number, successes in enumerate(chunks):
            ended = chunk(successes if number >= late else (np.nan, successes[1]))
            ended["episodes"][0, 0] *= number >= late
            live.add((number + 1) * CHUNK, ended)
            size = rows.append(ended, number * CHUNK, CHUNK)
    position = Position(len(chunks), len(chunks) * CHUNK, size, "")
    restored.restore(tmp_path / "best", tmp_path / "metrics.csv", position, 1)
    for name in ("best_return", "best_success", "best_frames", "success"):
        np.testing.assert_array_equal(getattr(restored, name), getattr(live, name), name)
    assert live.best_success.any() == (late == 1)
    assert restored.ending == live.ending == ""


@pytest.mark.parametrize("unmeasured", [("success",), ("success", "extrinsic_return")])
def test_a_restored_record_of_worlds_without_success_ends_nothing_either(unmeasured, tmp_path):
    rule = EarlyEnd(without_success=CHUNK)
    live, restored = TaskRecord(1, ACTORS, rule), TaskRecord(1, ACTORS, rule)
    with metrics_table.table(tmp_path / "metrics.csv", 0, Position()) as rows:
        ended = chunk((0.5,))
        for name in unmeasured:
            del ended[name]
        assert not live.add(CHUNK, ended).any()
        size = rows.append(ended, 0, CHUNK)
    restored.restore(tmp_path / "best", tmp_path / "metrics.csv", Position(1, CHUNK, size, ""), 1)
    assert restored.ending == live.ending == ""


def test_a_success_that_is_not_measured_is_not_waited_for():
    for rule in (EarlyEnd(success=0.5), EarlyEnd(without_success=CHUNK)):
        with pytest.raises(SettingsError, match="these worlds measure no success"):
            rule.refuse_unmeasured({"episodes": 1, "extrinsic_return": 1})
        rule.refuse_unmeasured({"success": 1})
    EarlyEnd().refuse_unmeasured({})


def test_best_policies_of_another_run_are_told(tmp_path):
    metrics = tmp_path / "metrics.csv"
    with metrics_table.table(metrics, 0, Position()) as rows:
        position = Position(1, CHUNK, rows.append(chunk((0.1,)), 0, CHUNK), "")
    policies = {"policy": np.ones((2, 2))}
    records = {f"best_{name}": np.ones(2) for name in ("return", "success", "frames")}
    for number, (arrays, why) in enumerate(
        ((policies, "it lacks 'best_return'"), (policies | records, "cannot reshape"))
    ):
        best = tmp_path / str(number)
        checkpoint.save_new(best, arrays, Position(0, CHUNK), kept=2)
        with pytest.raises(RunDirectoryError, match=f"cannot be read: {why}"):
            TaskRecord(1, ACTORS).restore(best, metrics, position, 1)


def test_a_damaged_best_is_replaced_by_the_one_before(tmp_path):
    record, best = TaskRecord(1, ACTORS), tmp_path / "best"
    for number, success in enumerate((0.2, 0.8, 0.9), 1):
        record.keep(
            record.add(number * CHUNK, chunk((success,))), {"policy": np.full((1, 2), number)}
        )
        record.save(best)
    older, newest = checkpoints(best)
    restored, metrics = TaskRecord(1, ACTORS), tmp_path / "metrics.csv"
    with metrics_table.table(metrics, 0, Position()) as rows:
        position = Position(1, CHUNK, rows.append(chunk((0.1,)), 0, CHUNK), "")
    for expected, damaged in ((3, None), (2, newest)):
        if damaged:
            cut(damaged)
        restored.restore(best, metrics, position, 1)
        assert (restored.best["policy"] == expected).all()
    assert older.name < newest.name


def test_a_damaged_best_is_set_aside_so_that_it_can_be_saved_again(tmp_path):
    train = replace(PRESETS["smoke"].train, extrinsic_weight=1.0)
    settings, said = RunSettings(train, ("LavaGapS5",), 1, chunk=1), []
    directory = RunDirectory(tmp_path / "run")
    directory.create(settings)
    for number in (1, 2):
        record = played([(0.2,)] * number)
        record.save(directory.best)
    older, newest = checkpoints(directory.best)
    cut(newest)
    with metrics_table.table(directory.metrics, 0, Position()) as rows:
        ended = chunk((0.2,), train.worlds)
        position = Position(1, CHUNK, rows.append(ended, 0, CHUNK), "")
    run = RunFiles(Run(directory, settings), 0, said.append, EarlyEnd())
    run.position = position
    run.restore_task()
    aside = f"{newest.name}.damaged-1"
    assert said == [
        f"checkpoint {newest} is damaged: set aside as {aside}, continuing from {older.name}"
    ]
    assert (directory.best / aside).is_dir()
    run.task.keep(run.task.add(2 * CHUNK, ended), {"policy": np.full((1, 2), 2)})
    run.task.save(directory.best)
    assert checkpoints(directory.best) == [older, newest]
    run.task.restore(directory.best, directory.metrics, position, 1)
    assert (run.task.best["policy"] == 2).all()


def test_a_run_that_has_ended_records_by_which_rule(tmp_path):
    """Continued under another rule, by which it has ended, too, nothing is played."""
    train = replace(PRESETS["smoke"].train, extrinsic_weight=1.0)
    directory = RunDirectory(tmp_path / "run")
    directory.create(RunSettings(train, ("Unlock",), 1, chunk=1))
    first, other = EarlyEnd(success=0.5), EarlyEnd(success=0.4)
    for rule, sessions in ((first, 1), (first, 1), (other, 2), (other, 2)):
        run = RunFiles(Run(directory, directory.settings()), 0, print, rule)
        run.task, run.saved = played([(0.6,)] * 5, rule), Position(3, 60)
        with directory.lock():
            if not directory.manifest.exists():
                run.record(frames=60, frames_per_second=7)  # as a save does
            run.record_early_end()
        recorded = manifest.sessions(directory.manifest)
        last = recorded[-1]
        assert len(recorded) == sessions
        assert last["ended"].startswith("success 0.60 over the last")
        assert (last["early_end"], last["frames"]) == (asdict(rule), 60)
        assert last["frames_per_second"] == 7  # which reports show
    manifest.Session(directory.manifest, ()).record(directory.manifest, early_end=asdict(other))
    with directory.lock():
        run.record_early_end()  # killed after its last save, before that was recorded
    assert manifest.last_session(directory.manifest)["ended"] == run.ending
    with pytest.raises(RunDirectoryError, match="has lost its checkpoints"):
        manifest.refuse_lost_checkpoints(directory)


def test_each_of_joined_runs_keeps_its_own_policies(tmp_path):
    train, frames = replace(PRESETS["smoke"].train, extrinsic_weight=1.0, worlds=8), 160
    settings = RunSettings(train, ("Unlock",), seeds=2, explore=False)
    policies = {"learner.policy.x": np.arange(4, dtype=np.float32)}
    chunk = {name: np.full((1, 4), 8, np.float32) for name in ("episodes", "extrinsic_return")}
    chunk |= {"success": np.ones((1, 4), np.float32), "first_bad_update": np.full((1, 4), np.nan)}
    for number, wanted in enumerate(([0, 1], [2, 3])):
        directory = RunDirectory(tmp_path / str(number))
        directory.create(settings)
        run = RunFiles(Run(directory, settings), 2 * number, print, EarlyEnd())
        with directory.lock():
            run.write(chunk, 1, frames)
            assert run.is_best()
            run.keep_best(policies)
            run.keep_policies(policies)
        assert run.task.best_frames.tolist() == [frames, frames]
        kept, _ = checkpoint.read_arrays(checkpoints(directory.policies)[0])
        for found in (run.task.best, kept):
            assert found["learner.policy.x"].tolist() == wanted
