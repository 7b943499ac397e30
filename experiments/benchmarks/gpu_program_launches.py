"""What one launch of a compiled GPU program moves and computes.

XLA's GPU programs are sequences of launches: fused kernels, copies, products, library calls. Here
is what can be read off their text: the bytes that each reads and writes, as if nothing were left in
a cache, and the operations of its products.
"""

from typing import NamedTuple

from experiments.benchmarks.hlo import CONTRACTED, Computation, Frame, Instruction, Program

#: instructions of a scheduled program that start nothing on the device
FREE = {"parameter", "constant", "get-tuple-element", "tuple", "bitcast", "while", "conditional"}
FREE |= {"call", "after-all", "partition-id", "replica-id", "opt-barrier", "add-dependency"}
DONE = ("-done", "-update")  # ends of what another instruction started
ONE_TO_ONE = {"bitcast", "reshape", "convert", "copy", "transpose", "negate"}
SLICES = {"dynamic-slice", "slice", "gather"}
IN_PLACE = {"dynamic-update-slice": 1, "scatter": 2}  # and which operand holds what is written
ALLOCATION = "AllocateBuffer"  # a custom call that only names memory
PRODUCT_CALLS = ("__cublas", "__cudnn", "gemm")
PACKAGES = ("/cbet_jax/", "/envs/", "/experiments/")


class Launch(NamedTuple):
    """One launch."""

    name: str
    is_product: bool
    is_move: bool  # it turns, copies, rounds or fills arrays: a better program might do without
    read: int  # bytes
    written: int  # bytes
    operations: float  # of its products
    source: str  # line of our source

    @property
    def moved(self) -> int:
        """Bytes read and written."""
        return self.read + self.written


def is_launch(instruction: Instruction) -> bool:
    """Return whether an instruction starts something on the device."""
    started = instruction.operation not in FREE and not instruction.operation.endswith(DONE)
    return started and instruction.target != ALLOCATION


def launch(instruction: Instruction, computation: Computation, program: Program) -> Launch:
    """Return what a launch moves and computes.

    Args:
        instruction: of the launch.
        computation: that it is in.
        program: that the computation is in.
    """
    fused = program.computations.get(instruction.calls or "")
    if fused:
        read = sum(_read(parameter.name, fused, program) for parameter in fused.parameters)
        written = sum(_written(each, fused) for each in _results(fused))
    else:
        sizes = {name: computation.named[name].bytes for name in instruction.operands}
        read, written = sum(sizes.values()), instruction.bytes
        if "output_to_operand_aliasing" in instruction.text:  # a table that is changed in place
            read, written = _outside(read, sizes, instruction), 0
    operations = _operations(instruction, computation, program)
    return Launch(
        name=instruction.name,
        is_product=operations > 0 or any(part in instruction.target for part in PRODUCT_CALLS),
        is_move=_is_move(instruction, fused),
        read=read,
        written=written,
        operations=operations,
        source=source_line(program.frames.get(instruction.frame, ())),
    )


def source_line(frames: tuple[Frame, ...]) -> str:
    """Return the innermost line that is in one of our packages, such as `cbet_jax/agent.py:12`."""
    for frame in frames:
        for package in PACKAGES:
            if package in frame.file and "site-packages" not in frame.file:
                return f"{package[1:]}{frame.file.rsplit(package, 1)[1]}:{frame.line}"
    return "?"


def _outside(read: int, sizes: dict[str, int], instruction: Instruction) -> int:
    """Return the bytes read of operands that are not as large as a result, which is in place."""
    results = [shape.bytes for shape in instruction.shapes]
    return sum(size for size in sizes.values() if size not in results) if results else read


def _results(fused: Computation) -> list[Instruction]:
    root = fused.root
    if root.operation != "tuple":
        return [root]
    return [fused.named[name] for name in root.operands]


def _written(result: Instruction, fused: Computation) -> int:
    """Return the bytes that a fusion writes for one of its results."""
    inner = result
    while inner.operation == "bitcast":
        inner = fused.named[inner.operands[0]]
    if inner.operation in IN_PLACE:
        return fused.named[inner.operands[IN_PLACE[inner.operation]]].bytes
    return result.bytes


def _read(name: str, fused: Computation, program: Program) -> int:
    """Return the bytes that a fusion reads of a parameter: where only parts are used, of those."""
    whole, parts = fused.named[name].bytes, 0
    for user in fused.users[name]:
        if user.operation in ONE_TO_ONE:
            scale = whole / max(user.bytes, 1)
            parts += int(_read(user.name, fused, program) * scale) if not user.is_root else whole
        elif user.operation in SLICES and user.operands[0] == name:
            parts += user.bytes
        elif user.operation in IN_PLACE and user.operands[0] == name:
            continue
        elif user.operation == "fusion" and user.calls in program.computations:
            inner = program.computations[user.calls]
            places = [i for i, operand in enumerate(user.operands) if operand == name]
            parts += sum(_read(inner.parameters[i].name, inner, program) for i in places)
        elif user.operation != "tuple":
            return whole
    return min(parts, whole)


def _is_move(instruction: Instruction, fused: Computation | None) -> bool:
    """Return whether a launch writes arrays in another order, or computes nothing."""
    if fused is None:
        return instruction.operation.startswith(("copy", "transpose", "broadcast", "memset"))
    if any(each.operation == "transpose" for each in fused.instructions):
        return not any(each.operation in ("dot", "reduce") for each in fused.instructions)
    moves = {*ONE_TO_ONE, *SLICES, *IN_PLACE, "broadcast", "pad", "concatenate", "reverse", "iota"}
    indices = {"add", "compare", "select", "subtract", "clamp", "and", "minimum", "maximum"}
    used = [each for each in fused.instructions if each.operation not in FREE]
    return any(each.operation in moves for each in used) and all(
        each.operation in moves or (each.operation in indices and each.shapes[0].elements == 1)
        for each in used
    )


def _operations(instruction: Instruction, computation: Computation, program: Program) -> float:
    """Return the floating-point operations of the products in a launch."""
    if instruction.operation == "dot":
        return _dot(instruction, computation)
    fused = program.computations.get(instruction.calls or "")
    if fused is None:
        return 0.0
    return sum(_operations(each, fused, program) for each in fused.instructions)


def _dot(instruction: Instruction, computation: Computation) -> float:
    left = computation.named[instruction.operands[0]].shapes[0]
    found = CONTRACTED.search(instruction.text)
    inner = 1
    for axis in found[1].split(",") if found and found[1] else ():
        inner *= left.sizes[int(axis)]
    return 2.0 * inner * instruction.shapes[0].elements
