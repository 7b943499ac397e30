"""Settings of the whole test run, handed on to every process it starts.

Most of its time goes into importing modules and compiling programs, so both are kept, and
programs are optimised little.
"""

import gc
import os
import sys
from pathlib import Path

CACHE = Path(__file__).parents[1] / ".pytest_cache"

# Each program is compiled once, not once in every process and every test that runs it. Small ones
# count, too: outside of `jax.jit` every operation is one, and the suite has thousands.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(CACHE / "jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")

# Tests run side by side, so a program is compiled by one thread: that takes less of a core.
# `cbet_jax.runs.devices.use_cpu` would add the others, and what was compiled before would be
# compiled again: programs are kept by the flags.
FLAGS = (
    "--xla_backend_optimization_level=0",
    "--xla_cpu_parallel_codegen_split_count=1",
    "--xla_cpu_collective_call_warn_stuck_timeout_seconds=2592000",
    "--xla_cpu_collective_call_terminate_timeout_seconds=2592000",
)
os.environ["XLA_FLAGS"] = " ".join([*FLAGS, os.environ.get("XLA_FLAGS", "")])

# Programs of one device need no partitioner, which takes some 8 % of the time to compile them.
os.environ.setdefault("JAX_USE_SHARDY_PARTITIONER", "false")

# Where Python may keep no byte code, every process would compile each module it imports.
if sys.dont_write_bytecode:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(CACHE / "bytecode")


def pytest_collection_finish() -> None:
    """Spares the garbage collector what lives as long as the tests do."""
    gc.collect()
    gc.freeze()
