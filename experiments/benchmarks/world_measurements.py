"""What the benchmark measures of the worlds: their speed beside that of others, and its bounds."""

from collections.abc import Mapping, Sequence

import jax

from envs.minigrid import make_world
from envs.minigrid.generators import find, sample_levels
from experiments.benchmarks import bounds, random_play, timing
from experiments.benchmarks.measurement import MIXED, BenchmarkOptions, Measurement
from experiments.benchmarks.random_play import RandomPlay
from experiments.benchmarks.timing import (
    Ratio,
    TimedTask,
    seconds_to_compile,
    speeds,
    take_turns,
)

NAVIX_NAME = "Navix-KeyCorridorS3R3-v0"
LEVELS = 1024  # drawn at once
BOUNDED = ("DoorKey-8x8", "MultiRoom-N6")  # a small world, and one on the canvas of 25x25


def measure_worlds(options: BenchmarkOptions) -> list[Measurement]:
    """Measure steps a second of our worlds, of MiniGrid and of navix."""
    ours = {f"cbet-jax, {number} worlds": number for number in options.worlds}
    navix = {f"navix, {number} worlds": number for number in options.worlds}
    tasks = {"minigrid": random_play.minigrid_steps(MIXED)}
    tasks |= {name: random_play_in(MIXED, number).task() for name, number in ours.items()}
    tasks |= {name: random_play.navix_steps(NAVIX_NAME, n) for name, n in navix.items()}
    timings = take_turns(tasks, options.rounds)
    found = timings.medians()
    peers = {"minigrid": "minigrid", "navix at its fastest": max(navix, key=found.__getitem__)}

    def ratios(name: str) -> dict[str, Ratio]:
        return {title: timings.times(name, peer) for title, peer in peers.items() if name in ours}

    return [Measurement(name, speed, "steps/s", ratios(name)) for name, speed in found.items()]


def random_play_in(
    names: Sequence[str], num_worlds: int, capacity: int | None = None
) -> RandomPlay:
    """Return random play in a mix of environments, as in pre-training."""
    return RandomPlay(make_world(names, num_worlds, explore=True), capacity)


def measure_environments(options: BenchmarkOptions) -> list[Measurement]:
    """Measure steps and levels a second of each environment, and seconds to compile it."""
    return [row for name in options.envs for row in measure_environment(name, options)]


def measure_environment(name: str, options: BenchmarkOptions) -> list[Measurement]:
    """Measure one environment."""
    ours, number = f"cbet-jax, {name}", options.worlds[-1]
    players = random_play_in((name,), number)
    compiling = seconds_to_compile(players.compile)
    others = random_play.others(name, number)
    tasks = {ours: players.task(), "levels": levels(name), **others}
    timings = take_turns(tasks, options.rounds)
    found = timings.medians()
    ratios = {other: timings.times(ours, other) for other in others}
    return [
        Measurement(f"{name}, {number} worlds", found[ours], "steps/s", ratios),
        *(Measurement(f"{name}, {other}", found[other], "steps/s", {}) for other in others),
        Measurement(f"{name}, fresh levels", found["levels"], "levels/s", {}),
        Measurement(f"{name}, levels played twice", players.share_replayed(), "of 1", {}),
        Measurement(f"{name}, compiling", compiling, "s", {}),
    ]


def levels(name: str) -> TimedTask:
    """Return the task of drawing many levels."""
    generator = find(name)
    sample_many = jax.jit(lambda key: sample_levels(generator, key, LEVELS))

    def advance(key: jax.Array) -> jax.Array:
        key, now = jax.random.split(key)
        jax.block_until_ready(sample_many(now))
        return key

    return TimedTask(timing.repeated(advance, jax.random.key(0)), LEVELS, "level")


def measure_bounds(options: BenchmarkOptions) -> list[Measurement]:
    """Measure what a step moves and computes, beside how fast this machine moves and computes."""
    rates = bounds.rates()
    machine = speeds(rates, options.rounds)
    units = {name: task.unit for name, task in rates.items()}
    rows = [
        Measurement(name, speed / 1e9, f"G{units[name]}/s", {}) for name, speed in machine.items()
    ]
    return rows + [row for name in BOUNDED for row in bounds_of(name, rates, options)]


def bounds_of(
    name: str, machine: Mapping[str, TimedTask], options: BenchmarkOptions
) -> list[Measurement]:
    """Measure one environment: its phases, and the rates at which a step moves and computes.

    Args:
        name: of the environment.
        machine: what the rates are compared with.
        options: of the benchmark.
    """
    players = random_play_in((name,), options.worlds[-1])
    phases = bounds.phases(players)
    timings = take_turns({**machine, **phases}, options.rounds)
    found = timings.medians()
    cost = bounds.cost_of_step(players)
    speed = found[bounds.COUNTED]

    def share(kind: str, amount: float) -> dict[str, Ratio]:
        rates = [rate for rate in machine if rate.startswith(kind)]
        return {
            rate: timings.ratio(lambda turn, rate=rate: amount * turn[bounds.COUNTED] / turn[rate])  # type: ignore[misc]
            for rate in rates
        }

    copies, computed = share("copying", cost.bytes), share("oper", cost.operations)
    return [
        *(Measurement(f"{name}, {phase}", found[phase], "steps/s", {}) for phase in phases),
        Measurement(f"{name}, bytes moved a step", cost.bytes, "bytes", {}),
        Measurement(f"{name}, bytes moved", cost.bytes * speed / 1e9, "Gbyte/s", copies),
        Measurement(f"{name}, operations a step", cost.operations, "operations", {}),
        Measurement(f"{name}, operations", cost.operations * speed / 1e9, "Goperation/s", computed),
    ]


def measure_counts(options: BenchmarkOptions) -> list[Measurement]:
    """Measure steps a second for tables of several sizes: a reset must not depend on the size."""
    names = {f"count tables of {slots} slots": slots for slots in options.capacities}
    number = options.worlds[0]
    tasks = {name: random_play_in(MIXED, number, slots).task() for name, slots in names.items()}
    timings = take_turns(tasks, options.rounds)
    found = timings.medians()
    smallest = next(iter(found))
    return [
        Measurement(
            f"{name}, {number} worlds", speed, "steps/s", {smallest: timings.times(name, smallest)}
        )
        for name, speed in found.items()
    ]
