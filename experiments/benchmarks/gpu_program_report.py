"""A program for a GPU that is not there: compile it, and say what its text tells."""

import importlib.util
import os
import time
from typing import Any, NamedTuple

import jax
from jax.experimental import topologies
from jax.sharding import SingleDeviceSharding

from cbet_jax.config import SettingsError
from cbet_jax.program import make_program, seed_keys
from envs.minigrid import make_world
from experiments.benchmarks import hlo
from experiments.benchmarks.gpu_program_analysis import analyse, open_places
from experiments.benchmarks.gpu_program_estimate import rates_of
from experiments.benchmarks.gpu_report_cases import Case
from experiments.benchmarks.kernels import host_calls

PLUGINS = ("jax_cuda13_plugin", "jax_cuda12_plugin")


class Compiled(NamedTuple):
    """A compiled program."""

    text: str
    seconds: float | None = None  # to compile it
    memory: dict[str, int] | None = None  # bytes that it plans to use


def has_plugin() -> bool:
    """Return whether JAX's compiler for GPUs is installed."""
    return any(importlib.util.find_spec(name) for name in PLUGINS)


def compile_for(case: Case, description: str) -> Compiled:
    """Compile the training of a case for a GPU that need not be there.

    Args:
        case: what is trained.
        description: of the GPU.

    Raises:
        SettingsError: XLA cannot read the description.
    """
    os.environ.setdefault("JAX_SKIP_CUDA_CONSTRAINTS_CHECK", "1")  # cuDNN is not used
    jax.config.update("jax_platforms", "cpu")  # nor is a driver
    try:
        topology = topologies.get_topology_desc(
            topology_name="gpu", platform="cuda", topology="1x1x1", target_config=description
        )
    except Exception as error:
        raise SettingsError(f"XLA cannot read the description of the GPU: {error}") from None
    settings = case.settings
    world = make_world(case.environments, settings.worlds, explore=True, platform="gpu")
    program: Any = make_program(settings, world, case.seeds, iterations_per_chunk=1)
    device = SingleDeviceSharding(topology.devices[0])
    state = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=device),
        jax.eval_shape(program.init, seed_keys(case.seeds)),
    )
    began = time.monotonic()
    lowered = program.advance.trace(state).lower(lowering_platforms=("cuda",))
    compiled = lowered.compile()
    seconds = time.monotonic() - began
    plan = compiled.memory_analysis()
    memory = {
        "arguments": plan.argument_size_in_bytes,
        "temporaries": plan.temp_size_in_bytes,
    }
    return Compiled(compiled.as_text(), seconds, memory)


def make(case: Case, description: str, compiled: Compiled) -> dict[str, Any]:
    """Return what a program's text tells, as plain numbers.

    Args:
        case: that it trains.
        description: of the GPU.
        compiled: the program.

    Raises:
        SettingsError: the description lacks numbers, or the text is no compiled program.
    """
    try:
        rates, program = rates_of(description), hlo.parse(compiled.text)
    except ValueError as error:
        raise SettingsError(str(error)) from None
    parts = analyse(program, compiled.text, rates)
    low, high = (sum(part.seconds[i] for part in parts) for i in range(2))
    iterations = case.settings.iterations
    return {
        "case": case.name,
        "was_run": False,
        "jax": jax.__version__,
        "compile_seconds": compiled.seconds,
        "memory": compiled.memory,
        "rates": rates._asdict(),
        "parts": [part.as_dict() for part in parts],
        "host_calls": host_calls(compiled.text),
        "open_places": open_places(program),
        "seconds_an_iteration": [low, high],
        "frames": case.settings.frames,
        "seeds": case.seeds,
        "minutes": [iterations * seconds / 60 for seconds in (low, high)],
    }
