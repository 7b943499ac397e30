"""What the benchmark measures, group by group."""

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax

from cbet_jax.config import Factors, TrainSettings
from cbet_jax.devices import make_mesh
from cbet_jax.train import Program, make_program, seed_keys
from envs.minigrid import NAMES, make_world
from envs.minigrid.generators import draw, find
from envs.types import World
from experiments import bounds, measure, phases, random_play
from experiments.measure import Task, speeds
from experiments.presets import PRESETS
from experiments.random_play import Play

MIXED = PRESETS["paper"].environments
NAVIX_NAME = "Navix-KeyCorridorS3R3-v0"
LEVELS = 1024  # drawn at once
BOUNDED = ("DoorKey-8x8", "MultiRoom-N6")  # a small world, and one on the canvas of 25x25


@dataclass(frozen=True)
class Options:
    """Measures worlds, count tables, training and compilation on this machine."""

    groups: tuple[str, ...] = (
        "worlds",
        "environments",
        "bounds",
        "counts",
        "training",
        "phases",
        "scaling",
        "compilation",
    )
    rounds: int = 5  # of each measurement; the median counts
    worlds: tuple[int, ...] = (64, 256, 1024)  # side by side; the last number alone where it does
    # not matter
    envs: tuple[str, ...] = NAMES  # environments measured one by one
    capacities: tuple[int, ...] = (2**12, 2**14, 2**16, 2**18)  # slots of a count table
    presets: tuple[str, ...] = ("paper", "laptop")  # whose training is measured
    factors: tuple[Factors, ...] = ("float32", "bfloat16")  # of matrix products in training
    scaled: str = "laptop"  # the preset that is trained with more and more seeds and worlds
    scaled_seeds: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    scaled_worlds: tuple[int, ...] = (32, 128, 512, 2048, 4096)
    out: Path | None = None  # JSON file (default: a new one in runs/)
    gpu_report: Path | None = None  # measures nothing of the above, but makes a report on training
    # on this machine's GPU in that folder
    small: bool = False  # the report tries all its parts with tiny programs


class Row(NamedTuple):
    """One measured number, and how many times another one it is."""

    what: str
    value: float
    unit: str
    ratios: dict[str, float]  # to what -> ratio


def measure_worlds(options: Options) -> list[Row]:
    """Steps a second of the worlds, of MiniGrid and of navix."""
    ours = {f"cbet-jax, {number} worlds": number for number in options.worlds}
    navix = {f"navix, {number} worlds": number for number in options.worlds}
    tasks = {"minigrid": random_play.minigrid_steps(MIXED)}
    tasks |= {name: play(MIXED, number).task() for name, number in ours.items()}
    tasks |= {name: random_play.navix_steps(NAVIX_NAME, n) for name, n in navix.items()}
    found = speeds(tasks, options.rounds)
    peers = {
        "minigrid": found["minigrid"],
        "navix at its fastest": max(found[name] for name in navix),
    }
    return [
        Row(
            name,
            speed,
            "steps/s",
            {peer: speed / other for peer, other in peers.items() if name in ours},
        )
        for name, speed in found.items()
    ]


def play(names: Sequence[str], num_worlds: int, capacity: int | None = None) -> Play:
    """Returns random play in some environments mixed, as in pre-training."""
    return Play(make_world(names, num_worlds, explore=True), capacity)


def measure_environments(options: Options) -> list[Row]:
    """Steps and levels a second of each environment, and seconds to compile it."""
    return [row for name in options.envs for row in measure_environment(name, options)]


def measure_environment(name: str, options: Options) -> list[Row]:
    """The rows of one environment."""
    ours, number = f"cbet-jax, {name}", options.worlds[-1]
    players = play((name,), number)
    compiling = seconds_to_compile(players.compile)
    others = random_play.others(name, number)
    found = speeds({ours: players.task(), "levels": levels(name), **others}, options.rounds)
    ratios = {other: found[ours] / found[other] for other in others}
    return [
        Row(f"{name}, {number} worlds", found[ours], "steps/s", ratios),
        *(Row(f"{name}, {other}", found[other], "steps/s", {}) for other in others),
        Row(f"{name}, fresh levels", found["levels"], "levels/s", {}),
        Row(f"{name}, levels played twice", players.share_replayed(), "of 1", {}),
        Row(f"{name}, compiling", compiling, "s", {}),
    ]


def levels(name: str) -> Task:
    """Returns the drawing of many levels."""
    generator = find(name)
    draw_many = jax.jit(lambda key: draw(generator, key, LEVELS))

    def advance(key: jax.Array) -> jax.Array:
        key, now = jax.random.split(key)
        jax.block_until_ready(draw_many(now))
        return key

    return Task(measure.repeated(advance, jax.random.key(0)), LEVELS, "level")


def measure_bounds(options: Options) -> list[Row]:
    """What a step moves and computes, beside how fast this machine moves and computes."""
    rates = bounds.rates()
    machine = speeds(rates, options.rounds)
    units = {name: task.unit for name, task in rates.items()}
    rows = [Row(name, speed / 1e9, f"G{units[name]}/s", {}) for name, speed in machine.items()]
    return rows + [row for name in BOUNDED for row in bounds_of(name, machine, options)]


def bounds_of(name: str, machine: Mapping[str, float], options: Options) -> list[Row]:
    """The rows of one environment: its phases, and the rates at which a step moves and computes."""
    players = play((name,), options.worlds[-1])
    found = speeds(bounds.phases(players), options.rounds)
    cost = bounds.cost_of_step(players)
    speed = found[bounds.COUNTED]
    moved, computed = cost.bytes * speed, cost.operations * speed
    copies = {rate: moved / machine[rate] for rate in machine if rate.startswith("copying")}
    operations = {rate: computed / machine[rate] for rate in machine if rate.startswith("oper")}
    return [
        *(Row(f"{name}, {phase}", speed, "steps/s", {}) for phase, speed in found.items()),
        Row(f"{name}, bytes moved a step", cost.bytes, "bytes", {}),
        Row(f"{name}, bytes moved", moved / 1e9, "Gbyte/s", copies),
        Row(f"{name}, operations a step", cost.operations, "operations", {}),
        Row(f"{name}, operations", computed / 1e9, "Goperation/s", operations),
    ]


def measure_counts(options: Options) -> list[Row]:
    """Steps a second for tables of several sizes: a reset must not depend on the size."""
    names = {f"count tables of {slots} slots": slots for slots in options.capacities}
    number = options.worlds[0]
    tasks = {name: play(MIXED, number, slots).task() for name, slots in names.items()}
    found = speeds(tasks, options.rounds)
    smallest = next(iter(names))
    return [
        Row(f"{name}, {number} worlds", speed, "steps/s", {smallest: speed / found[smallest]})
        for name, speed in found.items()
    ]


def measure_training(options: Options) -> list[Row]:
    """Frames a second of training, and its floating-point rate beside a matrix product's."""
    matrix = {factors: f"matrix product, {factors}" for factors in options.factors}
    tasks = {name: measure.matrix_product(factors=factors) for factors, name in matrix.items()}
    trained: dict[str, tuple[Factors, float]] = {}  # name -> factors, operations a frame
    for preset, factors in itertools.product(options.presets, options.factors):
        settings = with_factors(PRESETS[preset].train, factors)
        world = make_world(MIXED, settings.worlds, explore=True)
        forward = measure.forward_flops(settings.network, world.view_shape, world.num_actions)
        name = f"training, {preset} preset, {factors}"
        tasks[name], trained[name] = training(settings, world), (factors, 4 * forward)
    found = speeds(tasks, options.rounds)
    rows = [Row(name, found[name] / 1e9, "GFLOP/s", {}) for name in matrix.values()]
    for name, (factors, flops) in trained.items():
        rate = found[name] * flops
        ratios = {matrix[factors]: rate / found[matrix[factors]]}
        rows.append(Row(name, found[name], "frames/s", {}))
        rows.append(Row(name, rate / 1e9, "GFLOP/s", ratios))
    return rows


def with_factors(settings: TrainSettings, factors: Factors) -> TrainSettings:
    """Returns settings with other factors of matrix products."""
    return replace(settings, network=replace(settings.network, factors=factors))


def training(settings: TrainSettings, world: World) -> Task:
    """Returns one iteration of training: rollouts and updates."""
    program = make_program(settings, world, 1, 1, mesh=make_mesh(settings, seeds=1))
    run = measure.repeated(measure.first_result(program.advance), program.init(seed_keys(1)))
    return Task(run, program.frames_per_iteration, "frame")


def measure_phases(options: Options) -> list[Row]:
    """Milliseconds that each phase of an iteration takes one device, its operations and bytes."""
    rows = []
    for preset, factors in itertools.product(options.presets, options.factors):
        settings = with_factors(PRESETS[preset].train, factors)
        world = make_world(MIXED, settings.worlds, explore=True)
        matrix = f"matrix product, {factors}"
        machine = {matrix: measure.matrix_product(factors=factors), **bounds.copies()}
        found = speeds({**machine, **phases.tasks(settings, world)}, options.rounds)
        copies = {name: found.pop(name) for name in machine}
        peak = copies.pop(matrix)
        parts, whole = phases.phases(found, settings, world)
        for part in (*parts, whole):
            what = f"{preset}, {factors}, {part.name}"
            share = {"the iteration": part.seconds / whole.seconds}
            rows.append(Row(what, 1e3 * part.seconds, "ms", share))
            if part.operations and part.seconds:
                rate = part.operations / part.seconds
                rows.append(Row(what, rate / 1e9, "GFLOP/s", {matrix: rate / peak}))
            if part.bytes and part.seconds:
                rate = part.bytes / part.seconds
                ratios = {name: rate / speed for name, speed in copies.items()}
                rows.append(Row(what, rate / 1e9, "Gbyte/s", ratios))
    return rows


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
        mesh = make_mesh(settings, seeds)
        program = make_program(settings, world, seeds, iterations_per_chunk=1, mesh=mesh)
        state = program.init(seed_keys(seeds))
        advance = program.advance.lower(state).compile()
        run = measure.repeated(measure.first_result(advance), state)
        frames = seeds * program.frames_per_iteration
        speed = speeds({name: Task(run, frames, "frame")}, options.rounds)[name]
        smallest, base = first.setdefault(name.split()[1], (name, speed))
        what = f"{options.scaled} preset, {name}"
        rows.append(Row(what, speed, "frames/s", {smallest: speed / base}))
        rows.append(Row(f"{what}, memory", peak_memory(advance) / 2**20, "MiB", {}))
    return rows


def peak_memory(program: Any) -> float:
    """Returns the bytes that a compiled program holds at once, at most."""
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


def seconds_to_compile(compile_all: Callable[[], Any]) -> float:
    """Returns how long that compiles, nothing cached."""
    cached = jax.config.jax_enable_compilation_cache
    jax.config.update("jax_enable_compilation_cache", False)
    jax.clear_caches()
    began = time.perf_counter()
    compile_all()
    seconds = time.perf_counter() - began
    jax.config.update("jax_enable_compilation_cache", cached)
    return seconds


GROUPS: dict[str, Callable[[Options], list[Row]]] = {
    "worlds": measure_worlds,
    "environments": measure_environments,
    "bounds": measure_bounds,
    "counts": measure_counts,
    "training": measure_training,
    "phases": measure_phases,
    "scaling": measure_scaling,
    "compilation": measure_compilation,
}
