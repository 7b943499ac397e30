"""Reading the text of compiled programs."""

import pytest

from experiments.benchmarks import hlo
from tests.support.compiled_program import PROGRAM


def test_instructions_are_read():
    program = hlo.parse(PROGRAM)
    assert program.entry.name == "main"
    loop = program.entry.named["play"]
    assert (loop.operation, loop.body, loop.turns) == ("while", "acting_body", 10)
    assert program.entry.named["refill"].turns is None
    body = program.computations["acting_body"]
    fusion = body.named["kept"]
    assert fusion.operands == ("table", "t", "gemm")
    assert fusion.calls == "written"
    assert fusion.shapes == (hlo.Shape("f32", (100, 8)),)
    assert body.root.operands == ("add.1", "kept", "copy.1", "w")
    parameters = program.computations["written"].parameters
    assert [each.name for each in parameters] == ["p0", "p1", "p2"]


@pytest.mark.parametrize(
    ("kind", "size"), [("f32", 4), ("bf16", 2), ("pred", 1), ("u8", 1), ("f8e4m3fn", 1), ("c64", 8)]
)
def test_numbers_have_a_size(kind, size):
    assert hlo.Shape(kind, (3, 5)).bytes == 15 * size


def test_a_frame_names_the_lines_that_called_it():
    frames = hlo.parse(PROGRAM).frames
    assert [(frame.function, frame.line) for frame in frames[4]] == [("inner", 9), ("rollout", 100)]
    assert [frame.function for frame in frames[3]] == ["learn"]


def test_another_text_is_refused():
    with pytest.raises(ValueError, match="no ENTRY"):
        hlo.parse("nothing")
