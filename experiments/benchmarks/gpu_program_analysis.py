"""What each part of a compiled GPU program does: launches, bytes, products, waits for the host.

The parts are loops and what is between them, named after the functions of ours that write them.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from experiments.benchmarks.gpu_program_estimate import Rates, Seconds
from experiments.benchmarks.gpu_program_launches import Launch, is_launch, launch, source_line
from experiments.benchmarks.hlo import Computation, Instruction, Program
from experiments.benchmarks.kernels import host_calls

ACTING, REFILL, ROLLOUT = "acting", "refill", "rollout outside its loops"
FORWARD, BACKWARD, V_TRACE = "LSTM forward", "LSTM backward", "V-trace"
UPDATE, REST = "update outside its loops", "all else"
PARTS = (ACTING, ROLLOUT, REFILL, FORWARD, BACKWARD, V_TRACE, UPDATE, REST)
LOOP_PARTS = (ACTING, REFILL, FORWARD, BACKWARD, V_TRACE)
#: loops, by the function that writes them
LOOPS = {
    "rollout": ACTING,
    "_scan_on_gpu": ACTING,
    "_fill_in_turns": REFILL,
    "_fill_ring": REFILL,
    "_fill": REFILL,
    "_accumulate": V_TRACE,
    "vtrace": V_TRACE,
}
BETWEEN = {  # functions
    "_accumulate_in_parallel": V_TRACE,
    "refill": REFILL,
    "play": ROLLOUT,
    "learn": UPDATE,
}
BACKWARD_NAME = "transpose("  # in the names of operations that JAX differentiated
COSTLY_LINES = 5  # lines of source that are named in each part


class Turn(NamedTuple):
    """What one turn of a part does on average. Loops inside it count as often as they turn."""

    launches: float
    chain: float  # launches that wait for one another, at most
    products: float
    operations: float  # of products
    read: float  # bytes
    written: float  # bytes
    turned: float  # bytes of launches that only turn, fill, round or copy arrays
    waits: float  # at least so often the host may have to wait for the device


NOTHING = Turn(*[0.0] * len(Turn._fields))


@dataclass
class Part:
    """A part of a program."""

    name: str
    turns: int  # in an iteration; a loop of unknown length counts as one turn
    turn: Turn
    seconds: Seconds  # of all turns in an iteration
    costly: list[tuple[str, float, float]] = field(default_factory=list)  # line, launches, bytes

    def as_dict(self) -> dict[str, Any]:
        """Return plain numbers and lists."""
        return asdict(self) | {"turn": self.turn._asdict(), "seconds": self.seconds._asdict()}


class _Found(NamedTuple):
    """A launch, or a place where the host may wait."""

    part: str
    computation: str  # that it is in
    times: int  # in an iteration
    turns: int  # of its part, in an iteration
    launch: Launch | None  # None: a place where the host may wait
    kind: str  # type of its factors, of a product


def analyse(program: Program, text: str, rates: Rates) -> list[Part]:
    """Return the parts of a program, in the order of `PARTS`.

    Args:
        program: as read.
        text: that it was read from.
        rates: that its times are estimated with.
    """
    found = list(_walk(program, program.entry, REST, 1, None))
    found += [_Found(REST, program.entry.name, 1, 1, None, "") for _ in host_calls(text)]
    by_part = {name: [each for each in found if each.part == name] for name in PARTS}
    return [_part(name, mine, program, rates) for name, mine in by_part.items() if mine]


def _walk(
    program: Program, computation: Computation, part: str, times: int, turns: int | None
) -> Iterator[_Found]:
    """Yield what a computation and the loops in it launch.

    Args:
        program: that the computation is in.
        computation: to look through.
        part: that it belongs to.
        times: that it runs in an iteration.
        turns: of the loop that is its part, None outside of such a loop.
    """
    for each in computation.instructions:
        mine = part if turns else _between(program, each, part)
        found = _Found(mine, computation.name, times, turns or times, None, "")
        if each.operation == "while":
            if each.turns is None:  # the host reads at least once that the loop is over
                yield found
            own = None if turns else _loop_part(program, each)
            inner = times * (each.turns or 1)
            within = turns or (times if mine in LOOP_PARTS else None)  # turns of what it is in
            body = program.computations[each.body or ""]
            yield from _walk(program, body, own or mine, inner, inner if own else within)
        elif each.operation == "conditional":
            yield found
        elif is_launch(each):
            started = launch(each, computation, program)
            yield found._replace(launch=started, kind=_kind(each, program))


def _loop_part(program: Program, loop: Instruction) -> str | None:
    """Return the part that a loop is, None if it only holds parts."""
    frames = program.frames.get(loop.frame, ())
    if any("lstm" in frame.file.rsplit("/", 1)[-1] for frame in frames) or "lstm" in loop.op_name:
        return BACKWARD if BACKWARD_NAME in loop.op_name else FORWARD
    return next((LOOPS[frame.function] for frame in frames[:1] if frame.function in LOOPS), None)


def _between(program: Program, instruction: Instruction, part: str) -> str:
    """Return the part of an instruction outside of the loops that are parts."""
    frames = program.frames.get(instruction.frame, ())
    return next((BETWEEN[f.function] for f in frames if f.function in BETWEEN), part)


def _kind(instruction: Instruction, program: Program) -> str:
    """Return the type of the factors of a product, "" of anything else."""
    fused = program.computations.get(instruction.calls or "")
    for each in fused.instructions if fused else ():
        if each.operation == "dot":
            return fused.named[each.operands[0]].shapes[0].kind  # type: ignore[union-attr]
    return ""


def _part(name: str, found: Sequence[_Found], program: Program, rates: Rates) -> Part:
    times = {each.computation: each.times for each in found}
    loops = {each.computation: each.turns for each in found if each.times == each.turns}
    turns = sum(loops.values()) if name in LOOP_PARTS else max(loops.values())
    total, low, high = NOTHING, 0.0, 0.0
    lines: dict[str, Turn] = defaultdict(lambda: NOTHING)
    for each in found:
        share = each.times / turns
        started = each.launch
        does = _turn(started) if started else NOTHING._replace(waits=1.0)
        took = (
            rates.seconds(started.moved, started.operations, each.kind) if started else rates.wait
        )
        low, high = low + each.times * took.low, high + each.times * took.high
        total = _add(total, does, share)
        if started:
            lines[started.source] = _add(lines[started.source], does, share)
    chain = sum(
        longest_chain(program.computations[name]) * number / turns for name, number in times.items()
    )
    costly = sorted(lines.items(), key=lambda line: -_cost(rates, line[1]))[:COSTLY_LINES]
    return Part(
        name=name,
        turns=turns,
        turn=total._replace(chain=chain),
        seconds=Seconds(low, high),
        costly=[(line, does.launches, does.read + does.written) for line, does in costly],
    )


def _turn(started: Launch) -> Turn:
    return Turn(
        launches=1.0,
        chain=0.0,
        products=float(started.is_product),
        operations=started.operations,
        read=float(started.read),
        written=float(started.written),
        turned=float(started.moved * started.is_move),
        waits=0.0,
    )


def _add(total: Turn, does: Turn, share: float) -> Turn:
    return Turn(*(one + share * other for one, other in zip(total, does, strict=True)))


def _cost(rates: Rates, does: Turn) -> float:
    return does.launches * rates.launch.high + (does.read + does.written) / rates.memory.low


def longest_chain(computation: Computation) -> int:
    """Return how many launches of a computation wait for one another, at most."""
    depth: dict[str, int] = {}
    for each in computation.instructions:
        before = max((depth.get(name, 0) for name in each.operands), default=0)
        depth[each.name] = before + is_launch(each)
    return max(depth.values(), default=0)


def open_places(program: Program) -> list[str]:
    """Return the lines of source of loops whose length depends on numbers, and of conditionals."""
    return sorted(
        source_line(program.frames.get(each.frame, ()))
        for computation in program.computations.values()
        for each in computation.instructions
        if (each.operation == "while" and each.turns is None) or each.operation == "conditional"
    )
