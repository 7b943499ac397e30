"""Measure vector environments: ours, MiniGrid's in processes, and EnvPool's if installed."""

import warnings
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

import envs.minigrid
from cbet_jax.runs.signals import Stop, stop_on_signals
from cbet_jax.sharding import cores
from envs.names import ACTIONS
from experiments.benchmarks.measurement import BenchmarkOptions, Measurement
from experiments.benchmarks.timing import Ratio, TimedTask, take_turns
from experiments.common.interrupts import end_if_stopped, uninterrupted

WORLD = "KeyCorridorS3R3"
FEW = (1, 4, 16)  # environments, measured besides those of --worlds
PROCESSES = (2, 16)  # sizes of an `AsyncVectorEnv`, which has one process per environment
STEPS = 50  # steps of each environment in one call


def measure_gymnasium(options: BenchmarkOptions) -> list[Measurement]:
    """Measure steps a second of `gym_vector` beside the others."""
    ours = {f"gym_vector, {n} environments": n for n in sorted({*FEW, *options.worlds})}
    theirs = {f"AsyncVectorEnv of minigrid, {n} environments": n for n in PROCESSES}
    pools = {f"envpool, {n} environments": n for n in ours.values() if find_spec("envpool")}
    with stop_on_signals() as stop:  # in a step, processes could not be closed
        vectors = {name: processes(n) for name, n in theirs.items()}
        try:
            vectors |= {name: envs.minigrid.gym_vector(WORLD, n) for name, n in ours.items()}
            vectors |= {name: pool(n) for name, n in pools.items()}
            sizes = theirs | ours | pools
            tasks = {name: play(vector, sizes[name], stop) for name, vector in vectors.items()}
            timings = take_turns(tasks, options.rounds)
        finally:
            for vector in vectors.values():
                vector.close()
    end_if_stopped(stop.signal)
    found = timings.medians()
    peer = max(theirs, key=found.__getitem__)

    def ratios(name: str) -> dict[str, Ratio]:
        same = (pool for pool, number in pools.items() if number == ours[name])
        return {other: timings.times(name, other) for other in (peer, *same)}

    return [
        Measurement(f"{WORLD}, {name}", speed, "steps/s", ratios(name) if name in ours else {})
        for name, speed in found.items()
    ]


def pool(number: int) -> Any:
    """Return EnvPool's environments (C++), with a thread for each core."""
    threads, make = min(cores(), number), import_module("envpool").make_gymnasium
    return make(f"MiniGrid-{WORLD}-v0", num_envs=number, num_threads=threads)


def processes(number: int) -> Any:
    """Return a vector of MiniGrid's environments, each in a forked process (gymnasium's default).

    JAX warns about forks; these processes never use it. They hear no Ctrl-C: `close` ends them.
    """
    from gymnasium.vector import AsyncVectorEnv

    with uninterrupted(), warnings.catch_warnings(action="ignore"):
        return AsyncVectorEnv([make_one] * number, context="fork")


def make_one() -> Any:
    """Return one of MiniGrid's environments, with the observations of ours."""
    import gymnasium
    from minigrid.wrappers import ImgObsWrapper

    return ImgObsWrapper(gymnasium.make(f"MiniGrid-{WORLD}-v0"))


def play(vector: Any, number: int, stop: Stop) -> TimedTask:
    """Return random play in a vector of so many environments, until a signal stops it."""
    random = np.random.default_rng(0)

    def run() -> None:
        for actions in random.integers(len(ACTIONS), size=(STEPS, number), dtype=np.int32):
            vector.step(actions)
            end_if_stopped(stop.signal)

    vector.reset()
    end_if_stopped(stop.signal)
    return TimedTask(run, STEPS * number)
