"""Compiled programs as XLA prints them: computations, instructions, lines of source.

XLA's text has a line for each instruction. Only what the analysis of launches needs is read: names,
shapes, operands, the computations called, and the source that an instruction is from.
"""

import re
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

ITEM_BYTES = {"pred": 1, "token": 0, "opaque": 0}  # of types whose names hold no number of bits
ARRAY = re.compile(r"\b([a-z]\w*)\[([\d,]*)\]")
HEAD = re.compile(r"^(ENTRY )?%(\S+) \(.*\{$")
INSTRUCTION = re.compile(r"^\s+(ROOT )?%(\S+) = (.*)$")
OPERAND = re.compile(r"%([^\s,(){}]+)")
BODY = re.compile(r"body=%([^\s,(){}]+)")
CALLS = re.compile(r"calls=%([^\s,(){}]+)")
FRAME = re.compile(r"stack_frame_id=(\d+)")
TURNS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
TARGET = re.compile(r'custom_call_target="([^"]*)"')
PARAMETER = re.compile(r"^(\d+)\)")
FIELD = re.compile(r"(\w+)=(\d+)")
SOURCE = re.compile(r'op_name="([^"]*)"')
CONTRACTED = re.compile(r"lhs_contracting_dims=\{([\d,]*)\}")


class Shape(NamedTuple):
    """The type and size of one array."""

    kind: str  # such as f32
    sizes: tuple[int, ...]

    @property
    def elements(self) -> int:
        """How many numbers it has."""
        count = 1
        for size in self.sizes:
            count *= size
        return count

    @property
    def bytes(self) -> int:
        """How much memory it takes."""
        if self.kind in ITEM_BYTES:
            return self.elements * ITEM_BYTES[self.kind]
        bits = re.search(r"\d+", self.kind)
        return self.elements * int(bits[0]) // 8 if bits else 0


class Instruction(NamedTuple):
    """One instruction of a computation."""

    name: str
    operation: str  # such as fusion
    shapes: tuple[Shape, ...]  # of its result: one array, or those of a tuple
    operands: tuple[str, ...]
    text: str  # what follows its operands
    number: int = 0  # of a parameter
    is_root: bool = False

    @property
    def bytes(self) -> int:
        """Size of its result."""
        return sum(shape.bytes for shape in self.shapes)

    @property
    def calls(self) -> str | None:
        """The computation that a fusion consists of."""
        found = CALLS.search(self.text)
        return found[1] if found else None

    @property
    def body(self) -> str | None:
        """The body of a loop."""
        found = BODY.search(self.text)
        return found[1] if found else None

    @property
    def turns(self) -> int | None:
        """How often a loop turns, None if that depends on numbers."""
        found = TURNS.search(self.text)
        return int(found[1]) if found else None

    @property
    def target(self) -> str:
        """What a custom call calls."""
        found = TARGET.search(self.text)
        return found[1] if found else ""

    @property
    def op_name(self) -> str:
        """The path of JAX's operation that it is from."""
        found = SOURCE.search(self.text)
        return found[1] if found else ""

    @property
    def frame(self) -> int:
        """The number of the stack frame that it is from (0: not known)."""
        found = FRAME.search(self.text)
        return int(found[1]) if found else 0


class Computation:
    """A sequence of instructions in the order in which they run."""

    def __init__(self, name: str, instructions: list[Instruction]) -> None:
        """Keep the instructions, also by name."""
        self.name, self.instructions = name, instructions
        self.named = {each.name: each for each in instructions}

    @property
    def root(self) -> Instruction:
        """The instruction whose result is the computation's."""
        return next(each for each in reversed(self.instructions) if each.is_root)

    @cached_property
    def parameters(self) -> list[Instruction]:
        """The parameters in order."""
        found = [each for each in self.instructions if each.operation == "parameter"]
        return sorted(found, key=lambda each: each.number)

    @cached_property
    def users(self) -> dict[str, list[Instruction]]:
        """The instructions that read each instruction's result."""
        found: dict[str, list[Instruction]] = {each.name: [] for each in self.instructions}
        for each in self.instructions:
            for operand in dict.fromkeys(each.operands):
                if operand in found:
                    found[operand].append(each)
        return found


class Frame(NamedTuple):
    """A line of source, and the function that it is in."""

    file: str
    line: int
    function: str


class Program(NamedTuple):
    """A compiled program."""

    entry: Computation
    computations: dict[str, Computation]
    frames: dict[int, tuple[Frame, ...]]  # of each number: the innermost first


def parse(text: str) -> Program:
    """Read a compiled program.

    Args:
        text: as `jax.stages.Compiled.as_text` returns it.

    Raises:
        ValueError: the text holds no compiled program.
    """
    computations: dict[str, Computation] = {}
    entry, name = None, ""
    lines: list[str] = []
    for line in text.splitlines():
        if head := HEAD.match(line):
            name, lines = head[2], []
            entry = name if head[1] else entry
        elif line == "}" and name:
            computations[name] = Computation(name, list(map(_instruction, lines)))
            name = ""
        elif name:
            lines.append(line)
    if entry is None:
        raise ValueError("this is not a compiled program: it has no ENTRY computation")
    if entry not in computations:
        raise ValueError("the text of the compiled program is cut off")
    return Program(computations[entry], computations, _frames(text))


def _instruction(line: str) -> Instruction:
    found = INSTRUCTION.match(line)
    if not found:
        raise ValueError(f"not an instruction: {line.strip()[:80]}")
    rest = found[3]
    end = _closing(rest, 0) + 1 if rest.startswith("(") else rest.index(" ")
    shape, rest = rest[:end], rest[end:].lstrip()
    start = rest.index("(")
    stop = _closing(rest, start)
    inside, text = rest[start + 1 : stop], rest[stop + 1 :]
    operation = rest[:start]
    number = PARAMETER.match(rest[start + 1 :]) if operation == "parameter" else None
    return Instruction(
        name=found[2],
        operation=operation,
        shapes=tuple(
            Shape(kind, tuple(int(size) for size in sizes.split(",") if size))
            for kind, sizes in ARRAY.findall(shape)
        ),
        operands=() if operation in ("parameter", "constant") else tuple(OPERAND.findall(inside)),
        text=text,
        number=int(number[1]) if number else 0,
        is_root=bool(found[1]),
    )


def _closing(text: str, start: int) -> int:
    """Return the position of the parenthesis that closes the one at `start`."""
    depth = 0
    for position in range(start, len(text)):
        depth += (text[position] == "(") - (text[position] == ")")
        if depth == 0:
            return position
    raise ValueError(f"not an instruction: {text[:80]}")


def _frames(text: str) -> dict[int, tuple[Frame, ...]]:
    """Return the lines of source of each stack frame, the innermost first."""
    files, functions = (_names(text, name) for name in ("FileNames", "FunctionNames"))
    places = {
        key: Frame(
            files.get(fields.get("file_name_id", 0), "?"),
            fields.get("line", 0),
            functions.get(fields.get("function_name_id", 0), "?"),
        )
        for key, fields in _numbers(text, "FileLocations")
    }
    links = dict(_numbers(text, "StackFrames"))
    return {key: tuple(_stack(links, places, key)) for key in links}


def _stack(links: dict[int, dict[str, int]], places: dict[int, Frame], key: int) -> Iterator[Frame]:
    while key in links:
        yield places[links[key]["file_location_id"]]
        parent = links[key].get("parent_frame_id", 1) - 1  # XLA adds 1, so that 1 is none
        if parent >= key:
            return
        key = parent


def _names(text: str, table: str) -> dict[int, str]:
    return {key: line.strip('"') for key, line in _table(text, table)}


def _numbers(text: str, table: str) -> Iterator[tuple[int, dict[str, int]]]:
    for key, line in _table(text, table):
        yield key, {name: int(number) for name, number in FIELD.findall(line)}


def _table(text: str, name: str) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines that follow a heading."""
    start = text.find(f"\n{name}\n")
    if start < 0:
        return
    for line in text[start + len(name) + 2 :].splitlines():
        number, _, rest = line.partition(" ")
        if not number.isdigit():
            return
        yield int(number), rest
