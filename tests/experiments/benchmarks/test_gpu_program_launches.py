"""What a launch moves and computes, counted by hand."""

import pytest

from experiments.benchmarks import hlo
from experiments.benchmarks.gpu_program_launches import is_launch, launch
from tests.support.compiled_program import PROGRAM


@pytest.fixture(scope="module")
def launches():
    program = hlo.parse(PROGRAM)
    body = program.computations["acting_body"]
    return {each.name: launch(each, body, program) for each in body.instructions if is_launch(each)}


def test_what_is_launched(launches):
    assert list(launches) == ["gemm", "kept", "copy.1", "add.1"]


def test_a_product_reads_its_factors_once(launches):
    gemm = launches["gemm"]
    assert (gemm.read, gemm.written) == (2 * (4 * 16 + 16 * 8), 4 * 4 * 8)
    assert gemm.operations == 2 * 4 * 16 * 8
    assert gemm.is_product
    assert gemm.source == "cbet_jax/rollout.py:100"  # JAX's own line is passed over


def test_a_table_changed_in_place_is_not_moved(launches):
    kept = launches["kept"]
    assert kept.read == 4 + 4 * 8  # the index, and the row of the product
    assert kept.written == 4 * 8
    assert kept.is_move


def test_a_copy_is_a_move_and_a_sum_of_indices_is_not_a_product(launches):
    assert launches["copy.1"].is_move
    assert launches["copy.1"].moved == 2 * 2 * 4 * 16
    assert not launches["add.1"].is_product


def test_naming_memory_starts_nothing():
    entry = hlo.parse(PROGRAM).entry
    assert not is_launch(entry.named["spare"])
