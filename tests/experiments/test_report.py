"""The page about runs: what is in it, and how a browser shows it."""

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from cbet_jax.analysis.intervals import Estimate
from cbet_jax.runs.atomic_write import write_json
from cbet_jax.runs.directory import RunDirectory, path_at
from cbet_jax.runs.metrics_table import HEADER
from envs.names import ACTIONS
from experiments import report
from experiments.common import presets
from experiments.common.presets import HABITAT_PRESETS, PRESETS
from experiments.evaluation import evaluation_table, walk_table
from experiments.evaluation.walk_table import WalkConditions, WalkRow
from experiments.reports import page, run_page, runs
from tests.support import browser
from tests.support.refusal import refused

BROWSER = pytest.mark.skipif(browser.CHROMIUM is None, reason="Chromium is not installed")


def write_run(root, seeds=2, rate=1e-4) -> str:
    """Write a run that has curves, an evaluation, a film and a manifest."""
    train = PRESETS["smoke"].train
    train = replace(train, optimizer=replace(train.optimizer, learning_rate=rate))
    settings = replace(PRESETS["smoke"], train=train, environments=("Unlock",), seeds=seeds)
    directory = RunDirectory(root)
    directory.create(settings)
    lines = [
        f"{seed},{at},{name},{at / 1000 + seed}\n"
        for seed in range(seeds)
        for at in range(1000, 9000, 1000)
        for name in ("interactions", "interactions/Unlock", "success", "entropy")
    ]
    directory.metrics.write_text(HEADER + "".join(lines))
    session = {"frames": 8000, "frames_per_second": 1234, "packages": {"jax": "0.0"}}
    write_json(directory.manifest, {"sessions": [session]})
    columns = evaluation_table.header(ACTIONS)
    header = ",".join(columns)
    values = {name: "0.5" for name in columns}
    values |= {"method": "cbet", "seed": "all", "environment": "Unlock", "episodes": "200"}
    values |= {"checkpoint_frames": "8000"}
    of_run = {"unique_interactions": "7.25", "unique_interactions_low": "6.5"}
    of_run |= {"unique_interactions_high": "8"}
    rows = [
        ",".join((values | policy | {"environment": world})[name] for name in columns)
        for world in ("Unlock", "all")
        for policy in (of_run, {"method": "uniform", "seed": "0"})
    ]
    (root / "evaluation.csv").write_text("\n".join([header, *rows, ""]))
    Image.new("RGB", (40, 30)).save(root / "watch-Unlock.gif")
    return str(root)


@pytest.fixture
def written(tmp_path):
    """The page about one run."""
    run = write_run(tmp_path / "<one>")
    report.main([run])
    return tmp_path / "<one>" / "report.html"


def test_one_file_holds_all_about_a_run(written):
    text = written.read_text()
    assert not re.findall(r'(?:src|href)="(?!data:)', text)
    assert "&lt;one&gt;" in text
    assert "<one>" not in text
    assert 'src="data:image/gif;base64,' in text
    assert "<p>200 episodes of each seed in each world, means of its seeds, with 95 %" in text
    rows = "<th>C-BET</th><th>uniformly random</th></tr></thead><tbody><tr><td>all worlds</td>"
    rows += (
        "<td>7.25 [6.50, 8.00]</td><td>0.50</td></tr><tr><td>Unlock</td><td>7.25 [6.50, 8.00]</td>"
    )
    assert f"<th>unique interactions</th>{rows}" in text
    assert "<td>1,234</td>" in text
    assert "<td>train.worlds</td><td>8</td><td>40</td>" in text  # beside the published setting
    assert "<td>explore</td>" not in text
    charts = [json.loads(chart) for chart in re.findall(f"{page.CHART}(.*?)</script>", text)]
    assert charts[0]["title"] == "Unique interactions"
    line = charts[0]["lines"][0]
    assert line["y"] == [1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5]
    assert line["low"][0] == 1
    assert line["high"][-1] == 9


def test_several_runs_are_beside_each_other(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    one, other = write_run(tmp_path / "a"), write_run(tmp_path / "b", seeds=1, rate=1e-3)
    report.main([one, other])
    assert "runs/report.html" in capsys.readouterr().out
    text = (tmp_path / "runs" / "report.html").read_text()
    assert "<td>train.optimizer.learning_rate</td><td>0.0001</td><td>0.001</td>" in text
    assert "<td>train.worlds</td>" not in text
    assert "<td>all worlds</td><td>a</td><td>8.500 [2.147, 14.853]</td><td></td>" in text
    assert "<td>all worlds</td><td>b</td><td>8.000 one seed</td><td>-0.500 one seed</td>" in text
    report.main([one, other])
    assert (tmp_path / "runs" / "report-2.html").exists()


def test_runs_of_one_name_are_columns_of_their_own(tmp_path):
    one, other = (
        write_run(tmp_path / setup / "published", seeds=seeds)
        for setup, seeds in (("A", 2), ("B", 1))
    )
    report.main([one, other, "--out", str(tmp_path / "x.html")])
    text = (tmp_path / "x.html").read_text()
    assert "<td>seeds</td><td>2</td><td>1</td>" in text
    charts = [json.loads(chart) for chart in re.findall(f"{page.CHART}(.*?)</script>", text)]
    assert [line["name"] for line in charts[0]["lines"]] == ["A/published", "B/published"]
    RunDirectory(Path(one)).metrics.write_text(f"{HEADER}0,1200,success/Unlock,0.25\n")
    report.main([one])  # as a policy of the package, in a folder of that name
    text = (tmp_path / "A" / "published" / "report.html").read_text()
    assert "<td>train.worlds</td><td>8</td><td>40</td>" in text
    assert "<td>Unlock</td><td>published</td><td>0.250 one seed</td>" in text


def test_what_is_unfinished_or_not_measured_is_left_out(tmp_path):
    """A film that is being drawn; what another library's environment does not say; speeds."""
    run = RunDirectory(Path(write_run(tmp_path / "a")))
    sessions = json.loads(run.manifest.read_text())["sessions"]
    write_json(run.manifest, {"sessions": [*sessions, {"packages": {"jax": "0.0"}}]})
    (run.root / "evaluation-notes.csv").write_text("mine\n1\n")
    report.main([str(run.root), "--out", str(tmp_path / "x.html")])
    assert "<td>frames of each seed</td><td>8,000</td>" in (tmp_path / "x.html").read_text()
    (run.root / ".watch-Unlock.0a1b.tmp.gif").touch()
    table = run.root / "evaluation.csv"
    table.write_text(table.read_text().replace("7.25,6.5,8", ",,"))
    run.manifest.unlink()
    run.checkpoints.mkdir()
    path_at(run.checkpoints, 7_000).mkdir()
    report.main([str(run.root)])
    text = (run.root / "report.html").read_text()
    assert 'alt="watch-Unlock"' in text
    assert ".tmp" not in text
    assert [name for name in evaluation_table.MEASURES if name.replace("_", " ") in text] == [
        *("success_rate", "extrinsic_return", "episode_length")
    ]
    assert "<td>frames of each seed</td><td>7,000 of 8,000</td>" in text
    assert "<td>frames/s of all seeds</td><td></td>" in text


def test_of_several_seeds_the_mean_is_shown(tmp_path):
    """Its row follows theirs."""
    run = Path(write_run(tmp_path / "a"))
    header, *rows = (run / "evaluation.csv").read_text().splitlines()
    single = [
        row.replace(",all,", f",{seed},", 1).replace("7.25", "1.5")
        for row in rows[::2]
        for seed in (0, 1)
    ]
    (run / "evaluation.csv").write_text("\n".join([header, *single, *rows, ""]))
    report.main([str(run)])
    text = (run / "report.html").read_text()
    assert "<td>7.25 [6.50, 8.00]</td>" in text
    assert "1.50 [" not in text


def test_a_run_without_an_intrinsic_reward_has_no_curve_of_it(tmp_path):
    settings = PRESETS["smoke"]
    train = replace(settings.train, method="none", extrinsic_weight=1.0)
    run = RunDirectory(tmp_path)
    run.create(replace(settings, train=train, explore=False))
    names = ("success", "intrinsic_reward")
    lines = [f"0,{at},{name},0\n" for at in (1000, 2000) for name in names]
    run.metrics.write_text(HEADER + "".join(lines))
    report.main([str(tmp_path)])
    text = (tmp_path / "report.html").read_text()
    assert "Episodes with success" in text
    assert "Intrinsic reward" not in text


def test_walks_in_rooms_are_shown(tmp_path):
    run = RunDirectory(tmp_path / "a")
    run.create(HABITAT_PRESETS["smoke"])
    run.metrics.write_text(HEADER + "0,500,positions,3\n")
    walk = WalkRow("cbet", "0", "studio", 9, Estimate(4.0, 3.0, 5.0), 30)
    conditions = WalkConditions("raycast", 100, False, {"cbet": 1000}, 0)
    walk_table.save(run.root / "habitat-evaluation.csv", [walk], conditions)
    report.main([str(run.root)])
    text = (run.root / "report.html").read_text()
    assert "Evaluation of a after 1,000 frames" in text
    assert "<p>9 episodes of each seed in each scene, with 95 % intervals.</p>" in text
    assert "<th>C-BET</th></tr></thead><tbody><tr><td>studio</td><td>4.00 [3.00, 5.00]</td>" in text


def test_what_cannot_be_reported_is_refused(tmp_path, capsys):
    run = write_run(tmp_path / "a")
    assert "give runs, a study" in refused(report.main, [], capsys)
    assert "holds no run" in refused(report.main, [str(tmp_path)], capsys)
    assert ".html" in refused(report.main, [run, "--out", str(tmp_path / "x.pdf")], capsys)
    (tmp_path / "x.html").touch()
    assert "already exists" in refused(
        report.main, [run, "--out", str(tmp_path / "x.html")], capsys
    )


STRANGE = {  # what a stranger's run has -> what is said of it
    "a pipe for a film": (lambda run: os.mkfifo(run / "x.gif"), "x.gif cannot be read: it is no"),
    "a film from outside": (lambda run: (run / "x.gif").symlink_to("/etc/hostname"), "leads out"),
    "a pipe for a table": (lambda run: os.mkfifo(run / "evaluation-9.csv"), "no ordinary file"),
    "a long cell": (
        lambda run: (run / "evaluation.csv").write_text("a\n" + "x" * 131_073),
        "field larger than field limit",
    ),
    "a table of two columns": (
        lambda run: (run / "evaluation.csv").write_text("episodes,checkpoint_frames\n3,5\n"),
        "evaluation.csv cannot be read: not enough values",
    ),
    **{
        f"a manifest of {content}": (
            lambda run, content=content: (run / "manifest.json").write_text(content),
            f"manifest.json cannot be read: {said}",
        )
        for content, said in {
            '{"sessions": [5]}': "",
            '{"sessions": [{"frames": "1200"}]}': "frames is no number",
            '{"sessions": [], "digest": "0"}': "it was changed since it was written",
        }.items()
    },
}


@pytest.mark.parametrize("what", STRANGE)
def test_a_strangers_run_is_refused_in_one_line(what, tmp_path, capsys):
    change, said = STRANGE[what]
    run = Path(write_run(tmp_path / "a"))
    change(run)
    for path in run.glob("x.gif"), run.glob("evaluation-9.csv"):
        for each in path:  # is the newest
            os.utime(each, (2**32, 2**32), follow_symlinks=False)
    assert said in refused(report.main, [str(run)], capsys, status=3)
    assert not list(run.glob("*.html"))


def test_of_two_reports_at_once_each_has_a_page_of_its_own(tmp_path, capsys, monkeypatch):
    run = Path(write_run(tmp_path / "\x1b[31m\udcff"))
    body = run_page.body

    def slow(*arguments):
        monkeypatch.setattr(run_page, "body", body)
        report.main([str(run)])  # of another process
        return body(*arguments)

    monkeypatch.setattr(run_page, "body", slow)
    report.main([str(run)])
    said = capsys.readouterr().out.splitlines()
    assert [line.rpartition("/")[2] for line in said] == ["report.html", "report-2.html"]
    assert all("/\\x1b[31m\\xdcff/" in line for line in said)
    assert "<h1>Report: \\x1b[31m\\xdcff</h1>" in (run / "report-2.html").read_text()


@BROWSER
@pytest.mark.parametrize(
    ("width", "prefers"), [(400, browser.LIGHT), (1600, browser.LIGHT), (1600, browser.DARK)]
)
def test_a_browser_shows_the_page(written, tmp_path, width, prefers):
    shown = browser.show(written, tmp_path, width, prefers)
    assert not shown.console
    assert shown.dom.count("<svg") == 3
    assert shown.dom.count("<polyline") == 3
    assert shown.overflow <= 0
    assert shown.smallest >= 12
    assert (shown.background < 0.2) == (prefers == browser.DARK)
    assert (shown.background > 0.8) == (prefers == browser.LIGHT)


@BROWSER
@pytest.mark.parametrize(
    ("column", "clicks", "order"),
    [
        (1, 1, ["Count", "RND", "C-BET", "RIDE"]),
        (1, 2, ["C-BET", "RND", "Count", "RIDE"]),
        (0, 1, ["C-BET", "Count", "RIDE", "RND"]),
    ],
)
def test_a_table_is_sorted_by_the_column_that_is_clicked(tmp_path, column, clicks, order):
    rows = ("RND", "7.30"), ("C-BET", "-2 [-3, -1]"), ("RIDE", "not run"), ("Count", "33,024")
    path = page.write(tmp_path / "report.html", "Study", page.table(("method", "ours"), rows))
    click = f"<script>for (let i = 0; i < {clicks}; i++)"
    click += f' document.querySelectorAll("th")[{column}].click();</script></body>'
    path.write_text(path.read_text().replace("</body>", click))
    shown = browser.show(path, tmp_path, 400)
    assert not shown.console
    assert re.findall(r"<tr>\s*<td>([\w-]+)", shown.dom) == order


def test_pictures_in_a_folder_with_a_colon_are_inside(tmp_path):
    (tmp_path / "a:b").mkdir()
    Image.new("RGB", (4, 3)).save(tmp_path / "a:b" / "watch.gif")
    path = page.write(tmp_path / "x.html", "Title", page.picture("a:b/watch.gif", "watch"))
    assert 'src="data:image/gif;base64,' in path.read_text()


@pytest.mark.parametrize("env", ["Unlock", "MultiRoom-N6?max_steps=40"])
def test_a_task_as_published_differs_in_nothing(env, tmp_path):
    settings = presets.published(replace(PRESETS["paper"], explore=False, environments=(env,)))
    assert settings.train == presets.for_task("paper", env)
    assert settings.train.frames < PRESETS["paper"].train.frames
    directory = RunDirectory(tmp_path)
    directory.create(settings)
    directory.metrics.write_text(f"{HEADER}0,1000,success,0.5\n")
    (run,) = runs.read([str(tmp_path)])
    assert run_page.differing([run]) == "<p>None.</p>"
