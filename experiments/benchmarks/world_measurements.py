"""Measure the speed of our worlds beside other packages'."""

from collections.abc import Sequence

import jax

from envs.minigrid import make_world
from envs.minigrid.generators import find, sample_levels
from experiments.benchmarks import random_play, timing
from experiments.benchmarks.measurement import MIXED, BenchmarkOptions, Measurement
from experiments.benchmarks.random_play import RandomPlay

NAVIX_NAME = "Navix-KeyCorridorS3R3-v0"
LEVELS = 1024  # levels sampled in one call


def measure_worlds(options: BenchmarkOptions) -> list[Measurement]:
    """Measure steps a second of our worlds, of MiniGrid and of navix."""
    ours = {f"cbet-jax, {number} worlds": number for number in options.worlds}
    navix = {f"navix, {number} worlds": number for number in options.worlds}
    tasks = {"minigrid": random_play.minigrid_steps(MIXED)}
    tasks |= {name: random_play_in(MIXED, number).task() for name, number in ours.items()}
    tasks |= {name: random_play.navix_steps(NAVIX_NAME, n) for name, n in navix.items()}
    timings = timing.take_turns(tasks, options.rounds)
    found = timings.medians()
    peers = {"minigrid": "minigrid", "navix at its fastest": max(navix, key=found.__getitem__)}

    def ratios(name: str) -> dict[str, timing.Ratio]:
        return {title: timings.times(name, peer) for title, peer in peers.items() if name in ours}

    return [Measurement(name, speed, "steps/s", ratios(name)) for name, speed in found.items()]


def random_play_in(names: Sequence[str], num_worlds: int) -> RandomPlay:
    """Return random play in a mix of environments, as pre-training has it."""
    return RandomPlay(make_world(names, num_worlds, explore=True))


def measure_environments(options: BenchmarkOptions) -> list[Measurement]:
    """Measure each environment: steps and levels a second, seconds to compile."""
    return [row for name in options.envs for row in measure_environment(name, options)]


def measure_environment(name: str, options: BenchmarkOptions) -> list[Measurement]:
    """Measure one environment."""
    ours, number = f"cbet-jax, {name}", options.worlds[-1]
    players = random_play_in((name,), number)
    compiling = timing.seconds_to_compile(players.compile)
    there = random_play.in_minigrid(name)
    others = {"minigrid": random_play.minigrid_steps((name,))} if there else {}
    tasks = {ours: players.task(), "levels": levels(name), **others}
    timings = timing.take_turns(tasks, options.rounds)
    found = timings.medians()
    ratios = {other: timings.times(ours, other) for other in others}
    return [
        Measurement(f"{name}, {number} worlds", found[ours], "steps/s", ratios),
        *(Measurement(f"{name}, {other}", found[other], "steps/s") for other in others),
        Measurement(f"{name}, fresh levels", found["levels"], "levels/s"),
        Measurement(f"{name}, compiling", compiling, "s"),
    ]


def levels(name: str) -> timing.TimedTask:
    """Return the sampling of many levels as a task."""
    sample_many = jax.jit(lambda key: sample_levels(find(name), key, LEVELS))

    def advance(key: jax.Array) -> jax.Array:
        key, now = jax.random.split(key)
        jax.block_until_ready(sample_many(now))
        return key

    return timing.TimedTask(timing.repeated(advance, jax.random.key(0)), LEVELS)
