"""What the benchmark measures of training: its speed, its phases, its sizes, its compilation."""

import itertools
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import jax

from cbet_jax.config import Factors, TrainSettings
from cbet_jax.program import Program, make_program, seed_keys
from cbet_jax.runs.devices import make_mesh
from envs.minigrid import make_world
from envs.types import World
from experiments.benchmarks import arithmetic, bounds, phases, timing
from experiments.benchmarks.measurement import MIXED, BenchmarkOptions, Measurement
from experiments.benchmarks.phases import Phase
from experiments.benchmarks.timing import Ratio, TimedTask, seconds_to_compile, take_turns
from experiments.common.presets import PRESETS


def measure_training(options: BenchmarkOptions) -> list[Measurement]:
    """Measure frames a second of training, and its FLOP rate beside a matrix product's.

    Each program takes turns with the product of its own factors only.
    """
    products = {factors: arithmetic.matrix_product(factors=factors) for factors in options.factors}
    rows: list[Measurement] = []
    for preset, factors in itertools.product(options.presets, options.factors):
        settings = with_factors(PRESETS[preset].train, factors)
        world = make_world(MIXED, settings.worlds, explore=True)
        forward = arithmetic.forward_flops(settings.network, world.view_shape, world.num_actions)
        task, held = training_task(settings, world)
        name, matrix = f"training, {preset} preset, {factors}", f"matrix product, {factors}"
        timings = take_turns({matrix: products[factors], name: task}, options.rounds)
        found = timings.medians()
        share = timings.ratio(partial(_flops_beside, 4 * forward, name, matrix))
        beside = f"{matrix} beside {preset}"
        rows += [
            Measurement(beside, found[matrix] / 1e9, "GFLOP/s", {}),
            Measurement(name, found[name], "frames/s", {}),
            Measurement(name, found[name] * 4 * forward / 1e9, "GFLOP/s", {beside: share}),
            memory_of(name, held),
        ]
    return rows


def _flops_beside(flops: float, name: str, matrix: str, turn: Mapping[str, float]) -> float:
    """Return the FLOP rate of a program of `flops` a frame, as a share of the product's."""
    return turn[name] * flops / turn[matrix]


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
    tasks = phases.tasks(settings, world)
    timings = take_turns({**machine, **tasks}, options.rounds)

    def seconds(turn: Mapping[str, float], name: str) -> float:
        return phases.durations({task: turn[task] for task in tasks})[name]

    def share(name: str) -> Ratio:
        return timings.ratio(lambda turn: seconds(turn, name) / seconds(turn, phases.WHOLE))

    def rate(part: Phase, amount: float, unit: str, kind: str) -> list[Measurement]:
        """Return the measurement of a rate beside the machine's, unless nothing was done."""
        if not (amount and part.seconds):
            return []

        def beside(peer: str) -> Ratio:
            return timings.ratio(lambda turn: amount / seconds(turn, part.name) / turn[peer])

        peers = {peer: beside(peer) for peer in machine if peer.startswith(kind)}
        what = f"{preset}, {factors}, {part.name}"
        return [Measurement(what, amount / part.seconds / 1e9, f"G{unit}/s", peers)]

    found = timings.medians()
    parts, whole = phases.phases({task: found[task] for task in tasks}, settings, world)
    kinds = {phases.FLOP: matrix, phases.OPERATION: "operations"}
    rows = []
    for part in (*parts, whole):
        what = f"{preset}, {factors}, {part.name}"
        rows.append(
            Measurement(what, 1e3 * part.seconds, "ms", {"the iteration": share(part.name)})
        )
        rows += rate(part, part.operations, part.unit, kinds[part.unit])
        rows += rate(part, part.bytes, "byte", "copying")
    return rows


def measure_scaling(options: BenchmarkOptions) -> list[Measurement]:
    """Measure frames a second of all seeds, and memory, for more and more seeds and worlds."""
    preset = PRESETS[options.scaled]
    programs = {
        **{f"{n} seeds": (n, preset.train) for n in options.scaled_seeds},
        **{f"{n} worlds": (1, replace(preset.train, worlds=n)) for n in options.scaled_worlds},
    }
    rows: list[Measurement] = []
    first: dict[str, tuple[str, TimedTask]] = {}
    for name, (seeds, settings) in programs.items():
        world = make_world(MIXED, settings.worlds, explore=True)
        task, held = training_task(settings, world, seeds)
        smallest, base = first.setdefault(name.split()[1], (name, task))
        timings = take_turns({smallest: base, name: task}, options.rounds)
        what, times = f"{options.scaled} preset, {name}", timings.times(name, smallest)
        rows.append(Measurement(what, timings.medians()[name], "frames/s", {smallest: times}))
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
