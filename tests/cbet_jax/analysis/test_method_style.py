"""Titles and colours of methods."""

import pytest

from cbet_jax.analysis.method_style import colors, title
from cbet_jax.intrinsic import METHODS
from experiments.evaluation.evaluation_table import UNIFORM, UNTRAINED
from experiments.study.variants import VARIANTS


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        *(("cbet", "C-BET"), ("cbet-no-resets", "C-BET no resets"), ("rnd", "RND")),
        *(("count tabula rasa", "Count tabula rasa"), ("ablation-sum-squared", "squared sum")),
        *(("runs/mine", "runs/mine"), ("my.py:make@1a2b3c4d", "my"), ("pkg.mod:make", "pkg.mod")),
        *(("my.py:other@1a2b3c4d", "my-other"), ("Unlock?max_steps=50", "Unlock-in-50")),
    ],
)
def test_methods_have_the_papers_titles(name, shown):
    assert title(name) == shown


def test_a_method_has_one_colour_and_its_variants_have_paler_ones():
    names = [*METHODS, *VARIANTS, UNTRAINED, UNIFORM]
    found = colors(names)
    assert colors(["count", "cbet"])["cbet"] == colors(["cbet", "rnd"])["cbet"]
    plain = [name for name in METHODS if not name.startswith("ablation")]
    assert len({found[name] for name in plain}) == len(plain)
    assert len({found[name] for name in ("cbet", "cbet-no-resets", "count", "count-resets")}) == 4
    for runs in (["cbet-1e-3", "cbet-1e-4", "cbet", "cbet-a-b-c"], ["float32", "cbet", "bfloat16"]):
        assert len(set(colors(runs).values())) == len(runs)


def test_no_two_names_have_one_colour_while_others_are_free():
    for names in (("product", "mine"), ("changes", "a", "b", "c")):
        assert len(set(colors(names).values())) == len(names)
