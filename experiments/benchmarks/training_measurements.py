"""What the benchmark measures of training: its speed, its phases, its sizes, its compilation."""

import itertools
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import jax

from cbet_jax.config import Factors, TrainSettings
from cbet_jax.runs.devices import make_mesh
from cbet_jax.train import Program, make_program, seed_keys
from envs.minigrid import make_world
from envs.types import World
from experiments.benchmarks import arithmetic, bounds, phases, timing
from experiments.benchmarks.measurement import MIXED, BenchmarkOptions, Measurement
from experiments.benchmarks.timing import TimedTask, seconds_to_compile, speeds
from experiments.common.presets import PRESETS


def measure_training(options: BenchmarkOptions) -> list[Measurement]:
    """Measure frames a second of training, and its FLOP rate beside a matrix product's."""
    matrix = {factors: f"matrix product, {factors}" for factors in options.factors}
    tasks = {name: arithmetic.matrix_product(factors=factors) for factors, name in matrix.items()}
    trained: dict[str, tuple[Factors, float]] = {}  # name -> factors, operations a frame
    held: dict[str, float] = {}  # bytes
    for preset, factors in itertools.product(options.presets, options.factors):
        settings = with_factors(PRESETS[preset].train, factors)
        world = make_world(MIXED, settings.worlds, explore=True)
        forward = arithmetic.forward_flops(settings.network, world.view_shape, world.num_actions)
        name = f"training, {preset} preset, {factors}"
        tasks[name], held[name] = training_task(settings, world)
        trained[name] = factors, 4 * forward
    found = speeds(tasks, options.rounds)
    rows = [Measurement(name, found[name] / 1e9, "GFLOP/s", {}) for name in matrix.values()]
    for name, (factors, flops) in trained.items():
        rate = found[name] * flops
        ratios = {matrix[factors]: rate / found[matrix[factors]]}
        rows.append(Measurement(name, found[name], "frames/s", {}))
        rows.append(Measurement(name, rate / 1e9, "GFLOP/s", ratios))
        rows.append(memory_of(name, held[name]))
    return rows


def memory_of(what: str, held: float) -> Measurement:
    """Return the measurement of the bytes that a program holds."""
    return Measurement(f"{what}, memory of all devices", held / 2**20, "MiB", {})


def with_factors(settings: TrainSettings, factors: Factors) -> TrainSettings:
    """Return the settings with other factors of matrix products."""
    return replace(settings, network=replace(settings.network, factors=factors))


def training_task(settings: TrainSettings, world: World, seeds: int = 1) -> tuple[TimedTask, float]:
    """Return the task of one iteration, rollouts and updates, and the bytes that it holds.

    Args:
        settings: of the training.
        world: the worlds of one seed.
        seeds: how many are trained side by side.

    Returns:
        The task, whose amount is the frames of all seeds, and the most bytes that all devices
        together hold at once.
    """
    mesh = make_mesh(settings, seeds)
    program = make_program(settings, world, seeds, iterations_per_chunk=1, mesh=mesh)
    state = program.init(seed_keys(seeds))
    advance = program.advance.lower(state).compile()
    run = timing.repeated(timing.first_result(advance), state)
    held = peak_memory(advance) * (mesh.size if mesh else 1)
    return TimedTask(run, seeds * program.frames_per_iteration, "frame"), held


def measure_phases(options: BenchmarkOptions) -> list[Measurement]:
    """Measure the time of each phase of an iteration on one device, its operations and bytes."""
    asked = itertools.product(options.presets, options.factors)
    return [row for preset, factors in asked for row in phases_of(preset, factors, options)]


def phases_of(preset: str, factors: Factors, options: BenchmarkOptions) -> list[Measurement]:
    """Measure one preset's phases, beside the rates of this machine."""
    settings = with_factors(PRESETS[preset].train, factors)
    world = make_world(MIXED, settings.worlds, explore=True)
    matrix = f"matrix product, {factors}"
    machine = {matrix: arithmetic.matrix_product(factors=factors), **bounds.rates()}
    found = speeds({**machine, **phases.tasks(settings, world)}, options.rounds)
    rates = {name: found.pop(name) for name in machine}

    def of(kind: str) -> dict[str, float]:
        return {name: rate for name, rate in rates.items() if name.startswith(kind)}

    peaks = {phases.FLOP: of(matrix), phases.OPERATION: of("operations")}
    parts, whole = phases.phases(found, settings, world)
    rows = []
    for part in (*parts, whole):
        what = f"{preset}, {factors}, {part.name}"
        share = {"the iteration": part.seconds / whole.seconds}
        rows.append(Measurement(what, 1e3 * part.seconds, "ms", share))
        unit, peak = f"G{part.unit}/s", peaks[part.unit]
        rows += rate_of(what, part.operations, part.seconds, unit, peak)
        rows += rate_of(what, part.bytes, part.seconds, "Gbyte/s", of("copying"))
    return rows


def rate_of(
    what: str, amount: float, seconds: float, unit: str, machine: Mapping[str, float]
) -> list[Measurement]:
    """Return the measurement of a rate beside the machine's, or nothing where nothing was done.

    Args:
        what: was measured.
        amount: of work.
        seconds: that it took.
        unit: of the rate, in thousand millions.
        machine: rates that this machine reaches, by name.
    """
    if not (amount and seconds):
        return []
    rate = amount / seconds
    return [
        Measurement(what, rate / 1e9, unit, {name: rate / peak for name, peak in machine.items()})
    ]


def measure_scaling(options: BenchmarkOptions) -> list[Measurement]:
    """Measure frames a second of all seeds, and memory, for more and more seeds and worlds."""
    preset = PRESETS[options.scaled]
    programs = {
        **{f"{n} seeds": (n, preset.train) for n in options.scaled_seeds},
        **{f"{n} worlds": (1, replace(preset.train, worlds=n)) for n in options.scaled_worlds},
    }
    rows: list[Measurement] = []
    first: dict[str, tuple[str, float]] = {}
    for name, (seeds, settings) in programs.items():
        world = make_world(MIXED, settings.worlds, explore=True)
        task, held = training_task(settings, world, seeds)
        speed = speeds({name: task}, options.rounds)[name]
        smallest, base = first.setdefault(name.split()[1], (name, speed))
        what = f"{options.scaled} preset, {name}"
        rows.append(Measurement(what, speed, "frames/s", {smallest: speed / base}))
        rows.append(memory_of(what, held))
    return rows


def peak_memory(program: Any) -> float:
    """Return the most bytes that a compiled program holds at once on each of its devices."""
    memory = program.memory_analysis()
    held = memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes
    return float(held - memory.alias_size_in_bytes)


def measure_compilation(options: BenchmarkOptions) -> list[Measurement]:
    """Measure the seconds to compile all that a pre-training run needs, with nothing cached."""
    rows = []
    for name in options.presets:
        preset = PRESETS[name]
        world = make_world(preset.environments, preset.train.worlds, explore=True)
        mesh = make_mesh(preset.train, preset.seeds)
        program = make_program(preset.train, world, preset.seeds, preset.chunk, mesh=mesh)
        seconds = seconds_to_compile(partial(compile_program, program, preset.seeds))
        rows.append(Measurement(f"compiling, {name} preset", seconds, "s", {}))
    return rows


def compile_program(program: Program, seeds: int) -> None:
    """Compile all that a run needs."""
    keys = seed_keys(seeds)
    program.init.lower(keys).compile()
    program.advance.lower(jax.eval_shape(program.init, keys)).compile()
