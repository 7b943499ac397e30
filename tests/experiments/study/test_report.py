"""The numbers of a study's report: by hand."""

import numpy as np
import pytest

from cbet_jax.analysis import intervals
from cbet_jax.analysis.method_style import title
from cbet_jax.runs.directory import RunDirectoryError
from cbet_jax.runs.metrics_table import Column
from cbet_jax.runs.saved_policies import UNIFORM
from envs.minigrid.generators.catalogue import TRANSFER
from experiments.evaluation.evaluation_table import ALL_WORLDS
from experiments.study import pictures, report, results, tables, tasks, verdict
from experiments.study.commands import made_by
from experiments.study.contents import (
    ABLATION,
    MAIN,
    METHODS,
    NOISY,
    NOISY_METHODS,
    NOISY_TV,
    THREE,
    Averages,
    published,
)
from experiments.study.estimates import ENTROPY, RETURN, SHARES, SUCCESS, Findings
from experiments.study.plan import EVALUATION, PRETRAIN, TABULA_RASA
from experiments.study.plan import TRANSFER as TRANSFER_STAGE
from experiments.study.report import Contents
from experiments.study.results import Result
from experiments.study.variants import SETUPS, VARIANTS
from tests.support.unrendered import leave_unrendered


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


def row_of(lines, *cells) -> list[str]:
    """Return the one row of a table that begins so."""
    start = f"| {' | '.join(map(title, cells))} |"
    (row,) = [line for line in lines if line.startswith(start)]
    return row.removeprefix("| ").removesuffix(" |").split(" | ")


def test_a_task_is_solved_when_a_full_window_is():
    frames = np.arange(1, 7) * 10
    early = Column(frames, np.array([1.0, 0.5, 0.9, 0.95, 0.9, 1.0]))
    assert results.frames_to_solve(early, 20, 1) == 40
    assert results.frames_to_solve(early, 60, 1) is None
    assert results.frames_to_solve(early, 70, 1) is None
    few_at_first = early._replace(episodes=np.array([1.0, 1, 1, 1, 3, 3]))
    assert results.frames_to_solve(few_at_first, 20, actors=6) == 50


def test_results_come_back_as_they_were(tmp_path):
    asked = Result(results.STUDY, "", "laptop", 0, "", "budget", 0, 0, 12_345_678.0)
    found = [asked, *evaluations("MultiEnv", "cbet", SUCCESS, [0.25, 0.125])]
    results.write(tmp_path / "results.csv", found)
    assert results.read(tmp_path / "results.csv") == found


def test_tables_of_several_studies_are_read_as_one(tmp_path):
    asked = Result(results.STUDY, "", "laptop", 0, "", "seeds", 0, 0, 3.0)
    random = Result(EVALUATION, "", UNIFORM, 0, "Unlock", "success_rate", 0, 0, 0.1)
    cbet = Result(EVALUATION, "MultiEnv", "cbet", 0, "Unlock", "success_rate", 50, 64, 0.7)
    ride = cbet._replace(method="ride", seed=100, value=0.2)
    first, second, third = (tmp_path / f"{name}.csv" for name in ("first", "second", "third"))
    results.write(first, [asked, random, cbet])
    results.write(second, [asked._replace(value=5.0), random, ride])
    assert results.read_together([first, second]) == [asked, random, cbet, ride]
    results.write(third, [cbet._replace(value=0.6)])
    words = "third.csv holds another value of MultiEnv cbet, seed 0, success_rate"
    with pytest.raises(RunDirectoryError, match=words):
        results.read_together([first, third])
    results.write(third, [cbet._replace(seed=1, actors=40)])
    with pytest.raises(RunDirectoryError, match="has 40 actors in MultiEnv cbet, those"):
        results.read_together([first, third])
    results.write(first, [asked._replace(metric="episodes", value=100.0)])
    results.write(third, [asked._replace(metric="episodes", value=10.0)])
    with pytest.raises(RunDirectoryError, match="with episodes 10, those before have 100"):
        results.read_together([first, third])


def test_a_mean_over_setups_needs_all_of_them():
    table, method = MAIN[1], "cbet"
    assert (table.metric, table.setups[0]) == (SUCCESS, ("MultiEnv", "DoorKey", "KeyCorridor"))
    known = [
        *evaluations("MultiEnv", method, SUCCESS, [0.5, 0.7]),
        *evaluations("DoorKey", method, SUCCESS, [0.2, 0.2]),
    ]
    lines = tables.averages(table, Findings(known))
    assert row_of(lines, "mean of 3 setups", method)[2:] == [
        "not run",
        "",
        "",
        "",
        "33.64",
        "",
        "",
        "",
    ]
    # mean 0.6, standard error 0.1, t(0.975, 1 degree) = 12.7062; but it is a share
    row = row_of(lines, "MultiEnv", method)
    assert row[2:4] == ["60.00", "[0.00, 100.00]"]
    assert row[6:] == ["not printed", "", "2", "100"]
    known += evaluations("KeyCorridor", method, SUCCESS, [0.2, 0.3])
    row = row_of(tables.averages(table, Findings(known)), "mean of 3 setups", method)
    assert (row[2], row[6], row[7]) == ("35.00", "33.64", "+1.36")


def test_an_interval_is_that_of_the_seeds():
    known = evaluations("MultiEnv", "cbet", MAIN[0].metric, [30, 32])
    row = row_of(tables.averages(MAIN[0], Findings(known)), "MultiEnv", "cbet")
    assert row[2:4] == ["31.00", "[18.29, 43.71]"]  # standard error 1, t as above


def test_a_world_that_was_not_played_leaves_the_mean_out():
    known = evaluations("MultiEnv", "cbet", SUCCESS, [0.5, 0.7])[:-1]
    lines = tables.averages(MAIN[1], Findings(known))
    # The other seed has been played everywhere.
    assert row_of(lines, "MultiEnv", "cbet")[2:4] == ["50.00", "one seed"]
    lines = tables.worlds(Findings(known[:9]), "MultiEnv", SUCCESS, ["cbet", "count"])
    assert row_of(lines, "Unlock") == ["Unlock", "50.00"]
    assert row_of(lines, TRANSFER[-1]) == [TRANSFER[-1], "not run"]


def test_the_latest_policies_count():
    known = [
        *evaluations("MultiEnv", "cbet", SUCCESS, [0.1], frames=50),
        *evaluations("MultiEnv", "cbet", SUCCESS, [0.3], frames=100),
    ]
    assert row_of(tables.averages(MAIN[1], Findings(known)), "MultiEnv", "cbet")[2] == "30.00"
    lines = tables.drivers(Findings(known))
    assert row_of(lines, "MultiEnv", "cbet", "50")[3:] == ["10", "5", "not run", "10.00"]
    assert row_of(lines, "MultiEnv", "cbet", "100")[3:] == ["10", "10", "not run", "30.00"]


def test_steps_an_actor_are_drawn_where_runs_differ_in_actors(tmp_path, monkeypatch):
    known = [
        *evaluations("MultiEnv", "cbet", SUCCESS, [0.1], frames=50),
        *evaluations("MultiEnv", "cbet", SUCCESS, [0.3], frames=100),
    ]
    fewer = [row._replace(method="count", actors=5) for row in known]
    drawn = []

    def lines(path, title, panels, columns):
        drawn.append([panel.horizontal for panel in panels])
        return path

    monkeypatch.setattr(pictures.figures, "lines", lines)
    pictures.drivers(tmp_path, Findings(known))
    pictures.drivers(tmp_path, Findings(known + fewer))
    frames, steps = "frames (millions)", "steps an actor (millions)"
    assert drawn == [[frames] * 2, [frames, steps] * 2]


def test_methods_are_compared_after_equal_frames():
    known = [
        result
        for method, frames in (("cbet", (50, 100, 200)), ("count", (50, 100)), ("rnd", (50,)))
        for at in frames
        for result in evaluations("MultiEnv", method, SUCCESS, [at / 1000], frames=at)
    ]
    cases = {(): "20.00", ("cbet", "count", "ride"): "10.00", ("cbet", "count", "rnd"): "5.00"}
    for compared, expected in cases.items():
        found = Findings(known, compared)
        lines = tables.averages(MAIN[1], found)
        row = row_of(lines, "MultiEnv", "cbet")
        assert row[2] == expected
        assert (int(row[-1]),) == found.compared_at(("MultiEnv",), "cbet")
    assert found.compared_at(("MultiEnv",), "untrained") == (0,)
    unequal = [*known, *evaluations("MultiEnv", "ride", SUCCESS, [0.3], frames=70)]
    lines = tables.averages(MAIN[1], Findings(unequal, ("cbet", "ride")))
    assert row_of(lines, "MultiEnv", "cbet")[-1] == "200"
    assert "MultiEnv **unequal** (C-BET 200, Count 100, RIDE 70, RND 50)" in lines[-2]


def test_setups_are_compared_after_equal_frames_where_there_are_such():
    ran = {"MultiEnv": (80, 90), "DoorKey": (80,), "KeyCorridor": (80, 1200)}
    known = [
        result
        for setup, frames in ran.items()
        for at in frames
        for result in evaluations(setup, "cbet", SUCCESS, [at / 2000], frames=at)
    ]
    lines = tables.averages(MAIN[1], Findings(known, METHODS))
    last = {row.split(" | ")[0]: row.split(" | ")[-1] for row in lines if " | C-BET | " in row}
    assert list(last.values()) == ["80 |", "90 |", "80 |", "1,200 |"]
    assert row_of(lines, "mean of 3 setups", "cbet")[2] == "4.00"
    assert lines[-2].startswith("Frames of pre-training: mean of 3 setups 80; MultiEnv 90;")
    apart = [row for row in known if (row.setup, row.frames) != ("KeyCorridor", 80)]
    found = Findings(apart, METHODS)
    row = row_of(tables.averages(MAIN[1], found), "mean of 3 setups", "cbet")
    assert (row[2], row[-1]) == ("22.83", "80 to 1,200")  # of 90, 80 and 1,200 frames
    assert tables.worlds(found, "DoorKey", SUCCESS, ("cbet",))[-2].endswith(": DoorKey 80.")


def test_each_table_of_a_report_compares_its_own_methods(tmp_path):
    known = [
        result
        for method, frames in (("cbet", (80, 90)), ("count", (80, 90)), ("count-resets", (80,)))
        for at in frames
        for result in evaluations("MultiEnv", method, SUCCESS, [at / 1000], frames=at)
    ]
    resets = next(table for table in ABLATION if table.name == "resets")
    contents = Contents("Title", (MAIN[1], resets), ("MultiEnv",), METHODS, tasks=False)
    written, *_ = report.write(tmp_path, "report", contents, known)
    lines = written.read_text().split("\n")
    rows = [line.split(" | ") for line in lines if line.startswith("| MultiEnv | C-BET | ")]
    assert [row[2] for row in rows[:2]] == ["9.00", "8.00"]
    assert [row[-1] for row in rows[:2]] == ["90 |", "80 |"]


def test_a_report_begins_with_five_lines_and_one_table(tmp_path):
    known = [
        *evaluations("MultiEnv", "cbet", MAIN[0].metric, [20.0, 20.2, 20.1]),
        *evaluations("MultiEnv", "count", MAIN[0].metric, [30.0, 30.2, 30.1]),
        *evaluations("MultiEnv", "rnd", MAIN[0].metric, [7.0, 7.2, 7.1]),
        *evaluations("MultiEnv", "cbet", SUCCESS, [0.2, 0.4, 0.3]),
        *evaluations("MultiEnv", "count", SUCCESS, [0.3, 0.1, 0.2]),
        *(
            Result(results.STUDY, "", "laptop", 0, "", name, 0, 0, value)
            for name, value in {"budget": 1e6, "seeds": 3, "episodes": 9}.items()
        ),
    ]
    contents = Contents("Title", (*MAIN, *ABLATION), ("MultiEnv",), METHODS, tasks=True)
    written, *_ = report.write(tmp_path, "report", contents, known)
    lines = written.read_text().split("\n")
    assert lines[:4] == ["# Title", "", "## Verdict", ""]
    ran, interactions, success, numbers, learnt = lines[4:9]
    assert "preset `laptop`, up to 100 frames, 3 seeds" in ran
    assert "9 episodes in each of 10 worlds" in ran
    assert "MultiEnv after 100 frames: Count 30.1, C-BET 20.1, RND 7.1." in interactions
    said = "Of 3 pairs 2 are in the paper's order, 1 against it (Count above C-BET), 0 not told"
    assert said in interactions
    assert "C-BET 30.0, Count 20.0. Of 1 pairs 0" in success
    assert "1 not told apart" in success
    assert "No published mean was measured" in numbers
    assert "No task was learnt." in learnt
    assert lines[9] == ""
    assert lines[10].startswith("| method | Unique interactions an episode, MultiEnv | published")
    assert row_of(lines[10:16], "C-BET")[1:3] == ["20.1 [19.85, 20.35]", "26.92"]
    assert f"- {ABLATION[0].title} ({ABLATION[0].source})" in lines[lines.index("## Not run") :]
    html = written.with_suffix(".html").read_text()
    assert "<h2>Verdict</h2>" in html
    assert html.count('src="data:image/png;base64,') == written.read_text().count("![")


@pytest.mark.parametrize("method", ["rnd", "cbet", None])
def test_a_report_of_little_says_what_was_not_run(tmp_path, method):
    known = evaluations("MultiEnv", method, SUCCESS, [0.5]) if method else []
    contents = Contents("Title", MAIN, ("MultiEnv",), METHODS, tasks=True)
    written, *_ = report.write(tmp_path, "report", contents, known)
    text = written.read_text()
    assert ("| MultiEnv | 100 | not run | not run | 50.00 | not run |" in text) == (
        method == "cbet"
    )
    assert ("Every evaluation:" in text) == (method is not None)


def test_the_order_is_looked_at_after_about_equal_frames_and_later():
    ran = {
        ("MultiEnv", "cbet"): (800, 2400),
        ("MultiEnv", "count"): (800, 2400),
        ("MultiEnv", "count-resets"): (800, 3000),
        ("MultiEnv", "cbet-shared"): (800,),
        ("MultiEnv", "cbet-16-actors"): (790,),
        ("MultiEnv", "count-16-actors"): (790,),
        ("DoorKey", "cbet"): (5000,),
        ("DoorKey", "count"): (5000, 9000),
    }
    known = [
        result
        for number, ((setup, method), frames) in enumerate(ran.items(), start=1)
        for at in frames
        for result in evaluations(setup, method, SUCCESS, [at / 1e5 + number / 10], frames=at)
    ]
    assert tables.order(Findings([])) == tables.NOTHING
    rows = [line.strip("| ").split(" | ") for line in tables.order(Findings(known))[2:-1]]
    assert [(row[0], row[1], *row[4:]) for row in rows] == [
        ("MultiEnv", "800", "10.80", "20.80"),
        ("MultiEnv, both reset", "800", "10.80", "30.80"),
        ("MultiEnv, shared counts", "800", "40.80", "not run"),
        ("MultiEnv, 16 actors", "790", "50.79", "60.79"),
        ("DoorKey", "5,000", "75.00", "85.00"),
        ("MultiEnv, later", "2,400", "12.40", "22.40"),
    ]


def test_actions_are_drawn_beside_the_published_ones(tmp_path, monkeypatch):
    known = evaluations("NoisyTV", "count-resets", "episode_length", [10.0])
    for name in SHARES:
        known += evaluations("NoisyTV", "count-resets", name, [0.25])
    drawn = []
    monkeypatch.setattr(pictures.figures, "bars", lambda *given: drawn.append(given))
    pictures.actions(tmp_path, Findings(known), NOISY_TV[1])
    ((path, _, panels, groups, published),) = drawn
    assert path == tmp_path / "noisy_tv_actions.png"
    (label,) = panels
    assert label == "share of actions, NoisyTV"
    assert [bar.value for bar in panels[label]["count-resets"]] == pytest.approx([0.25] * 7)
    theirs = dict(zip(groups, published[label]["count-resets"], strict=True))
    assert theirs["drop"] == pytest.approx(0.222)


def test_actions_of_long_episodes_weigh_more():
    known = []
    for setup, length, share in (("MultiRoom", 30, 1.0), ("NoisyTV", 10, 0.0)):
        known += evaluations(setup, "cbet", "episode_length", [length])
        known += evaluations(setup, "cbet", SHARES[0], [share])
        known += evaluations(setup, "cbet", SHARES[1], [1 - share])
        for name in SHARES[2:]:
            known += evaluations(setup, "cbet", name, [0.0])
    both = Findings(known).measure(("MultiRoom", "NoisyTV"), "cbet", SHARES[0], TRANSFER)
    assert both.mean.value == pytest.approx(0.75)
    entropy = Findings(known).measure(("MultiRoom", "NoisyTV"), "cbet", ENTROPY, TRANSFER)
    assert entropy.mean.value == pytest.approx(
        -(0.75 * np.log(0.75) + 0.25 * np.log(0.25)) / np.log(7)
    )
    lines = tables.actions(NOISY_TV[1], Findings(known))
    assert row_of(lines, "MultiRoom", "cbet", "ours")[3:5] == ["100.00", "0.00"]
    assert row_of(lines, "MultiRoom", "cbet", "difference")[3:5] == ["+96.00", "-4.30"]
    assert row_of(lines, "MultiRoom", "count", "ours")[3] == "not run"


def test_trends_are_read_off_the_curves():
    known = [
        Result(PRETRAIN, "MultiEnv", "cbet", 0, ALL_WORLDS, "interactions", at, 10, at / 10)
        for at in range(10, 110, 10)
    ]
    lines = tables.trends(Findings(known), ["cbet"], ["MultiEnv"])
    row = row_of(lines, "interactions", "MultiEnv", "cbet")
    assert row[3] == "100"
    assert [cell.split()[0] for cell in row[4:]] == ["1", "5", "10"]


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


def test_returns_and_shares_stay_where_they_can_be():
    """Of two seeds at 0.9 and 1 the interval would reach 1.59; that of interactions may."""
    known = [
        Result(stage, setup, "cbet", seed, world, metric, 100, 10, value)
        for stage, setup, world, metric in (
            (PRETRAIN, "MultiEnv", ALL_WORLDS, "success"),
            (PRETRAIN, "MultiEnv", ALL_WORLDS, "interactions"),
            (TRANSFER_STAGE, "MultiEnv", "Unlock", "extrinsic_return"),
        )
        for seed, value in enumerate((0.9, 1.0))
    ]
    found = Findings(known)
    lines = tables.trends(found, ["cbet"], ["MultiEnv"])
    assert row_of(lines, "success", "MultiEnv", "cbet")[-1] == "0.95 [0.315, 1]"
    assert row_of(lines, "interactions", "MultiEnv", "cbet")[-1] == "0.95 [0.315, 1.59]"
    assert row_of(tasks.table(found), "Unlock")[4] == "0.95 [0.31, 1.00]"
    assert found.curve((TRANSFER_STAGE, "MultiEnv", "cbet", "Unlock", RETURN)).high == [1]


def test_tasks_are_told_by_return_success_and_frames():
    def learnt(stage, setup, seed, value, solved=None):
        here = Result(stage, setup, "cbet", seed, "Unlock", "", 100, 10, value)
        rows = [here._replace(metric=metric) for metric in ("extrinsic_return", "success")]
        found = here._replace(metric=results.FRAMES_TO_SOLVE, value=solved)
        return [*rows, found] if solved else rows

    found = Findings(
        [
            *learnt(TRANSFER_STAGE, "MultiEnv", 0, 0.9, 60),
            *learnt(TRANSFER_STAGE, "MultiEnv", 1, 0.7),
            *learnt(TABULA_RASA, "", 0, 0.2),
        ]
    )
    _, _, *rows, _ = tasks.table(found)
    assert rows == [
        "| Unlock | transfer from MultiEnv | C-BET | 100 | 0.80 [0.00, 1.00] | "
        "80.00 [0.00, 100.00] | 60, never | not printed |",
        "| Unlock | tabula rasa | C-BET | 100 | 0.20 one seed | 20.00 one seed | never | "
        "not printed |",
    ]
    said = verdict.verdict(MAIN, found, [])[-2]
    assert "C-BET, transfer from MultiEnv: 1 of 1; C-BET, tabula rasa: 0 of 1." in said


def test_what_is_published_belongs_to_a_table():
    known = published()
    shown = set()
    for table in (*MAIN, *ABLATION, *NOISY_TV):
        metrics = (table.metric,) if isinstance(table, Averages) else (*SHARES, ENTROPY)
        shown |= {(table.name, metric) for metric in metrics}
    assert {(table, metric) for table, _, _, metric in known} == shown
    assert all(set(setups.split()) <= set(SETUPS) for _, setups, _, _ in known)
    assert all(method in (*VARIANTS, "untrained") for _, _, method, _ in known)
    assert len(known) == 128


def test_what_is_published_twice_is_the_same():
    """Tables print some numbers again, and the paper's text others (appendix on combinations)."""
    printed = {}
    for (_, *which), number in published().items():
        printed.setdefault(tuple(which), []).append(number.value)
    twice = [values for values in printed.values() if len(values) > 1]
    assert sorted(map(len, twice)) == [2, 2, 3]
    assert max(max(values) - min(values) for values in twice) < 0.04  # C-BET: 33.64 and 33.67
    told = {"cbet": 33.64, "sum-squared": 31.9, "count-resets": 28.35, "changes": 18.15}
    told |= dict.fromkeys(("product", "sum", "sum-inside"), 30.4)
    for method, value in told.items():
        assert printed[" ".join(THREE), method, SUCCESS][0] == pytest.approx(value, abs=0.051)


ACTIONS_PUBLISHED = [
    *(("noisy_tv_actions", setup, name) for (setup,) in NOISY for name in NOISY_METHODS),
    *(("actions", " ".join(THREE), name) for name in ("cbet", "changes", "changes-egocentric")),
]


@pytest.mark.parametrize("where", ACTIONS_PUBLISHED)
def test_published_actions_add_up_and_have_the_published_entropy(where):
    known = published()
    shares = np.array([known[*where, name].value for name in SHARES])
    assert shares.sum() == pytest.approx(100, abs=0.5)
    entropy = known[*where, ENTROPY].value
    assert intervals.normalized_entropy(shares / shares.sum()) == pytest.approx(entropy, abs=0.03)


def test_each_table_has_the_commands_that_made_its_numbers():
    asked = {"budget": 90, "episodes": 100, "first_seed": 0, "actors": 40, "lockstep": 1}
    found = [Result(results.STUDY, "", "laptop", 0, "", k, 0, 0, v) for k, v in asked.items()]
    for setup in THREE:
        for method in ("cbet", "count"):
            found += evaluations(setup, method, SUCCESS, [0.25, 0.125])
    found += evaluations("DoorKey", "cbet", SUCCESS, [0.5, 0.25], frames=60)
    ride = evaluations("MultiEnv", "ride", SUCCESS, [0.25, 0.125, 0.5], frames=20)
    found += [row._replace(seed=row.seed + 100) for row in ride]
    program = "uv run python -m experiments.paper --preset laptop --budget 90 --seeds"
    both, alone = "--episodes 100 --actors 40 --lockstep --out runs/study-seeds", " ".join(THREE)
    assert made_by(Findings(found), (THREE, ("MultiEnv",)), (*METHODS, UNIFORM)) == [
        *("Made by:", "", "```bash"),
        f"{program} 2 --setups {alone} --methods cbet count --evaluate-at 60 {both}-0-to-1",
        f"{program} 3 --first-seed 100 --setups MultiEnv --methods ride "
        f"--evaluate-at 20 --until 20 {both}-100-to-102",
        *("```", ""),
    ]
    merged = found + [row._replace(seed=row.seed + 7) for row in found if row.method == "cbet"]
    assert made_by(Findings(merged), (THREE,), ("cbet",))[3:-2] == [
        f"{program} 2 --setups {alone} --methods cbet --evaluate-at 60 {both}-0-to-1",
        f"{program} 2 --first-seed 7 --setups {alone} --methods cbet "
        f"--evaluate-at 60 {both}-7-to-8",
    ]
    paper = [row._replace(method="paper") if row.stage == results.STUDY else row for row in found]
    for line in made_by(Findings(paper), (THREE,), ("cbet",))[3:-2]:
        assert " --tasks --episodes 100 " in line  # none, where the preset has some
    before = [row for row in found if row.metric != "first_seed"]
    assert made_by(Findings(before), (THREE,), METHODS) == []
