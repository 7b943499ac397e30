"""Bounds of what a GPU does in a step of acting and of learning, read off the compiled program."""

import importlib.util
from dataclasses import replace

import pytest

from experiments.common.presets import PRESETS
from tests.support.gpu_program import compile_training, loops

LAPTOP, SEEDS = PRESETS["laptop"], 7
UPDATES = LAPTOP.train.worlds // LAPTOP.train.batch
MOST = {"acting": (78, 24e6), "learning": (520, 740e6)}  # launches and bytes of a step


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("jax_cuda13_plugin") is None, reason="needs jax-cuda13-plugin"
)
def test_a_compiled_program_stays_within_bounds():
    network = replace(LAPTOP.train.network, factors="bfloat16")
    settings = replace(LAPTOP.train, network=network)
    text = compile_training(settings, LAPTOP.environments, SEEDS)
    turns = {"acting": settings.unroll, "learning": UPDATES}
    for part, (launches, moved) in MOST.items():
        found = [loop for loop in loops(text) if loop.turns == turns[part]]
        if part == "learning":  # acting is two loops: playing, then counting
            found = [max(found, key=lambda loop: loop.launches)]
        assert sum(loop.launches for loop in found) <= launches
        assert sum(loop.bytes for loop in found) <= moved
    assert not any(call in text for call in ("infeed(", "outfeed(", "callback"))
