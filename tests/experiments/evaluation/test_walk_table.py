"""The table of walks: what its bars are called."""

import pytest

from cbet_jax.analysis.intervals import Estimate
from experiments.evaluation.walk_table import WalkRow, panels


@pytest.mark.parametrize(
    ("seeds", "names"),
    [((5,), ["cbet", "uniform"]), ((0, 1), ["cbet, seed 0", "cbet, seed 1", "uniform"])],
)
def test_only_several_seeds_of_a_policy_are_named(seeds, names) -> None:
    policies = [*(("cbet", seed) for seed in seeds), ("uniform", 0)]
    found = Estimate(2.0, 1.0, 3.0)
    table = [
        WalkRow(policy, str(seed), scene, 9, found, 30, 1.0)
        for scene in ("studio", "bedroom")
        for policy, seed in policies
    ]
    for bars in panels(table).values():
        assert list(bars) == names
        assert {len(each) for each in bars.values()} == {2}  # scenes
