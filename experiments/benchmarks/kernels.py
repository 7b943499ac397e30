"""What a device did: its kernels, and whether a program waited for the host."""

import re
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
from jax.profiler import ProfileData, ProfileOptions

NAME_LENGTH = 120  # of kernels and of what they come from, in characters
LARGEST = 12  # kernels that are named
CONTAINERS = ("while", "call", "conditional")  # operations of a CPU that consist of others
NESTING = re.compile("while/body/|eval_jaxpr/")  # not worth saying: nearly all is in loops
SOURCE = re.compile(r"^\s*(?:ROOT )?%?([\w.-]+) = .*op_name=\"([^\"]*)\"", re.MULTILINE)


class Kernel(NamedTuple):
    """All calls of one kernel (on a CPU: of one operation)."""

    name: str
    calls: int
    seconds: float


class Profile(NamedTuple):
    """What a device did while it was profiled."""

    kernels: tuple[Kernel, ...]  # longest first
    to_host: int  # copies
    from_host: int

    @property
    def calls(self) -> int:
        """How many kernels were started."""
        return sum(kernel.calls for kernel in self.kernels)

    @property
    def seconds(self) -> float:
        """How long all of them took."""
        return sum(kernel.seconds for kernel in self.kernels)


def profile(run: Callable[[], None], trace: Path | None = None) -> Profile:
    """Profile the device while something runs.

    While profiling, XLA starts every kernel by itself, even those that it usually starts many at
    a time (CUDA graphs): their number is right, the time between them is not.

    Args:
        run: returns when its results are there.
        trace: a file for ui.perfetto.dev (`.json.gz`), None for no trace.
    """
    options = ProfileOptions()
    options.python_tracer_level = 0
    if jax.default_backend() != "cpu":  # whose operations are the host's
        options.host_tracer_level = 1  # leaves room for the kernels in the file
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(
            folder, create_perfetto_trace=trace is not None, profiler_options=options
        ):
            run()
        if trace:
            shutil.copyfile(next(Path(folder).rglob("perfetto_trace.json.gz")), trace)
        found = next(Path(folder).rglob("*.xplane.pb"))
        return read(ProfileData.from_file(str(found)))


def read(data: ProfileData) -> Profile:
    """Sum up a profile, kernel by kernel."""
    calls: dict[str, int] = defaultdict(int)
    seconds: dict[str, float] = defaultdict(float)
    for name, nanoseconds in _events(data):
        calls[name] += 1
        seconds[name] += nanoseconds / 1e9
    to_host, from_host = calls.pop("MemcpyD2H", 0), calls.pop("MemcpyH2D", 0)
    kernels = (Kernel(name, number, seconds[name]) for name, number in calls.items())
    longest_first = sorted(kernels, key=lambda kernel: -kernel.seconds)
    return Profile(tuple(longest_first), to_host, from_host)


def _events(data: ProfileData) -> Iterator[tuple[str, float]]:
    """Yield names and nanoseconds of the kernels of all GPUs, or of the operations of a CPU."""
    gpus = [plane for plane in data.planes if plane.name.startswith("/device:GPU")]
    for plane in gpus:
        for line in plane.lines:
            if line.name.startswith("Stream"):
                yield from ((event.name, event.duration_ns) for event in line.events)
    if gpus:
        return
    for plane in data.planes:
        for line in plane.lines:
            for event in line.events:
                is_operation = any(name == "hlo_op" for name, _ in event.stats)
                if is_operation and not event.name.startswith(CONTAINERS):
                    yield event.name, event.duration_ns


def sources(program: str) -> dict[str, str]:
    """Return where in JAX each instruction of a compiled program (as text) comes from."""
    found = SOURCE.findall(program)
    return {name: NESTING.sub("", source)[-NAME_LENGTH:] for name, source in found}


def summary(seen: Profile, program: str, steps: int) -> dict[str, Any]:
    """Count the kernels of each step, and name the largest.

    Args:
        seen: of one call.
        program: the compiled program, as text.
        steps: of each world in one call.
    """
    if not seen.kernels:
        return {"error": "the profiler has seen no kernel"}
    came_from = {_letters(name): source for name, source in sources(program).items()}
    return {
        "steps": steps,
        "kernels_per_step": seen.calls / steps,
        "in_every_step": sum(kernel.calls // steps for kernel in seen.kernels),
        "kernel_milliseconds": 1e3 * seen.seconds,
        "copies_to_host": seen.to_host,
        "copies_from_host": seen.from_host,
        "largest": [
            {
                "name": kernel.name[:NAME_LENGTH],
                "from": came_from.get(_letters(kernel.name), ""),
                "per_step": kernel.calls / steps,
                "microseconds": 1e6 * kernel.seconds / kernel.calls,
                "share": kernel.seconds / seen.seconds,
            }
            for kernel in seen.kernels[:LARGEST]
        ],
    }


def _letters(name: str) -> str:
    """Return a name as both kernels and instructions have it: kernels' names have no dots."""
    return re.sub(r"\W", "_", name)
