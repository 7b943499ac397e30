"""The paper's chain: what is learnt with each rule of forgetting, by hand and by the command."""

import csv

import pytest

from experiments import chainworld
from experiments.illustrations.chain import PLACES
from tests.support.refusal import refused

pytestmark = pytest.mark.slow  # test_chain.py checks the numbers by hand
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


def test_only_random_resets_let_every_policy_visit_all_places_alike(rows):
    """Episodic counts never lead to D, and without resets the rewards vanish."""
    for row in rows["at each episode's end"]:
        assert row["to_d"] < 0.02
        assert row["share_D"] < 0.02
        assert row["share_B"] + row["share_C"] > 0.95
    for row, never in zip(rows["at random, p = 0.01"], rows["never"], strict=True):
        outside = row["share_B"] + row["share_C"] + row["share_D"]
        for place in "BCD":
            assert row[f"share_{place}"] / outside == pytest.approx(1 / 3, abs=0.1)
        assert never["reward"] < row["reward"] / 50


def test_the_table_has_every_rule_and_seed_and_there_is_a_figure(folder, rows, capsys):
    rules = ("at each episode's end", "at random, p = 0.01", "never")
    assert {rule: len(found) for rule, found in rows.items()} == dict.fromkeys(rules, SEEDS)
    for found in rows.values():
        for row in found:
            assert sum(row[f"share_{place}"] for place in PLACES) == pytest.approx(1, abs=1e-4)
            assert row["share_A"] == pytest.approx(1 / 40, abs=1e-4)
    assert (folder / "chainworld.png").read_bytes().startswith(b"\x89PNG")
    assert "already exists" in refused(chainworld.main, ["--out", str(folder)], capsys)
