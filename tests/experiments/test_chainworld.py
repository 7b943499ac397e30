"""The paper's chain: what is learnt with each rule of forgetting, by hand and by the command."""

import csv

import pytest

from experiments import chainworld
from experiments.illustrations.chain import PLACES
from tests.support.refusal import refused

SEEDS = 3
SMALL = ("--episodes", "250", "--steps", "40", "--actors", "16", "--seeds", str(SEEDS))
SMALL += ("--reset-probabilities", "0.01", "--learning-rate", "0.05")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("chain") / "out"
    chainworld.main([*SMALL, "--out", str(out)])
    return out


@pytest.fixture(scope="module")
def rows(folder) -> dict[str, list[dict[str, float]]]:
    """Return the table: rule -> one row a seed."""
    found: dict[str, list[dict[str, float]]] = {}
    for row in csv.DictReader((folder / "chainworld.csv").read_text().splitlines()):
        rule = row.pop("forgotten")
        found.setdefault(rule, []).append({name: float(value) for name, value in row.items()})
    return found


def test_with_episodic_counts_no_policy_goes_to_d(rows):
    for row in rows["at each episode's end"]:
        assert row["to_d"] < 0.02
        assert row["share_D"] < 0.02
        assert row["share_B"] + row["share_C"] > 0.95


def test_with_random_resets_every_policy_visits_all_places_alike(rows):
    for row in rows["at random, p = 0.01"]:
        outside = row["share_B"] + row["share_C"] + row["share_D"]
        for place in "BCD":
            assert row[f"share_{place}"] / outside == pytest.approx(1 / 3, abs=0.1)


def test_without_resets_the_rewards_vanish(rows):
    for never, at_random in zip(rows["never"], rows["at random, p = 0.01"], strict=True):
        assert never["reward"] < at_random["reward"] / 50


def test_the_table_has_every_rule_and_seed_and_there_is_a_figure(folder, rows, capsys):
    assert {rule: len(found) for rule, found in rows.items()} == {
        "at each episode's end": SEEDS,
        "at random, p = 0.01": SEEDS,
        "never": SEEDS,
    }
    for found in rows.values():
        for row in found:
            assert sum(row[f"share_{place}"] for place in PLACES) == pytest.approx(1, abs=1e-4)
            assert row["share_A"] == pytest.approx(1 / 40, abs=1e-4)
    assert (folder / "chainworld.png").read_bytes().startswith(b"\x89PNG")
    assert "already exists" in refused(chainworld.main, ["--out", str(folder)], capsys)


BAD_COMMAND_LINES = {
    "unknown method": (["--method", "rnd"], "known: cbet, count"),
    "one step": (["--steps", "1"], "steps must be at least 2"),
    "no seeds": (["--seeds", "0"], "seeds must be at least 1"),
    "negative seed": (["--first-seed", "-1"], "first_seed must be at least 0"),
    "no chance": (["--reset-probabilities", "0.1", "1.5"], "at most 1"),
    "no discount": (["--discount", "1"], "discount"),
    "no rate": (["--learning-rate", "0"], "learning_rate"),
}


@pytest.mark.parametrize("name", BAD_COMMAND_LINES)
def test_bad_command_lines_are_refused(name, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments, expected = BAD_COMMAND_LINES[name]
    assert expected in refused(chainworld.main, arguments, capsys)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_is_refused(tmp_path, capsys):
    (tmp_path / "file").write_text("text")
    out = str(tmp_path / "file" / "folder")
    error = refused(chainworld.main, ["--out", out], capsys, status=3)
    assert f"{out}: Not a directory" in error
