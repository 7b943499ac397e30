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
from experiments.benchmarks import bounds, measure, phases
from experiments.benchmarks.measure import Task, seconds_to_compile, speeds
from experiments.benchmarks.rows import MIXED, Options, Row
from experiments.common.presets import PRESETS


def measure_training(options: Options) -> list[Row]:
    """Frames a second of training, and its floating-point rate beside a matrix product's."""
    matrix = {factors: f"matrix product, {factors}" for factors in options.factors}
    tasks = {name: measure.matrix_product(factors=factors) for factors, name in matrix.items()}
    trained: dict[str, tuple[Factors, float]] = {}  # name -> factors, operations a frame
    held: dict[str, float] = {}  # bytes
    for preset, factors in itertools.product(options.presets, options.factors):
        settings = with_factors(PRESETS[preset].train, factors)
        world = make_world(MIXED, settings.worlds, explore=True)
        forward = measure.forward_flops(settings.network, world.view_shape, world.num_actions)
        name = f"training, {preset} preset, {factors}"
        tasks[name], held[name] = training(settings, world)
        trained[name] = factors, 4 * forward
    found = speeds(tasks, options.rounds)
    rows = [Row(name, found[name] / 1e9, "GFLOP/s", {}) for name in matrix.values()]
    for name, (factors, flops) in trained.items():
        rate = found[name] * flops
        ratios = {matrix[factors]: rate / found[matrix[factors]]}
        rows.append(Row(name, found[name], "frames/s", {}))
        rows.append(Row(name, rate / 1e9, "GFLOP/s", ratios))
        rows.append(memory_of(name, held[name]))
    return rows


def memory_of(what: str, held: float) -> Row:
    """The row of the bytes that a program holds."""
    return Row(f"{what}, memory of all devices", held / 2**20, "MiB", {})


def with_factors(settings: TrainSettings, factors: Factors) -> TrainSettings:
    """Returns settings with other factors of matrix products."""
    return replace(settings, network=replace(settings.network, factors=factors))


def training(settings: TrainSettings, world: World, seeds: int = 1) -> tuple[Task, float]:
    """Returns one iteration of training, rollouts and updates, and the bytes that it holds.

    Args:
        settings: of the training.
        world: the worlds of one seed.
        seeds: that are trained side by side.

    Returns:
        The task, in frames of all seeds, and what all devices hold at once, at most.
    """
    mesh = make_mesh(settings, seeds)
    program = make_program(settings, world, seeds, iterations_per_chunk=1, mesh=mesh)
    state = program.init(seed_keys(seeds))
    advance = program.advance.lower(state).compile()
    run = measure.repeated(measure.first_result(advance), state)
    held = peak_memory(advance) * (mesh.size if mesh else 1)
    return Task(run, seeds * program.frames_per_iteration, "frame"), held


def measure_phases(options: Options) -> list[Row]:
    """Milliseconds that each phase of an iteration takes one device, its operations and bytes."""
    asked = itertools.product(options.presets, options.factors)
    return [row for preset, factors in asked for row in phases_of(preset, factors, options)]


def phases_of(preset: str, factors: Factors, options: Options) -> list[Row]:
    """The rows of one preset's phases, beside the rates at which this machine works."""
    settings = with_factors(PRESETS[preset].train, factors)
    world = make_world(MIXED, settings.worlds, explore=True)
    matrix = f"matrix product, {factors}"
    machine = {matrix: measure.matrix_product(factors=factors), **bounds.rates()}
    found = speeds({**machine, **phases.tasks(settings, world)}, options.rounds)
    rates = {name: found.pop(name) for name in machine}
    of = lambda kind: {name: rate for name, rate in rates.items() if name.startswith(kind)}  # noqa: E731
    peaks = {phases.FLOP: of(matrix), phases.OPERATION: of("operations")}
    parts, whole = phases.phases(found, settings, world)
    rows = []
    for part in (*parts, whole):
        what = f"{preset}, {factors}, {part.name}"
        share = {"the iteration": part.seconds / whole.seconds}
        rows.append(Row(what, 1e3 * part.seconds, "ms", share))
        unit, peak = f"G{part.unit}/s", peaks[part.unit]
        rows += rate_of(what, part.operations, part.seconds, unit, peak)
        rows += rate_of(what, part.bytes, part.seconds, "Gbyte/s", of("copying"))
    return rows


def rate_of(
    what: str, amount: float, seconds: float, unit: str, machine: Mapping[str, float]
) -> list[Row]:
    """The row of what was done in a second, beside the machine's rates; none for nothing."""
    if not (amount and seconds):
        return []
    rate = amount / seconds
    return [Row(what, rate / 1e9, unit, {name: rate / peak for name, peak in machine.items()})]


def measure_scaling(options: Options) -> list[Row]:
    """Frames a second of all seeds together, and memory, for more and more seeds and worlds."""
    preset = PRESETS[options.scaled]
    programs = {
        **{f"{n} seeds": (n, preset.train) for n in options.scaled_seeds},
        **{f"{n} worlds": (1, replace(preset.train, worlds=n)) for n in options.scaled_worlds},
    }
    rows: list[Row] = []
    first: dict[str, tuple[str, float]] = {}
    for name, (seeds, settings) in programs.items():
        world = make_world(MIXED, settings.worlds, explore=True)
        task, held = training(settings, world, seeds)
        speed = speeds({name: task}, options.rounds)[name]
        smallest, base = first.setdefault(name.split()[1], (name, speed))
        what = f"{options.scaled} preset, {name}"
        rows.append(Row(what, speed, "frames/s", {smallest: speed / base}))
        rows.append(memory_of(what, held))
    return rows


def peak_memory(program: Any) -> float:
    """Returns the bytes that a compiled program holds at once, at most, on each of its devices."""
    memory = program.memory_analysis()
    held = memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes
    return float(held - memory.alias_size_in_bytes)


def measure_compilation(options: Options) -> list[Row]:
    """Seconds to compile all that a pre-training run needs, nothing cached."""
    rows = []
    for name in options.presets:
        preset = PRESETS[name]
        world = make_world(preset.environments, preset.train.worlds, explore=True)
        mesh = make_mesh(preset.train, preset.seeds)
        program = make_program(preset.train, world, preset.seeds, preset.chunk, mesh=mesh)
        seconds = seconds_to_compile(partial(compile_program, program, preset.seeds))
        rows.append(Row(f"compiling, {name} preset", seconds, "s", {}))
    return rows


def compile_program(program: Program, seeds: int) -> None:
    """Compiles what a run needs."""
    keys = seed_keys(seeds)
    program.init.lower(keys).compile()
    program.advance.lower(jax.eval_shape(program.init, keys)).compile()
