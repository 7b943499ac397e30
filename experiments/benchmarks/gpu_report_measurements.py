"""The measurements of the report on a GPU: each case in turn, whatever fails in another."""

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
from experiments.benchmarks import arithmetic, bounds, gpu_program_report, gpu_targets, timing
from experiments.benchmarks.gpu_program_report import Compiled
from experiments.benchmarks.gpu_report_agreement import Agreement, compare_with_cpu, follow_cpu
from experiments.benchmarks.gpu_report_cases import TRAINING, Case, cases, small_cases, world_of
from experiments.benchmarks.gpu_report_file import TRACE, Report
from experiments.benchmarks.gpu_report_programs import CompiledCase, compile_case
from experiments.benchmarks.kernels import conditionals, host_calls, open_loops, profile, summary
from experiments.benchmarks.timing import TimedTask, speeds
from experiments.benchmarks.training_measurements import peak_memory
from experiments.common.presets import PRESETS

REPORT_SECONDS = 330.0  # no group of cases is begun later
ROUNDS = 3  # of each measurement; the median counts
COMPILED_AT_ONCE = 4
LARGE_PRODUCT = 8192  # rows and columns, of the matrices that a GPU multiplies
OUT_OF_MEMORY = "out of memory"
COMPARED_SEEDS = 2  # with factors of 16 bits


def make(
    folder: Path, arguments: Sequence[str], console: Console, *, small: bool
) -> dict[str, Any]:
    """Make a report and return its content.

    Args:
        folder: to write to.
        arguments: of the command line.
        console: to print to.
        small: whether to take tiny programs, whose speeds mean nothing.

    Raises:
        RunDirectoryError: the folder cannot be used.
    """
    report = Report(folder, arguments, console)
    if not report.content["is_gpu"]:
        report.say("JAX finds no GPU: these are another device's numbers")
    several_seeds = jax.default_backend() != "cpu"
    groups = small_cases() if small else cases(several_seeds=several_seeds)
    report.content["rates"] = rates(large=report.content["is_gpu"] and not small)
    for number, group in enumerate(groups):
        report.save()
        if report.seconds < REPORT_SECONDS:
            measure_group(group, report, first=number == 0)
        else:
            report.content["cases"] += [{"case": case.name, "error": "no time"} for case in group]
    report.content["finished"] = True
    report.save()
    return report.content


def rates(*, large: bool) -> dict[str, float]:
    """Return the rates of this device: products in TFLOP/s, copies in Gbyte/s."""
    shape = (LARGE_PRODUCT,) * 3 if large else arithmetic.MATRIX_SHAPE
    tasks = {f"product, {f}": arithmetic.matrix_product(shape, f) for f in get_args(Factors)}
    tasks["copying"] = bounds.copying(bounds.UNCACHED_BYTES if large else bounds.CACHED_BYTES)
    found = speeds(tasks, ROUNDS)
    return {name: speed / (1e9 if name == "copying" else 1e12) for name, speed in found.items()}


def comparisons(case: Case) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return comparisons of the smoke preset's network with the CPU's, in a case's worlds."""
    network = PRESETS["smoke"].train.network
    settings = replace(case.settings, network=network, worlds=case.settings.batch)
    rounding = replace(settings, network=replace(network, factors="bfloat16"))
    world = world_of(case.environments, settings.worlds)
    return {
        "an iteration in float32": lambda: _as_dict(compare_with_cpu(settings, world)),
        f"bfloat16 and {COMPARED_SEEDS} seeds, in the CPU's trajectories": lambda: _as_dict(
            follow_cpu(rounding, world, COMPARED_SEEDS)
        ),
    }


def _as_dict(found: Agreement) -> dict[str, Any]:
    return {**found._asdict(), "agrees": found.agrees}


def measure_group(group: Sequence[Case], report: Report, *, first: bool) -> None:
    """Compile cases together and measure them in turn.

    Args:
        group: the cases.
        report: to write to.
        first: whether this is the first group, of which kernels are counted and numbers are
            compared with the CPU's.
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


def _compiled(case: Case) -> tuple[CompiledCase | None, dict[str, Any]]:
    programs: list[CompiledCase] = []

    def compile_() -> dict[str, Any]:
        began = time.monotonic()
        programs.append(compile_case(case))
        return {"compile_seconds": round(time.monotonic() - began, 1)}

    found = _attempt(compile_)
    return (programs[0] if programs else None), found


def _attempt(find: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return what is found, or the error, since the other cases are measured all the same."""
    try:
        return find()
    except Exception as error:
        text = " ".join(str(error).split())
        is_memory = "RESOURCE_EXHAUSTED" in text or isinstance(error, MemoryError)
        return {"error": OUT_OF_MEMORY if is_memory else f"{type(error).__name__}: {text[:300]}"}


def program_of(case: Case, text: str) -> dict[str, Any]:
    """Return what the compiled program of a case holds, and an estimate of its time."""
    description = gpu_targets.describe(gpu_targets.named_like(jax.devices()[0].device_kind))
    return gpu_program_report.make(case, description, Compiled(text))


def measured(
    case: Case, compiled: CompiledCase, *, detailed: bool, trace: Path | None
) -> dict[str, Any]:
    """Return the numbers of one case.

    Args:
        case: what is measured.
        compiled: its program.
        detailed: whether to count its kernels, too.
        trace: the file to write a trace to, None for no trace.
    """
    program = compiled.program.as_text()
    is_gpu = jax.devices()[0].platform == "gpu"
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
    advance = timing.first_result(compiled.program)
    task = TimedTask(timing.repeated(advance, compiled.begin()), case.frames, "frame")
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
        if is_gpu:
            found["program"] = _attempt(partial(program_of, case, program))
    return found
