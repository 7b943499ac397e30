"""Results of the chain: the rules, the shares of places, the table, the figure."""

import csv
import io
from dataclasses import replace

import jax
import numpy as np
import pytest
from rich.console import Console

from cbet_jax.analysis import figures
from experiments.illustrations import chain, chain_results
from experiments.illustrations.illustration_options import ChainworldOptions
from tests.support.moments import moment

OPTIONS = replace(
    ChainworldOptions(), episodes=10, steps=3, seeds=2, first_seed=5, reset_probabilities=(0.25,)
)
SHARES = (0.2, 0.4, 0.24, 0.16), (0.2, 0.4, 0.16, 0.24)  # of each seed's steps in A, B, C, D
RULES = ("at each episode's end", "at random, p = 0.25", "never")


@pytest.fixture(scope="module")
def learnt() -> chain.Learnt:
    """Two seeds with each of three rules; only the last two of ten episodes count at the end."""
    to_d = np.full((3, 2, 10), 0.9)
    to_d[..., -2:] = np.array([[0.0, 0.2], [0.3, 0.5], [0.6, 0.8]])[..., None]
    share = np.tile([0.0, 1.0, 0.0, 0.0], (3, 2, 10, 1))
    share[..., -2:, :] = np.array(SHARES)[:, None]
    return chain.Learnt(to_d, share, to_d / 2)


def test_counts_are_forgotten_as_the_rules_say():
    rules = chain_results.rules_of(OPTIONS)
    assert tuple(rule.name for rule in rules) == RULES
    step, key = moment([0, 0], ended=[True, False]), jax.random.key(0)
    random = jax.random.bernoulli(key, 0.25, (2, 2)).tolist()
    found = [chain.forgetting(*rule[1:]).mask(key, step, (2, 2)).tolist() for rule in rules]
    assert found == [[[True, False]] * 2, random, [[False, False]] * 2]


def test_the_table_has_the_last_fifth_of_the_episodes(learnt, tmp_path, monkeypatch):
    monkeypatch.setattr(chain_results, "draw", lambda path, *_: path)
    table, _ = chain_results.write(tmp_path, OPTIONS, learnt)
    rows = list(csv.DictReader(table.read_text().splitlines()))
    wanted = [(rule, str(seed)) for rule in RULES for seed in (5, 6)]
    assert [(row["forgotten"], row["seed"]) for row in rows] == wanted
    chances = [float(row["to_d"]) for row in rows]
    assert chances == pytest.approx([0.0, 0.2, 0.3, 0.5, 0.6, 0.8])
    assert [float(row["reward"]) for row in rows] == pytest.approx(np.array(chances) / 2)
    for row in rows:
        shares = [float(row[f"share_{place}"]) for place in chain.PLACES]
        assert shares == pytest.approx(SHARES[int(row["seed"]) - 5])


def test_the_shares_that_are_shown_are_of_the_steps_outside_of_a(learnt):
    shown = io.StringIO()
    chain_results.show(Console(file=shown, width=120), OPTIONS, learnt)
    # C-BET's 1/2, 1/2, 1/3 and 1/2, 1/3, 1/5, discounted
    assert "ABCBCB... 1.322, ADDDDD... 1.026" in shown.getvalue()
    for rule, chance, reward in zip(RULES, (0.1, 0.4, 0.7), (0.05, 0.2, 0.35), strict=True):
        (line,) = [line.strip() for line in shown.getvalue().splitlines() if rule in line]
        assert line.removeprefix(rule).split()[0] == f"{chance:.3f}"
        assert line.split()[-4:] == ["0.500", "0.250", "0.250", f"{reward:.2g}"]


def test_a_figure_shows_the_policies_and_the_places(learnt, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(figures, "save", lambda path, figure: drawn.append(figure) or path)
    chain_results.draw(tmp_path / "chain.png", OPTIONS, learnt)
    returns, policies, places = drawn[0].axes
    discounted = [np.array([0.5, 0.5, 1 / 3]), np.array([0.5, 1 / 3, 1 / 5])] * 0.99 ** np.arange(3)
    for line, rewards in zip(returns.lines, discounted, strict=True):
        np.testing.assert_allclose(line.get_ydata(), np.cumsum(rewards), rtol=1e-5)
    assert [line.get_label() for line in policies.lines] == list(RULES)
    for line, to_d in zip(policies.lines, learnt.to_d, strict=True):
        np.testing.assert_allclose(line.get_ydata(), to_d.mean(0))
    for errors, bars in zip(places.containers[::2], places.containers[1::2], strict=True):
        np.testing.assert_allclose([bar.get_height() for bar in bars], [0.5, 0.25, 0.25])
        (ends,) = errors.lines[2]
        # The interval of 0.3 and 0.2 is 0.25 +- 0.635, and no share is below 0.
        heights = [segment[:, 1] for segment in ends.get_segments()]
        np.testing.assert_allclose(heights, [(0.5, 0.5), (0, 0.885310), (0, 0.885310)], rtol=1e-5)
