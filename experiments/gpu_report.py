"""How training does on a GPU: `python -m experiments.benchmark --gpu-report DIR`.

Compares the numbers with the CPU's, measures the cases, counts kernels, and leaves in DIR

report.json      all numbers; written again after every case
report.md        the same as a table
trace.json.gz    one iteration of training, for ui.perfetto.dev
"""

import gc
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

import jax
from rich.console import Console

from cbet_jax.config import Factors
from cbet_jax.runs import manifest
from cbet_jax.runs.directory import RunDirectoryError
from cbet_jax.runs.json_files import write_json
from experiments.benchmarks import bounds, gpu_table, measure
from experiments.benchmarks.agreement import Agreement, compare_with_cpu, follow_cpu
from experiments.benchmarks.cases import (
    TRAINING,
    Case,
    Compiled,
    cases,
    compile_case,
    small_cases,
    world_of,
)
from experiments.benchmarks.kernels import conditionals, host_calls, open_loops, profile, summary
from experiments.benchmarks.measure import Task, speeds
from experiments.benchmarks.training import peak_memory
from experiments.common import cli
from experiments.common.presets import PRESETS

REPORT, TABLE, TRACE = "report.json", "report.md", "trace.json.gz"
SECONDS = 330.0  # no group of cases is begun later
ROUNDS = 3  # of each measurement; the median counts
COMPILED_AT_ONCE = 4
LARGE_PRODUCT = 8192  # rows and columns, of the matrices that a GPU multiplies
OUT_OF_MEMORY = "out of memory"
DIFFERS = 1  # exit status
COMPARED_SEEDS = 2  # with factors of 16 bits


class Report:
    """The report's content, on disk after every change."""

    def __init__(self, folder: Path, arguments: Sequence[str], console: Console) -> None:
        """Begins a report.

        Raises:
            RunDirectoryError: there is one already, or the folder cannot be written to.
        """
        self.folder, self._console = folder, console
        if (folder / REPORT).exists():
            raise RunDirectoryError(f"{folder} already holds a report: choose another folder")
        device = jax.devices()[0]
        self.content: dict[str, Any] = {
            "device": device.device_kind,
            "is_gpu": device.platform == "gpu",
            "device_memory": (device.memory_stats() or {}).get("bytes_limit"),
            "machine": manifest.describe(arguments),
            "compiled_programs_kept_in": jax.config.jax_compilation_cache_dir,
            "seconds": 0.0,
            "finished": False,
            "agreement": {},
            "cases": [],
        }
        self._began = time.monotonic()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self.save()
        except OSError as error:
            raise RunDirectoryError(f"cannot write to {folder}: {error.strerror}") from None

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return time.monotonic() - self._began

    def save(self) -> None:
        """Writes the numbers and the table."""
        self.content["seconds"] = round(self.seconds, 1)
        write_json(self.folder / REPORT, self.content)
        (self.folder / TABLE).write_text(gpu_table.markdown(self.content))

    def say(self, line: str) -> None:
        """Prints one line, with the time."""
        self._console.print(f"{self.seconds:5.0f} s  {line}", soft_wrap=True, highlight=False)


def main(folder: Path, arguments: Sequence[str], console: Console, *, small: bool) -> None:
    """Makes a report and prints it.

    Args:
        folder: to write to.
        arguments: of the command line.
        console: to print to.
        small: tiny programs, whose speeds mean nothing.

    Raises:
        RunDirectoryError: the folder cannot be used.
        SystemExit: the device does not compute what the CPU does, or that cannot be told.
    """
    content = make(folder, arguments, console, small=small)
    console.print(gpu_table.markdown(content), soft_wrap=True, highlight=False, markup=False)
    console.print(f"saved: {folder / REPORT}", soft_wrap=True, highlight=False)
    found = content["agreement"].values()
    if not found or not all(comparison.get("agrees") for comparison in found):
        cli.fail(f"the numbers were not found to be the CPU's: see {folder / TABLE}", DIFFERS)


def make(
    folder: Path, arguments: Sequence[str], console: Console, *, small: bool
) -> dict[str, Any]:
    """Makes a report and returns its content."""
    report = Report(folder, arguments, console)
    if not report.content["is_gpu"]:
        report.say("JAX has no GPU here: these will be another device's numbers")
    several_seeds = jax.default_backend() != "cpu"
    groups = small_cases() if small else cases(several_seeds=several_seeds)
    report.content["rates"] = rates(large=report.content["is_gpu"] and not small)
    for number, group in enumerate(groups):
        report.save()
        if report.seconds < SECONDS:
            measure_group(group, report, first=number == 0)
        else:
            report.content["cases"] += [{"case": case.name, "error": "no time"} for case in group]
    report.content["finished"] = True
    report.save()
    return report.content


def rates(*, large: bool) -> dict[str, float]:
    """Returns what this device can do: products in TFLOP/s, copies in Gbyte/s."""
    shape = (LARGE_PRODUCT,) * 3 if large else measure.MATRIX_SHAPE
    tasks = {f"product, {f}": measure.matrix_product(shape, f) for f in get_args(Factors)}
    tasks["copying"] = bounds.copying(bounds.IN_MEMORY if large else bounds.IN_CACHE)
    found = speeds(tasks, ROUNDS)
    return {name: speed / (1e9 if name == "copying" else 1e12) for name, speed in found.items()}


def comparisons(case: Case) -> dict[str, Callable[[], dict[str, Any]]]:
    """Returns what compares the smoke preset's network with the CPU's, in a case's worlds."""
    network = PRESETS["smoke"].train.network
    settings = replace(case.settings, network=network, worlds=case.settings.batch)
    rounding = replace(settings, network=replace(network, factors="bfloat16"))
    world = world_of(case.environments, settings.worlds)
    return {
        "an iteration in float32": lambda: _told(compare_with_cpu(settings, world)),
        f"bfloat16 and {COMPARED_SEEDS} seeds, in the CPU's trajectories": lambda: _told(
            follow_cpu(rounding, world, COMPARED_SEEDS)
        ),
    }


def _told(found: Agreement) -> dict[str, Any]:
    return {**found._asdict(), "agrees": found.agrees}


def measure_group(group: Sequence[Case], report: Report, *, first: bool) -> None:
    """Compiles cases together and measures them in turn.

    Args:
        group: of cases.
        report: to write to.
        first: whether this is the first group: its kernels are counted, and the numbers are
            compared with the CPU's, too.
    """
    report.say(f"compiling {len(group)} programs{', comparing with the CPU' * first}")
    with ThreadPoolExecutor(COMPILED_AT_ONCE) as pool:
        compared = comparisons(group[0]) if first else {}
        agreements = {name: pool.submit(_attempt, run) for name, run in compared.items()}
        programs = list(pool.map(_compiled, group))
    report.content["agreement"] |= {name: each.result() for name, each in agreements.items()}
    report.save()
    for case in group:
        report.say(case.name)
        program, found = programs.pop(0)
        trace = report.folder / TRACE if first and case.part == TRAINING else None
        if program:
            found |= _attempt(partial(measured, case, program, detailed=first, trace=trace))
        report.content["cases"].append({"case": case.name, **found})
        report.save()
        del program
        gc.collect()  # the next case needs the memory


def _compiled(case: Case) -> tuple[Compiled | None, dict[str, Any]]:
    programs: list[Compiled] = []

    def compile_() -> dict[str, Any]:
        began = time.monotonic()
        programs.append(compile_case(case))
        return {"compile_seconds": round(time.monotonic() - began, 1)}

    found = _attempt(compile_)
    return (programs[0] if programs else None), found


def _attempt(measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Returns what is found, or what went wrong: the other cases are measured all the same."""
    try:
        return measure()
    except Exception as error:
        text = " ".join(str(error).split())
        is_memory = "RESOURCE_EXHAUSTED" in text or isinstance(error, MemoryError)
        return {"error": OUT_OF_MEMORY if is_memory else f"{type(error).__name__}: {text[:300]}"}


def measured(
    case: Case, compiled: Compiled, *, detailed: bool, trace: Path | None
) -> dict[str, Any]:
    """Returns the numbers of one case.

    Args:
        case: what is measured.
        compiled: its program.
        detailed: whether its kernels are counted, too.
        trace: file that a trace is written to.
    """
    program = compiled.program.as_text()
    found: dict[str, Any] = {
        "part": case.part,
        "preset": case.preset,
        "factors": case.settings.network.factors,
        "seeds": case.seeds,
        "worlds": case.settings.worlds,
        "planned_bytes": peak_memory(compiled.program),
        "host_calls": host_calls(program),
        "open_loops": open_loops(program),
        "conditionals": conditionals(program),
    }
    advance = measure.first_result(compiled.program)
    task = Task(measure.repeated(advance, compiled.begin()), case.frames, "frame")
    speed = speeds({case.name: task}, ROUNDS)[case.name]
    found |= {
        "frames_per_second": speed,
        "milliseconds": 1e3 * case.frames / speed,
        "tflops": speed * case.flops / 1e12,
        "peak_bytes_so_far": (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use"),
    }
    if case.part == TRAINING:
        found["frames"] = case.settings.frames
        found["minutes"] = case.seeds * case.settings.frames / speed / 60
    if detailed:
        steps = case.settings.rollouts * case.settings.unroll
        found["profile"] = _attempt(lambda: summary(profile(task.run, trace), program, steps))
    return found
