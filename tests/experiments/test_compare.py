"""Comparing the curves of runs: the numbers, the picture, what is refused."""

import csv
import math
from dataclasses import replace
from itertools import pairwise

import pytest

from cbet_jax.analysis import figures
from cbet_jax.analysis.learning_curves import ALL_WORLDS
from cbet_jax.runs import manifest, metrics_table
from cbet_jax.runs.directory import RunDirectory
from cbet_jax.runs.metrics_table import HEADER
from experiments import compare, report
from experiments.common import endings
from experiments.common.presets import PRESETS
from experiments.reports import runs
from tests.support.refusal import refused


def write_run(root, level, seeds, frames=1200):
    """Write the metrics of seeds whose curve is flat but for each seed's own offset."""
    RunDirectory(root).create(replace(PRESETS["smoke"], seeds=seeds))
    lines = [
        f"{seed},{at},{metric},{level + seed}\n"
        for seed in range(seeds)
        for at in range(100, frames + 1, 100)
        for metric in ("interactions", "policy_loss")
    ]
    (root / "metrics.csv").write_text(HEADER + "".join(lines))
    return str(root)


def values(folder):
    """Return the table that was written: run, metric, world, seed -> value."""
    with open(folder / "comparison.csv", newline="") as file:
        return {tuple(row[:4]): float(row[4]) for row in list(csv.reader(file))[1:]}


def test_runs_are_compared_at_the_frames_that_all_have_played(tmp_path, capsys):
    one, other = write_run(tmp_path / "a", 1.0, 3), write_run(tmp_path / "b", 4.0, 2, frames=600)
    compare.main([f"old={one}", other, "--out", str(tmp_path / "out")])
    assert values(tmp_path / "out") == {
        (run, "interactions", "all worlds", str(seed)): seed + level
        for run, level, seeds in (("old", 1, 3), ("b", 4, 2))
        for seed in range(seeds)
    }
    assert (tmp_path / "out" / "comparison.png").stat().st_size > 10_000
    assert "difference" in (shown := capsys.readouterr().out)
    assert "2.000 [-0.484, 4.484]" in shown  # the first run's mean and interval
    assert "+2.500" in shown  # the difference
    assert "the 60 frames before 600" in shown


def test_a_run_that_diverged_is_said_to_have(tmp_path, capsys):
    paths = [write_run(tmp_path / name, 1.0, 2) for name in "ab"]
    manifest_of_b = RunDirectory(tmp_path / "b").manifest
    manifest.Session(manifest_of_b, ()).record(
        manifest_of_b, diverged="the loss of update 2 is not"
    )
    compare.main([*paths, "--out", str(tmp_path / "out")])
    said = "b diverged: the loss of update 2 is not."
    assert said in " ".join(capsys.readouterr().out.split())
    report.main([paths[1]])
    assert said in (tmp_path / "b/report.html").read_text()


def test_the_picture_has_the_runs_own_names_and_only_panels_with_data(tmp_path, monkeypatch):
    pictures = []
    monkeypatch.setattr(figures, "save", lambda path, figure, **_: pictures.append(figure) or path)
    paths = [write_run(tmp_path / name, 1.0, 2) for name in ("none", "ride")]
    with open(tmp_path / "none/metrics.csv", "a") as file:
        file.write("0,1300,success,1\n1,1300,success,1\n")  # after the last frames compared
    compare.main([*paths, "--until", "1200", "--out", str(tmp_path / "out")])
    (figure,) = pictures
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["none", "ride"]
    assert [axis.get_title() for axis in figure.axes] == ["Unique interactions"]
    figure.canvas.draw()
    labels = [label.get_window_extent() for label in figure.axes[0].get_xticklabels()]
    assert all(left.x1 < right.x0 for left, right in pairwise(labels))


def test_what_cannot_be_compared_is_refused(tmp_path, capsys):
    one, other = write_run(tmp_path / "a", 1.0, 1), write_run(tmp_path / "x" / "a", 2.0, 1)
    (tmp_path / "empty").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "comparison.csv").touch()
    write_run(tmp_path / "policy", 1.0, 1)  # as a policy of the package is unpacked
    (tmp_path / "policy/metrics.csv").write_text(f"{HEADER}0,1200,interactions/Unlock,3\n")
    wrong = {
        "give two or more runs": [one],
        "--out is a folder of two files": [one, other, "--out", str(tmp_path / "a.png")],
        "two runs are called 'a'": [f"a={one}", f"a={other}"],
        "is given twice": [one, one],
        "lacks a name or a run": [one, f"={other}"],
        "'b=' lacks a name or a run": [one, "b="],
        "empty holds no run": [one, str(tmp_path / "empty")],
        "until must be in 1..1200": [one, f"b={other}", "--until", "1300"],
        "policy has no learning curves": [one, str(tmp_path / "policy")],
        "already exists": [one, f"b={other}", "--out", str(tmp_path / "out")],
    }
    for said, arguments in wrong.items():
        assert said in refused(compare.main, arguments, capsys)
    early = [one, f"b={other}", "--until", "50", "--out", str(tmp_path / "new")]
    assert "no run has metrics before 50 frames" in refused(compare.main, early, capsys)
    assert not (tmp_path / "new").exists()


def write_worlds(root, p, seeds=1, coefficient=None):
    """Write a run whose two worlds take turns: 1 and 9 interactions an episode."""
    train = PRESETS["smoke"].train
    counts = replace(train.counts, reset_probability=p)
    train = replace(train, counts=counts, intrinsic_coefficient=coefficient)
    settings = replace(PRESETS["smoke"], train=train, environments=("A", "B"))
    RunDirectory(root).create(settings)
    lines = [
        f"{seed},{at},{metric},{value}\n"
        for seed in range(seeds)
        for at in range(100, 1201, 100)
        for world, value in [("A", 1.0) if at % 300 else ("B", 9.0)]
        for metric in ("interactions", f"interactions/{world}", "intrinsic_reward")
    ]
    (root / "metrics.csv").write_text(HEADER + "".join(lines))
    return str(root)


def test_rewards_scaled_by_another_discount_are_not_compared(tmp_path, capsys):
    """The scale of `rnd-normalized` is of sums that `--loss.intrinsic-discount` discounts."""
    paths = [write_worlds(tmp_path / name, 0.01) for name in "ab"]
    other = RunDirectory(tmp_path / "b")
    settings = other.settings()
    loss = replace(settings.train.loss, intrinsic_discount=0.5)
    other.write_settings(replace(settings, train=replace(settings.train, loss=loss)))
    compare.main([*paths, "--out", str(tmp_path / "out")])
    assert "another scale" in capsys.readouterr().out


def test_it_says_why_rows_are_missing(tmp_path, capsys):
    one = write_worlds(tmp_path / "a", 0.01)
    other = write_worlds(tmp_path / "b", 0.01)
    table = tmp_path / "b" / "metrics.csv"
    lines = table.read_text().splitlines(keepends=True)
    table.write_text("".join(line for line in lines if "interactions" not in line))
    compare.main([one, other, "--out", str(tmp_path / "out")])
    assert "A run without a row does not play the world" in capsys.readouterr().out


def test_all_worlds_is_the_mean_of_the_worlds_own_means(tmp_path, capsys):
    one = write_worlds(tmp_path / "p=0.001", 0.001)
    other = write_worlds(tmp_path / "b", 0.01)
    compare.main([one, f"p=0.01={other}", "--out", str(tmp_path / "out")])
    shown = capsys.readouterr().out
    assert "train.counts.reset_probability: 0.001 | 0.01" in shown
    table = [line.split() for line in shown.splitlines()]
    begin = table.index(["Unique", "interactions"]) + 1
    assert table[begin] == ["all", "worlds", "p=0.001", "5.000", "one", "seed"]
    assert [row[0] for row in table[begin : begin + 6]] == ["all", "all", "A", "A", "B", "B"]
    assert "One seed each" in shown
    assert "[" not in shown  # no interval of one seed
    assert "another scale" in shown
    assert "A run without a row" not in shown
    found = values(tmp_path / "out")
    means = {
        world: found["p=0.01", "interactions", world, "0"] for world in ("A", "B", "all worlds")
    }
    assert means == {"A": 1, "B": 9, "all worlds": 5}


def test_rewards_of_another_weight_have_one_scale(tmp_path, capsys):
    one = write_worlds(tmp_path / "a", 0.01, seeds=2, coefficient=0.1)
    other = write_worlds(tmp_path / "b", 0.01, seeds=2, coefficient=1.0)
    compare.main([one, other, "--out", str(tmp_path / "out")])
    shown = capsys.readouterr().out
    assert "train.intrinsic_coefficient: 0.1 | 1.0" in shown
    assert "scale" not in shown


def test_a_seed_without_an_episode_in_a_world_has_no_value_there(tmp_path):
    """And seeds keep their numbers, whichever of them is first in a world."""
    RunDirectory(tmp_path / "a").create(PRESETS["smoke"])
    lines = [
        f"{seed},{at},{metric},{10 * seed}\n"
        for at in range(100, 1201, 100)
        for seed, world in [(2, "A"), (0, "A"), (1, "B"), (0, "B")]
        for metric in ("interactions", f"interactions/{world}")
        if not (seed == 0 and at == 100)
    ]
    (tmp_path / "a" / "metrics.csv").write_text(HEADER + "".join(lines))
    rows = runs.ends(runs.read([str(tmp_path / "a")]), 1200)
    assert {row.world: row.values for row in rows} == {
        "all worlds": {0: 0, 1: 10, 2: 20},
        "A": {0: 0, 2: 20},
        "B": {0: 0, 1: 10},
    }


@pytest.mark.parametrize("said", [0, -1, math.nan, math.inf, 10**400, "1234", True, None, [1]])
def test_a_speed_is_a_positive_finite_number_or_not_shown(said):
    assert runs.speed_of({"frames_per_second": said}) == 0
    assert runs.speed_of({"frames_per_second": 1234}) == 1234


def test_the_end_of_all_worlds_has_every_seed_even_if_a_world_ended_no_episode_of_late(tmp_path):
    RunDirectory(tmp_path).create(replace(PRESETS["smoke"], seeds=2))
    rows = [
        f"{seed},{at},interactions{world},{seed + 1}\n"
        for seed in range(2)
        for at in range(100, 1001, 100)
        for world in ("", "/a", "/b")
        if not (seed == 1 and world == "/b" and at > 800)
    ]
    (tmp_path / "metrics.csv").write_text(HEADER + "".join(rows))
    first, *_ = runs.ends(runs.read([str(tmp_path)]), 1000)
    assert (first.world, first.values) == ("all worlds", {0: 1.0, 1: 2.0})


def test_what_few_actors_have_finished_is_left_out(tmp_path, monkeypatch):
    """The first episodes to end are short ones: of curves, of comparisons and of pictures."""
    RunDirectory(tmp_path).create(PRESETS["smoke"])  # of eight actors
    rows = [f"0,{at},{name}\n" for at in (100, 200, 300) for name in ("success,1", "episodes,4")]
    (tmp_path / "metrics.csv").write_text(metrics_table.HEADER + "".join(rows))
    (run,) = runs.read([str(tmp_path)])
    assert run.metrics["success"][ALL_WORLDS][0].frames.tolist() == [200, 300]
    drawn = []
    draw = lambda table, folder, actors: drawn.append(actors) or []  # noqa: E731
    monkeypatch.setattr(figures, "draw_learning_curves", draw)
    endings.draw_figures(RunDirectory(tmp_path))
    assert drawn == [8]
