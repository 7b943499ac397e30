"""The parts of a compiled program, and the estimate of their time."""

import pytest

from experiments.benchmarks import gpu_targets, hlo
from experiments.benchmarks.gpu_program_analysis import ACTING, REFILL, UPDATE, analyse, open_places
from experiments.benchmarks.gpu_program_estimate import Rates, Seconds, rates_of
from tests.support.compiled_program import PROGRAM

RATES = Rates(
    launch=Seconds(1.0, 2.0),
    wait=Seconds(10.0, 20.0),
    memory=Seconds(100.0, 200.0),
    products=Seconds(1e6, 2e6),
)


@pytest.fixture(scope="module")
def parts():
    return {part.name: part for part in analyse(hlo.parse(PROGRAM), PROGRAM, RATES)}


def test_loops_are_named_after_the_functions_that_write_them(parts):
    assert {ACTING, REFILL, UPDATE} <= set(parts)


def test_a_turn_of_acting(parts):
    acting = parts[ACTING]
    turn = acting.turn
    assert acting.turns == 10
    assert (turn.launches, turn.chain, turn.products, turn.waits) == (4, 2, 1, 0)
    assert turn.read == 384 + 36 + 128 + 4
    assert turn.written == 128 + 32 + 128 + 4
    assert turn.turned == 68 + 256
    assert dict((at, n) for at, n, _ in acting.costly)["cbet_jax/rollout.py:100"] == 2


def test_a_launch_takes_what_its_slowest_need_takes(parts):
    # Bytes at 200 a second: 2.56, 0.34, 1.28, 0.04 seconds; a launch takes at least 1.
    assert parts[ACTING].seconds.low == pytest.approx(10 * (2.56 + 1 + 1.28 + 1))
    assert parts[ACTING].seconds.high == pytest.approx(10 * (5.12 + 2 + 2.56 + 2))


def test_the_host_waits_for_a_loop_of_unknown_length(parts):
    assert sum(part.turns * part.turn.waits for part in parts.values()) == 1
    assert open_places(hlo.parse(PROGRAM)) == ["envs/minigrid/pool.py:140"]


def test_an_update_outside_of_loops(parts):
    turn = parts[UPDATE].turn
    assert (turn.launches, turn.chain) == (2, 2)
    assert turn.turned == 4 + 32


def test_rates_come_from_the_description():
    h100, h200 = (rates_of(gpu_targets.describe(name)) for name in ("h100", "h200"))
    assert h100.products == h200.products
    assert h100.memory.high == pytest.approx(0.85 * 3.35e12)
    assert 300e12 < h200.products.low < h200.products.high < 989e12
    with pytest.raises(ValueError, match="memory_bandwidth"):
        rates_of("core_count: 1")
