"""Joining the tables of several evaluations of walks."""

from pathlib import Path

import pytest

from cbet_jax.analysis.intervals import Estimate
from cbet_jax.config import SettingsError
from cbet_jax.runs.directory import RunDirectoryError
from experiments import habitat_evaluate
from experiments.evaluation import walk_table
from experiments.evaluation.joined_walks import join
from experiments.evaluation.walk_table import WalkConditions, WalkRow, with_means
from tests.support.refusal import refused

HEADER = ",".join(walk_table.HEADER)
PLAYED = WalkConditions("raycast", 500, False, {"cbet": 1000}, 7)


def row(policy: str, seed: int, scene: str, positions: float = 10.0) -> WalkRow:
    estimate = Estimate(positions, positions - 1, positions + 1)
    return WalkRow(policy, str(seed), scene, 100, estimate, 40.0)


def saved(path: Path, *rows: WalkRow, played: WalkConditions = PLAYED) -> Path:
    walk_table.save(path, with_means(rows), played, again=True)
    return path


def both_scenes(policy: str, seed: int, *positions: float) -> list[WalkRow]:
    return [
        row(policy, seed, scene, at)
        for scene, at in zip(("studio", "office"), positions, strict=True)
    ]


def test_tables_of_several_scenes_are_one(tmp_path):
    rows = [row("cbet", 0, scene) for scene in ("studio", "office")]
    assert join([saved(tmp_path / f"{one.scene}.csv", one) for one in rows])[0] == rows


@pytest.mark.parametrize(
    ("content", "why"),
    [("a,b\n1,2\n", "its columns are not policy,seed"), (f"{HEADER}\n1,2\n", "NoneType")],
)
def test_what_is_no_table_of_learnt_policies_is_refused(content, why, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(content)
    with pytest.raises(RunDirectoryError, match=f"{path} cannot be read: .*{why}"):
        join([path])
    saved(path, *both_scenes("uniform", 0, 5.0, 5.0))
    with pytest.raises(RunDirectoryError, match="no learnt policy"):
        join([path])


@pytest.fixture
def tables(tmp_path) -> list[Path]:
    random = both_scenes("uniform", 0, 5.0, 5.0)
    return [
        saved(tmp_path / "a.csv", *both_scenes("cbet", 0, 10.0, 20.0), *random),
        saved(tmp_path / "b.csv", *both_scenes("cbet", 1, 14.0, 28.0), *random),
    ]


def test_tables_of_several_seeds_are_one(tables):
    rows, played = join(tables)
    assert played == PLAYED
    policies = both_scenes("cbet", 0, 10.0, 20.0), both_scenes("cbet", 1, 14.0, 28.0)
    assert set(rows) == {*policies[0], *policies[1], *both_scenes("uniform", 0, 5.0, 5.0)}
    means = {(each.policy, each.scene, each.seed): each.positions for each in with_means(rows)}
    assert means["cbet", "all", "all"].value == 18.0
    assert means["cbet", "office", "all"].value == 24.0


def test_the_command_writes_one_table_and_its_bars(tables, tmp_path, capsys):
    out = tmp_path / "joined"
    habitat_evaluate.main(["--results", *map(str, tables), "--out", str(out)])
    assert "mean of all scenes" in capsys.readouterr().out
    assert {path.name for path in out.iterdir()} == {
        *("habitat-evaluation.csv", "habitat-evaluation.png")
    }
    assert set(join([out / "habitat-evaluation.csv"])[0]) == set(join(tables)[0])
    habitat_evaluate.main(["--results", *map(str, tables), "--out", str(out)])
    assert (out / "habitat-evaluation-2.csv").exists()  # nothing is overwritten
    both = ["runs/x", "--results", "x.csv", "--out", str(out)]
    assert "and no RUN" in refused(habitat_evaluate.main, both, capsys)
    part = [*both[1:], "--scenes", "studio"]
    assert "no other option" in refused(habitat_evaluate.main, part, capsys)


def test_what_does_not_belong_together_is_refused(tables, tmp_path):
    other, more = tmp_path / "other.csv", both_scenes("cbet", 2, 1.0, 2.0)
    for rows, played, what in (
        (both_scenes("cbet", 0, 10.0, 21.0), PLAYED, "other numbers of cbet, seed 0, in office"),
        (more[:1], PLAYED, "no table has cbet, seed 2, in office"),
        (more, PLAYED._replace(steps=9), "steps is 500, not 9"),
        (more, PLAYED._replace(frames={"cbet": 2000}), "frames.cbet is 1000, not 2000"),
        ([one._replace(episodes=10) for one in more], PLAYED, "10 to 100 episodes"),
    ):
        saved(other, *rows, played=played)
        with pytest.raises(SettingsError, match=what):
            join([*tables, other])
    saved(other, *both_scenes("rnd", 0, 1.0, 2.0), played=PLAYED._replace(frames={"rnd": 2000}))
    assert join([*tables, other])[1].frames == {"cbet": 1000, "rnd": 2000}
