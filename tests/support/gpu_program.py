"""Training compiled for an NVIDIA H200 that need not be there, and what each loop of it costs.

XLA's GPU programs are sequences of launches: fused kernels, copies, products, library calls. Their
text tells the bytes that each reads and writes, as if nothing were left in a cache. It needs
`jax-cuda13-plugin` of JAX's version beside JAX, and no driver.
"""

import math
import os
import re
from functools import cached_property
from typing import Any, NamedTuple
from unittest.mock import patch

import jax
from jax.experimental import topologies
from jax.sharding import SingleDeviceSharding

from cbet_jax.config import TrainSettings
from cbet_jax.program import make_program, seed_keys
from envs.minigrid import make_world

# A `GpuTargetConfigProto` of XLA as text. NVIDIA's data sheet and the CUDA programming guide give
# the numbers of compute capability 9.0.
H200 = """
gpu_device_info {
  name: "NVIDIA H200" model_str: "NVIDIA H200" platform_version: "Compute Capability 9.0a"
  cuda_compute_capability { major: 9 feature_extension: ACCELERATED_FEATURES }
  core_count: 132 fpus_per_core: 128 clock_rate_ghz: 1.98
  device_memory_size: 151397597184 memory_bandwidth: 4800000000000 l2_cache_size: 52428800
  pcie_bandwidth: 34359738368 ecc_enabled: true device_address_bits: 64
  shared_memory_per_core: 233472 shared_memory_per_block: 49152
  shared_memory_per_block_optin: 232448 registers_per_core_limit: 65536
  registers_per_block_limit: 65536
  threads_per_warp: 32 threads_per_block_limit: 1024 threads_per_core_limit: 2048
  thread_dim_limit_x: 1024 thread_dim_limit_y: 1024 thread_dim_limit_z: 64
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  driver_version: "13.0.0" runtime_version: "13.0.0" compile_time_toolkit_version: "13.0.0"
  dnn_version: "9.20.0" device_interconnect_info { active_links: 18 }
}
platform_name: "CUDA" dnn_version_info { major: 9 minor: 20 }
device_description_str: "NVIDIA H200"
"""

ARRAY = re.compile(r"\b([a-z]\w*)\[([\d,]*)\]")
HEAD = re.compile(r"^(ENTRY )?%(\S+) \(.*\{$")
INSTRUCTION = re.compile(r"^\s+(ROOT )?%(\S+) = (.*)$")
OPERAND = re.compile(r"%([^\s,(){}]+)")
ATTRIBUTE = r"{}=%([^\s,(){{}}]+)"
TURNS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
SOURCE = re.compile(r'op_name="([^"]*)"')

#: instructions that start nothing on the device
FREE = {"parameter", "constant", "get-tuple-element", "tuple", "bitcast", "while", "conditional"}
FREE |= {"call", "after-all", "partition-id", "replica-id", "opt-barrier", "add-dependency"}
DONE = ("-done", "-update")  # ends of what another instruction started
ONE_TO_ONE = {"bitcast", "reshape", "convert", "copy", "transpose", "negate"}
SLICES = {"dynamic-slice", "slice", "gather"}
IN_PLACE = {"dynamic-update-slice": 1, "scatter": 2}  # and the operand that holds what is written


class Loop(NamedTuple):
    """A loop of a program, and what one turn of it costs with the loops inside."""

    source: str  # the path of JAX's operation that it comes from
    turns: int | None  # None where numbers decide
    launches: int
    bytes: int  # read and written


class Instruction(NamedTuple):
    """One instruction of a computation."""

    name: str
    operation: str  # such as fusion
    sizes: tuple[int, ...]  # bytes of its result: one array, or those of a tuple
    operands: tuple[str, ...]
    text: str  # the line
    is_root: bool

    @property
    def bytes(self) -> int:
        """Size of its result."""
        return sum(self.sizes)

    def attribute(self, name: str) -> str:
        """Return the computation that the instruction has as its `body` or `calls`, if any."""
        found = re.search(ATTRIBUTE.format(name), self.text)
        return found[1] if found else ""


class Computation:
    """A sequence of instructions in the order in which they run."""

    def __init__(self, instructions: list[Instruction]) -> None:
        self.named = {each.name: each for each in instructions}

    @cached_property
    def parameters(self) -> list[Instruction]:
        """The parameters in order."""
        found = [each for each in self.named.values() if each.operation == "parameter"]
        return sorted(found, key=lambda each: int(each.text.split(" parameter(")[1].split(")")[0]))


Computations = dict[str, Computation]


def compile_training(settings: TrainSettings, environments: tuple[str, ...], seeds: int) -> str:
    """Return the compiled iteration of training for a GPU, as text."""
    os.environ.setdefault("JAX_SKIP_CUDA_CONSTRAINTS_CHECK", "1")  # cuDNN is not used
    topology = topologies.get_topology_desc(
        topology_name="gpu", platform="cuda", topology="1x1x1", target_config=H200
    )
    device = SingleDeviceSharding(topology.devices[0])
    with patch.object(jax, "default_backend", lambda: "gpu"):
        world = make_world(environments, settings.worlds, explore=True)
        program: Any = make_program(settings, world, seeds, iterations_per_chunk=1)
        state = jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=device),
            jax.eval_shape(program.init, seed_keys(seeds)),
        )
        lowered = program.advance.trace(state).lower(lowering_platforms=("cuda",))
    return str(lowered.compile().as_text())


def loops(text: str) -> list[Loop]:
    """Return all loops of a program."""
    computations = _parse(text)
    found = (each for one in computations.values() for each in one.named.values())
    return [
        Loop(
            (SOURCE.search(each.text) or ["", ""])[1],
            _turns(each),
            *_cost(each.attribute("body"), computations),
        )
        for each in found
        if each.operation == "while"
    ]


def _turns(loop: Instruction) -> int | None:
    found = TURNS.search(loop.text)
    return int(found[1]) if found else None


def _cost(name: str, computations: Computations) -> tuple[int, int]:
    """Return the launches and bytes of a computation with its loops."""
    launches = moved = 0
    for each in computations[name].named.values():
        if each.operation == "while":
            inner = _cost(each.attribute("body"), computations)
            launches += (_turns(each) or 1) * inner[0]
            moved += (_turns(each) or 1) * inner[1]
        elif _is_launch(each):
            launches += 1
            moved += _moved(each, computations[name], computations)
    return launches, moved


def _is_launch(instruction: Instruction) -> bool:
    started = instruction.operation not in FREE and not instruction.operation.endswith(DONE)
    return started and "AllocateBuffer" not in instruction.text  # which only names memory


def _moved(each: Instruction, computation: Computation, computations: Computations) -> int:
    """Return the bytes that a launch reads and writes."""
    fused = computations.get(each.attribute("calls"))
    if fused:
        root = next(each for each in fused.named.values() if each.is_root)
        names = root.operands if root.operation == "tuple" else (root.name,)
        read = sum(_read(parameter.name, fused, computations) for parameter in fused.parameters)
        return read + sum(_written(fused.named[name], fused) for name in names)
    sizes = [computation.named[name].bytes for name in each.operands]
    if "output_to_operand_aliasing" in each.text:  # a table that is changed in place
        return sum(size for size in sizes if size not in each.sizes)
    return sum(sizes) + each.bytes


def _written(result: Instruction, fused: Computation) -> int:
    """Return the bytes that a fusion writes for one of its results."""
    inner = result
    while inner.operation == "bitcast":
        inner = fused.named[inner.operands[0]]
    if inner.operation in IN_PLACE:
        return fused.named[inner.operands[IN_PLACE[inner.operation]]].bytes
    return result.bytes


def _read(name: str, fused: Computation, computations: Computations) -> int:
    """Return the bytes that a fusion reads of a parameter: where only parts are used, of those."""
    whole, parts = fused.named[name].bytes, 0
    for user in (each for each in fused.named.values() if name in each.operands):
        if user.operation in ONE_TO_ONE:
            inside = _read(user.name, fused, computations) * whole / max(user.bytes, 1)
            parts += whole if user.is_root else int(inside)
        elif user.operation in SLICES and user.operands[0] == name:
            parts += user.bytes
        elif user.operation in IN_PLACE and user.operands[0] == name:
            continue
        elif user.operation == "fusion":
            inner = computations[user.attribute("calls")]
            places = [i for i, operand in enumerate(user.operands) if operand == name]
            parts += sum(_read(inner.parameters[i].name, inner, computations) for i in places)
        elif user.operation != "tuple":
            return whole
    return min(parts, whole)


def _parse(text: str) -> Computations:
    """Read the computations of a program as XLA prints them, a line for each instruction."""
    computations: Computations = {}
    name, lines = "", []
    for line in text.splitlines():
        if head := HEAD.match(line):
            name, lines = head[2], []
        elif line == "}" and name:
            computations[name] = Computation([_instruction(each) for each in lines])
            name = ""
        elif name:
            lines.append(line)
    return computations


def _instruction(line: str) -> Instruction:
    found = INSTRUCTION.match(line)
    assert found, f"not an instruction: {line[:80]}"
    rest = found[3]
    end = _closing(rest, 0) + 1 if rest.startswith("(") else rest.index(" ")
    shapes, rest = rest[:end], rest[end:].lstrip()
    start = rest.index("(")
    inside, operation = rest[start : _closing(rest, start)], rest[:start]
    sizes = tuple(_bytes(kind, sizes) for kind, sizes in ARRAY.findall(shapes))
    read = () if operation in ("parameter", "constant") else tuple(OPERAND.findall(inside))
    return Instruction(found[2], operation, sizes, read, line, bool(found[1]))


def _closing(text: str, start: int) -> int:
    """Return the position of the parenthesis that closes the one at `start`."""
    depth = 0
    for position in range(start, len(text)):
        depth += (text[position] == "(") - (text[position] == ")")
        if depth == 0:
            return position
    raise ValueError(f"not an instruction: {text[:80]}")


def _bytes(kind: str, sizes: str) -> int:
    """Return the size of an array of some type, such as f32."""
    bits = 8 if kind == "pred" else int((re.search(r"\d+", kind) or "0")[0])
    return math.prod(int(size) for size in sizes.split(",") if size) * bits // 8
