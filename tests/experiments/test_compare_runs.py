"""Comparing the curves of runs: the numbers, the picture, what is refused."""

import csv

from cbet_jax.runs.metrics_table import HEADER
from experiments import compare_runs
from tests.support.refusal import refused


def write_run(root, level, seeds, frames=1200):
    """Write the metrics of seeds whose curve is flat but for each seed's own offset."""
    root.mkdir(parents=True)
    lines = [
        f"{seed},{at},{metric},{level + seed}\n"
        for seed in range(seeds)
        for at in range(100, frames + 1, 100)
        for metric in ("interactions", "policy_loss")
    ]
    (root / "metrics.csv").write_text(HEADER + "".join(lines))
    return str(root)


def test_runs_are_compared_at_the_frames_that_all_have_played(tmp_path, capsys):
    one, other = write_run(tmp_path / "a", 1.0, 3), write_run(tmp_path / "b", 4.0, 2, frames=600)
    compare_runs.main([f"old={one}", other, "--out", str(tmp_path / "out")])
    with open(tmp_path / "out" / "comparison.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["run"] for row in rows} == {"old", "b"}
    assert {row["metric"] for row in rows} == {"interactions"}
    assert max(int(row["frames"]) for row in rows) == 600
    assert all(
        float(row["value"]) == int(row["seed"]) + (1 if row["run"] == "old" else 4) for row in rows
    )
    assert (tmp_path / "out" / "comparison.png").stat().st_size > 10_000
    assert "less old" in (shown := capsys.readouterr().out)
    assert "2.000 [-0.484, 4.484]" in shown  # the first run's mean and interval
    assert "2.500" in shown  # the difference


def test_what_cannot_be_compared_is_refused(tmp_path, capsys):
    one, other = write_run(tmp_path / "a", 1.0, 1), write_run(tmp_path / "x" / "a", 2.0, 1)
    (tmp_path / "empty").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "comparison.csv").touch()
    wrong = {
        "give two or more runs": [one],
        "two runs are called 'a'": [one, other],
        "holds no run (no metrics.csv)": [one, str(tmp_path / "empty")],
        "until must be in 60..1200": [one, f"b={other}", "--until", "1300"],
        "already exists": [one, f"b={other}", "--out", str(tmp_path / "out")],
    }
    for said, arguments in wrong.items():
        assert said in refused(compare_runs.main, arguments, capsys)
