"""The numbers of a study's report: by hand."""

import re
from pathlib import Path

import numpy as np
import pytest

from cbet_jax.analysis.method_style import title
from cbet_jax.config import RunSettings
from cbet_jax.runs import checkpoint, manifest, metrics_table
from cbet_jax.runs.checkpoint import Position
from cbet_jax.runs.directory import RunDirectory, RunDirectoryError
from cbet_jax.runs.metrics_table import Column
from envs.names import TRANSFER
from experiments import report as page
from experiments.common import presets
from experiments.evaluation.evaluation_table import ALL_WORLDS, UNIFORM
from experiments.reports.comparison import ENTROPY, SHARES
from experiments.study import pictures, report, results, tables
from experiments.study.contents import BEST_RETURN, INTERACTIONS, SUCCESS, TABLES, published
from experiments.study.findings import Findings
from experiments.study.plan import EVALUATION, PRETRAIN, TABULA_RASA, StudySettings
from experiments.study.plan import TRANSFER as TRANSFER_STAGE
from experiments.study.results import STUDY, Result
from experiments.study.variants import SETUPS, VARIANTS
from tests.support.refusal import refused
from tests.support.unrendered import leave_unrendered

BY_NAME = {table.name: table for table in TABLES}


@pytest.fixture(autouse=True)
def _unrendered(monkeypatch):
    leave_unrendered(monkeypatch)


def evaluations(setup: str, method: str, metric: str, values, frames: int = 100) -> list[Result]:
    """Return results of each seed, the same in all ten worlds."""
    return [
        Result(EVALUATION, setup, method, seed, world, metric, frames, 10, value)
        for seed, value in enumerate(values)
        for world in TRANSFER
    ]


def row_of(table, *cells) -> list[str]:
    """Return the one row of a table that begins so."""
    cells = list(map(title, cells))
    (row,) = [row for row in table.rows if list(row[: len(cells)]) == cells]
    return list(row)


def success(known, name="success"):
    return tables.averages(BY_NAME[name], Findings(known))


def test_a_task_is_solved_when_a_full_window_is():
    frames = np.arange(1, 7) * 10
    early = Column(frames, np.array([1.0, 0.5, 0.9, 0.95, 0.9, 1.0]))
    assert results.frames_to_reach(0.9, early, 20, 1) == 40
    assert results.frames_to_reach(0.9, early, 60, 1) is None
    assert results.frames_to_reach(0.9, early, 70, 1) is None
    few_at_first = early._replace(episodes=np.array([1.0, 1, 1, 1, 3, 3]))
    assert results.frames_to_reach(0.9, few_at_first, 20, actors=3) == 50  # not 40
    assert results.frames_to_reach(0.9, few_at_first, 20, actors=6) is None


def test_tables_of_several_studies_are_read_as_one(tmp_path):
    asked = Result(STUDY, "", "laptop", 0, "", "seeds", 0, 0, 3.0)
    random = Result(EVALUATION, "", UNIFORM, 0, "Unlock", "success_rate", 0, 0, 0.1)
    cbet = Result(EVALUATION, "MultiEnv", "cbet", 0, "Unlock", "success_rate", 50, 64, 0.7)
    ride = cbet._replace(method="ride", seed=100, value=0.2)
    first, second, third = (tmp_path / f"{name}.csv" for name in ("first", "second", "third"))
    results.write(first, [asked, random, cbet])
    results.write(second, [asked._replace(value=5.0), random, ride])
    assert results.read_together([first, second]) == [asked, random, cbet, ride]
    episodes = asked._replace(metric="episodes", value=100.0)
    refusals = {
        "third.csv holds another value of MultiEnv cbet, seed 0, success_rate": cbet._replace(
            value=0.6
        ),
        "has 40 actors in MultiEnv cbet, those": cbet._replace(seed=1, actors=40),
        "with episodes 10, those before have 100": episodes._replace(value=10.0),
    }
    results.write(first, [asked, episodes, cbet])
    for words, row in refusals.items():
        results.write(third, [row])
        with pytest.raises(RunDirectoryError, match=words):
            results.read_together([first, third])


def test_tables_of_studies_with_other_presets_are_reported_apart(tmp_path):
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    asked = Result(STUDY, "", "laptop", 0, "", "budget", 0, 0, 24e6)
    results.write(first, [asked])
    results.write(second, [asked._replace(method="smoke", value=8000.0)])
    with pytest.raises(RunDirectoryError, match="the preset smoke, those before have laptop"):
        results.read_together([first, second])


def test_a_table_keeps_every_digit_of_whole_numbers(tmp_path):
    reached = Result("transfer", "MultiEnv", "cbet", 0, "Unlock", "frames", 10, 128, 12_345_678.0)
    third = reached._replace(metric="success", value=1 / 3)
    results.write(tmp_path / "results.csv", [reached, third])
    assert results.read(tmp_path / "results.csv") == [reached, third._replace(value=0.333333)]


def test_actors_are_those_of_pretraining():
    evaluated = Result(EVALUATION, "MultiEnv", "cbet", 0, "Unlock", "success_rate", 50, 16, 0.7)
    task = evaluated._replace(stage=TRANSFER_STAGE, actors=128)
    assert Findings([evaluated, task]).actors("MultiEnv", "cbet") == 16


def test_a_mean_over_setups_needs_all_of_them():
    known = [
        *evaluations("MultiEnv", "cbet", SUCCESS, [0.5, 0.7]),
        *evaluations("DoorKey", "cbet", SUCCESS, [0.2, 0.2]),
    ]
    lines = success(known)
    assert row_of(lines, "mean of 3 setups", "cbet")[2:] == ["not run", "33.64", *[""] * 4]
    # mean 0.6, standard error 0.1, t(0.975, 1 degree) = 12.7062; but it is a share
    row = row_of(lines, "MultiEnv", "cbet")
    assert row[2:] == ["60.00 [0.00, 100.00]", "", "", "", "2", "100"]
    known += evaluations("KeyCorridor", "cbet", SUCCESS, [0.2, 0.3])
    row = row_of(success(known), "mean of 3 setups", "cbet")
    assert (row[2].split()[0], row[3], row[4]) == ("35.00", "33.64", "+1.36")


def test_the_page_says_what_was_asked_for():
    asked = {"budget": 8e6, "first_seed": 0, "actors": 0, "tasks_entropy_weight": -1.0}
    rows = [Result(results.STUDY, "", "smoke", 0, "", k, 0, 0, v) for k, v in asked.items()]
    said = report._asked(Findings(rows))
    assert said.startswith("Preset smoke: budget 8,000,000, first seed 0. The paper:")


def test_only_pre_training_that_diverged_leaves_a_number_out():
    for stage, shown in ((PRETRAIN, ["diverged"]), (TRANSFER_STAGE, [])):
        ended = Result(stage, "DoorKey", "cbet", 0, ALL_WORLDS, results.ENDED, 80, 10, 1.0)
        assert [row[2] for row in success([ended]).rows if row[0] == "DoorKey"] == shown


def test_intervals_are_those_of_the_seeds():
    known = evaluations("MultiEnv", "cbet", INTERACTIONS, [30, 32])
    known += evaluations("MultiEnv", "count", INTERACTIONS, [20, 20, 20])
    known += evaluations("MultiEnv", "rnd", INTERACTIONS, [7])
    table = tables.averages(BY_NAME["interactions"], Findings(known))
    assert row_of(table, "MultiEnv", "cbet")[2] == "31.00 [18.29, 43.71]"  # error 1, t as above
    assert row_of(table, "MultiEnv", "count")[5] == "-11.00 [-23.71, 1.71]"  # Welch's, of cbet's
    assert row_of(table, "MultiEnv", "rnd")[2] == "7.00 one seed"
    assert row_of(table, "MultiEnv", "rnd")[5] == "-24.00 one seed"


def test_a_world_that_was_not_played_leaves_the_mean_out():
    known = evaluations("MultiEnv", "cbet", SUCCESS, [0.5, 0.7])[:-1]
    # The other seed has been played everywhere.
    assert row_of(success(known), "MultiEnv", "cbet")[2] == "50.00 one seed"
    row = row_of(tables.worlds(Findings(known[:9]), "MultiEnv", SUCCESS), "cbet")
    assert row == ["C-BET", "100", *["50.00 one seed"] * 9, "not run"]


def test_methods_are_compared_after_equal_frames():
    known = [
        result
        for method, frames in (("cbet", (50, 100, 200)), ("count", (50, 100)), ("rnd", (50,)))
        for at in frames
        for result in evaluations("MultiEnv", method, SUCCESS, [at / 1000], frames=at)
    ]
    found = Findings(known)
    assert row_of(success(known), "MultiEnv", "cbet")[2] == "5.00 one seed"
    evaluated = tables.evaluations(found)
    row = row_of(evaluated, "MultiEnv", "cbet", "50")
    assert row[3:] == ["10", "5", "not in each world", "5.00 one seed"]
    assert len(evaluated.rows) == 6
    unequal = [*known, *evaluations("MultiEnv", "ride", SUCCESS, [0.3], frames=70)]
    row = row_of(success(unequal), "MultiEnv", "ride")
    assert row[5:] == ["after other frames", "1", "70"]


def test_setups_are_compared_after_equal_frames_where_there_are_such():
    ran = {"MultiEnv": (80, 90), "DoorKey": (80,), "KeyCorridor": (80, 1200)}
    known = [
        result
        for setup, frames in ran.items()
        for at in frames
        for result in evaluations(setup, "cbet", SUCCESS, [at / 2000], frames=at)
    ]
    last = [row[-1] for row in success(known).rows if row[1] == "C-BET"]
    assert last == ["80", "90", "80", "1,200"]
    apart = [row for row in known if (row.setup, row.frames) != ("KeyCorridor", 80)]
    row = row_of(success(apart), "mean of 3 setups", "cbet")
    assert (row[2], row[-1]) == ("22.83 one seed", "80 to 1,200")  # of 90, 80 and 1,200 frames


def test_actions_of_long_episodes_weigh_more():
    known = []
    for setup, length, share in (("MultiRoom", 30, 1.0), ("NoisyTV", 10, 0.0)):
        shares = dict.fromkeys(SHARES, 0.0) | {SHARES[0]: share, SHARES[1]: 1 - share}
        for name, value in {**shares, "episode_length": length}.items():
            known += evaluations(setup, "cbet", name, [value])
    found = Findings(known)
    both = ("MultiRoom", "NoisyTV"), "cbet"
    assert found.row(*both, SHARES[0], (100, 100)).mean.value == pytest.approx(0.75)
    entropy = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25)) / np.log(7)
    assert found.row(*both, ENTROPY, (100, 100)).mean.value == pytest.approx(entropy)
    table = tables.actions(BY_NAME["noisy_tv_actions"], found)
    assert row_of(table, "MultiRoom", "cbet", "ours")[3] == "100.00 one seed"
    assert row_of(table, "MultiRoom", "cbet", "published")[3] == "4.0"
    assert row_of(table, "MultiRoom", "count", "ours")[3] == "not run"


def test_curves_with_points_at_other_frames_are_interpolated():
    key = ("pretrain", "MultiEnv", "cbet", "all", "success")
    rows = [
        Result(*key[:3], seed, "all", "success", at, 128, value)
        for seed, points in enumerate([{10: 0.1, 20: 0.2, 30: 0.3}, {15: 0.5, 30: 0.8, 45: 1.0}])
        for at, value in points.items()
    ]
    curve = Findings(rows).curve(key)
    np.testing.assert_array_equal(curve.frames, [20, 30])  # where both have values
    np.testing.assert_allclose(curve.mean, [(0.2 + 0.6) / 2, (0.3 + 0.8) / 2])
    assert Findings([*rows[:3], rows[-1]]).curve(key) is None


def test_a_task_that_ended_early_continues_with_its_last_value():
    """Seed 0 ends after 20 frames at 1.0; seed 1 needs 40."""
    key = (TRANSFER_STAGE, "MultiEnv", "cbet", "Unlock", "extrinsic_return")
    lines = [{10: 0.4, 20: 1.0}, {10: 0.0, 20: 0.2, 30: 0.4, 40: 0.8}]
    rows = [
        Result(*key[:3], seed, *key[3:], at, 128, value)
        for seed, points in enumerate(lines)
        for at, value in points.items()
    ]
    assert Findings(rows).curve(key).frames[-1] == 20
    found = Findings([*rows, Result(*key[:3], 0, key[3], results.ENDED_EARLY, 20, 128, 1.0)])
    np.testing.assert_array_equal(found.curve(key).frames, [10, 20, 30, 40])
    np.testing.assert_allclose(found.curve(key).mean, [0.2, 0.6, 0.7, 0.9])
    assert found.flat_from(key) == 20
    assert found.flat_from((*key[:2], "count", *key[3:])) == np.inf
    np.testing.assert_allclose([*found.area(key).values.values()], [0.775, 0.25])
    longer = Result(TABULA_RASA, "", "cbet", 0, *key[3:], 80, 128, 0.2)
    ended = Result(*key[:3], 0, key[3], results.ENDED_EARLY, 20, 128, 1.0)
    found = Findings([*rows, longer, ended])
    np.testing.assert_allclose([*found.area(key).values.values()], [0.8875, 0.25])  # equal frames


def test_a_task_that_did_not_end_early_is_not_continued():
    """Both seeds stop after 20 frames, one of them because its task was learnt."""
    key = (TRANSFER_STAGE, "MultiEnv", "cbet", "Unlock", "extrinsic_return")
    rows = [
        Result(*key[:3], seed, *key[3:], at, 128, value)
        for seed, value in enumerate([1.0, 0.5])
        for at in (10, 20)
    ]
    ended = Result(*key[:3], 0, key[3], results.ENDED_EARLY, 20, 128, 1.0)
    longer = Result(TABULA_RASA, "", "cbet", 0, *key[3:], 40, 128, 0.2)
    assert Findings([*rows, ended, longer]).curve(key).frames[-1] == 20


def test_tasks_are_told_by_return_success_and_frames():
    def learnt(stage, setup, method, returns, solved=None, succeeds=None):
        here = Result(stage, setup, method, 0, "Unlock", "", 100, 10, 0.0)
        for seed, value in enumerate(returns):
            for metric in ("extrinsic_return", "success"):
                yield here._replace(seed=seed, metric=metric, value=value)
        if solved:
            yield here._replace(metric=results.FRAMES_TO_SOLVE, value=solved)
        if succeeds:
            yield here._replace(seed=1, metric=results.FRAMES_TO_SUCCEED, value=succeeds)

    table = tables.tasks(
        Findings(
            [
                *learnt(TRANSFER_STAGE, "MultiEnv", "cbet", [0.9, 0.7], 60, 70),
                *learnt(TABULA_RASA, "", "cbet", [0.2]),
            ]
        )
    )
    whole = "0.80 [0.00, 1.00]"  # cannot leave 0..1, as success cannot
    ends = whole, whole, "80.00 [0.00, 100.00]"
    nothing = (
        "0.20 one seed",
        "0.20 one seed",
        "20.00 one seed",
        "-60.00 one seed",
        "never",
        "never",
    )
    assert table.rows == [
        ["Unlock", "policy of MultiEnv", "C-BET", "100", *ends, "", "60, never", "never, 70"],
        ["Unlock", "nothing", "C-BET", "100", *nothing],
    ]


def test_the_page_has_what_was_run(tmp_path):
    known = [Result(STUDY, "", "laptop", 0, "", "budget", 0, 0, 1e6)]
    for method in ("cbet", "count", "changes"):
        known += evaluations("MultiEnv", method, SUCCESS, [0.2, 0.4])
        known += evaluations("MultiEnv", method, INTERACTIONS, [2, 4])
    path, *drawn = report.write(tmp_path / "x.html", "Title", known)
    text = path.read_text()
    headings = re.findall("<h2>(.*?)</h2>", text)
    assert headings[:2] == [f"{table.title} ({table.source})" for table in TABLES[:2]]
    assert headings[-2:] == ["Every evaluation", "Each world, after MultiEnv"]
    assert not any("Noisy" in heading for heading in headings)
    assert "Preset laptop: budget 1,000,000." in text
    assert {picture.stem for picture in drawn} == {
        *("interactions", "success", "combinations", "resets", "resets_interactions"),
        "worlds_MultiEnv",
    }
    assert text.count('src="data:image/png;base64,') == len(drawn)
    assert "Every evaluation" not in report.write(tmp_path / "y.html", "Title", [])[0].read_text()


def test_what_is_published_belongs_to_a_table():
    known = published()
    shown = {
        (table.name, metric)
        for table in TABLES
        for metric in ((table.metric,) if table.metric else (*SHARES, ENTROPY))
    }
    assert {(table, metric) for table, _, _, metric in known} < shown
    assert all(set(setups.split()) <= set(SETUPS) for _, setups, _, _ in known)
    assert all(method in (*VARIANTS, "untrained") for _, _, method, _ in known)
    assert len(known) == 128


def test_profiles_show_the_policies_of_each_setup(tmp_path, monkeypatch):
    shown = []
    monkeypatch.setattr(pictures.figures, "draw_lines", lambda *given: shown.extend(given[2]))
    known = [
        Result(TRANSFER_STAGE, setup, "cbet", 0, task, "extrinsic_return", 100, 10, value)
        for setup, value in (("MultiEnv", 0.9), ("DoorKey", 0.1))
        for task in ("Unlock", "DoorKey-8x8")
    ]
    pictures.profiles(tmp_path, Findings(known))
    assert list(shown[0].lines) == ["cbet, transfer from MultiEnv", "cbet, transfer from DoorKey"]


def test_each_world_is_compared_after_equal_frames():
    later = [row._replace(frames=200) for row in evaluations("MultiEnv", "cbet", SUCCESS, [0.4])]
    known = [evaluations("MultiEnv", name, SUCCESS, [0.2]) for name in ("cbet", "count")]
    frames = {row.frames for row in known[0]}
    table = tables.worlds(Findings([*later, *known[0], *known[1]]), "MultiEnv", SUCCESS)
    assert [row[1] for row in table.rows] == [f"{max(frames):,}"] * 2


def test_pictures_that_are_there_are_kept(tmp_path, capsys, monkeypatch):
    known = [evaluations("MultiEnv", "cbet", name, [0.2, 0.4]) for name in (SUCCESS, INTERACTIONS)]
    results.write(tmp_path / "results.csv", [*known[0], *known[1]])
    monkeypatch.chdir(tmp_path)
    mine = Path("runs/report-figures/success.png")
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    page.main(["results.csv"])
    assert "runs/report-2.html" in capsys.readouterr().out
    assert mine.read_text() == "mine"
    assert Path("runs/report-2-figures").is_dir()
    named = ["results.csv", "--out", "runs/report.html"]
    assert "runs/report-figures already exists" in refused(page.main, named, capsys)


def test_worlds_beside_the_ten_are_shown_too():
    known = evaluations("MultiEnv", "cbet", SUCCESS, [0.2])
    known.append(known[0]._replace(environment="DoorKey-5x5"))
    table = tables.worlds(Findings(known), "MultiEnv", SUCCESS)
    assert (table.header[-1], table.rows[0][-1]) == ("DoorKey-5x5", "20.00 one seed")


def test_tasks_are_scored_over_equal_frames():
    """One curve, of which some runs have less."""
    known = [
        Result(TRANSFER_STAGE, "MultiEnv", method, 0, task, "extrinsic_return", at, 10, at / 100)
        for method, ends in (("cbet", (100, 100)), ("count", (100, 45)))
        for task, end in zip(("Unlock", "DoorKey-8x8"), ends, strict=True)
        for at in range(5, end + 1, 5)
    ]
    scores = Findings(known).scores()
    cbet, count = (scores[TRANSFER_STAGE, "MultiEnv", name] for name in ("cbet", "count"))
    np.testing.assert_array_equal(cbet, count)
    mean = (0.05 * 5 + (0.05 + 0.45) / 2 * 40) / 45  # the first value from the first frame
    np.testing.assert_allclose(cbet[1], mean / BEST_RETURN["DoorKey-8x8"])


def test_policies_that_were_not_evaluated_in_each_world_are_told_and_not_drawn(tmp_path):
    known = [
        Result(EVALUATION, "MultiEnv", "cbet", 0, "Unlock", metric, frames, 10, 0.5)
        for metric in (SUCCESS, INTERACTIONS)
        for frames in (100, 200)
    ]
    (first, _) = tables.evaluations(Findings(known)).rows
    assert first[-2:] == ["not in each world"] * 2
    of_three = [row._replace(setup=setup) for row in known for setup in SETUPS]
    assert row_of(success(of_three), "mean of 3 setups", "cbet")[2] == "not in each world"
    assert not pictures.frames(tmp_path, Findings(known))


def played_task(folder, task, chunk, first_seed=0) -> RunDirectory:
    """Save a run of one seed that has played a chunk of ten iterations, a million frames."""
    run = RunDirectory(folder)
    train = presets.for_task("smoke", task)
    run.create(RunSettings(train, (task,), 1, first_seed=first_seed, explore=False))
    with metrics_table.table(run.metrics, first_seed, Position()) as table:
        length = table.append(chunk, 0, 100_000)
        position = Position(10, 1_000_000, length, table.digest)
    checkpoint.save(run.checkpoints, {"x": np.zeros(1)}, position)
    return run


def test_a_run_is_smoothed_in_proportion_to_its_budget_and_solved_by_its_tasks_best(tmp_path):
    """Of 25 M frames 480,000, as of the paper's 50 M; the return of MultiRoom-N6 is at most 0.63.

    Three quarters of the actors' first episodes end after 200,000 frames.
    """
    chunk = {
        "extrinsic_return": np.float32([[0.0]] * 4 + [[0.6]] * 6),
        "episodes": np.float32([[4.0]] * 2 + [[8.0]] * 8),
    }
    run = played_task(tmp_path, "MultiRoom-N6", chunk, first_seed=4)
    manifest.Session(run.manifest, ()).record(run.manifest, ended="success 0.95")
    study = StudySettings("laptop", 25_000_000, 1, 100)
    found = list(results._run(TRANSFER_STAGE, "MultiEnv", "cbet", run.root, study))
    curve = [row for row in found if row.metric == "extrinsic_return"]
    assert curve[0].frames == 200_000  # of all actors
    assert curve[-1].value == pytest.approx(0.6)
    before = next(row for row in curve if row.frames == 700_000)
    assert before.value == pytest.approx(0.6 * 3 / 5)
    (solved,) = (row for row in found if row.metric == results.FRAMES_TO_SOLVE)
    assert solved.value == 600_000  # over the 200,000 frames before
    (early,) = (row for row in found if row.metric == results.ENDED_EARLY)
    assert {row.seed for row in found} == {early.seed} == {4}


def test_who_learns_all_tasks_worse_is_not_ahead_of_the_first():
    known = [
        Result(TRANSFER_STAGE, "MultiEnv", method, seed, task, "extrinsic_return", at, 10, value)
        for method, value in (("cbet", 0.9), ("count", 0.1))
        for task in ("Unlock", "DoorKey-8x8")
        for seed in range(2)
        for at in (50, 100)
    ]
    table = tables.aggregates(Findings(known))
    assert [row[-1] for row in table.rows] == ["", "0.00"]


def test_pretraining_is_told_after_a_tenth_half_and_all_of_its_frames():
    known = [
        Result("pretrain", "MultiEnv", "cbet", 0, "all", "success", at, 10, at / 1000)
        for at in range(10, 101, 10)
    ]
    (row,) = tables.pretraining(Findings(known)).rows
    assert row[3:] == ["100", "0.01", "0.05", "0.1"]


def test_a_methods_name_may_have_dashes(tmp_path):
    run = RunDirectory(tmp_path / "transfer/Unlock/MultiEnv-cbet-16-actors")
    run.create(RunSettings(presets.for_task("smoke", "Unlock"), ("Unlock",), explore=False))
    manifest.Session(run.manifest, ()).record(run.manifest, diverged="a loss")
    found = results.collect(tmp_path, StudySettings("laptop", 9_000_000, 1, 100))
    assert [(row.setup, row.method) for row in found if row.stage == TRANSFER_STAGE] == [
        ("MultiEnv", "cbet-16-actors")
    ]


@pytest.mark.parametrize(("task", "solved"), [("ObstructedMaze-2Dlhb", True), ("Unlock", False)])
def test_a_task_succeeds_when_the_levels_that_can_be_solved_are(task, solved, tmp_path):
    """One in fifteen of the largest maze cannot."""
    chunk = {"success": np.full((10, 1), 0.9), "episodes": np.full((10, 1), 8.0)}
    run = played_task(tmp_path, task, chunk)
    study = StudySettings("laptop", 25_000_000, 1, 100)
    found = results._run(TRANSFER_STAGE, "MultiEnv", "cbet", run.root, study)
    assert any(row.metric == results.FRAMES_TO_SUCCEED for row in found) == solved
