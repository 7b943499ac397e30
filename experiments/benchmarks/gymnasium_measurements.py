"""Measure vector environments: ours, and MiniGrid's in processes."""

import warnings
from typing import Any

import numpy as np

import envs.minigrid
from experiments.benchmarks.measurement import BenchmarkOptions, Measurement
from experiments.benchmarks.timing import TimedTask, take_turns

WORLD = "DoorKey-8x8"
PROCESSES = (2, 16)  # sizes of an `AsyncVectorEnv`, which has one process per environment
STEPS = 50  # steps of each environment in one call


def measure_gymnasium(options: BenchmarkOptions) -> list[Measurement]:
    """Measure steps a second of `gym_vector`, and of an `AsyncVectorEnv` of MiniGrid."""
    ours = {f"gym_vector, {n} environments": n for n in options.worlds}
    theirs = {f"AsyncVectorEnv of minigrid, {n} environments": n for n in PROCESSES}
    vectors = {name: processes(n) for name, n in theirs.items()}
    try:
        vectors |= {name: envs.minigrid.gym_vector(WORLD, n) for name, n in ours.items()}
        timings = take_turns({name: play(v) for name, v in vectors.items()}, options.rounds)
    finally:
        for vector in vectors.values():
            vector.close()
    found = timings.medians()
    peer = max(theirs, key=found.__getitem__)
    return [
        Measurement(
            f"{WORLD}, {name}",
            speed,
            "steps/s",
            {peer: timings.times(name, peer)} if name in ours else {},
        )
        for name, speed in found.items()
    ]


def processes(number: int) -> Any:
    """Return a vector of MiniGrid's environments, each in a forked process (gymnasium's default).

    JAX warns about forks; these processes never use it.
    """
    from gymnasium.vector import AsyncVectorEnv

    with warnings.catch_warnings(action="ignore"):
        return AsyncVectorEnv([make_one] * number, context="fork")


def make_one() -> Any:
    """Return one of MiniGrid's environments, with the observations of ours."""
    import gymnasium
    from minigrid.wrappers import ImgObsWrapper

    return ImgObsWrapper(gymnasium.make(f"MiniGrid-{WORLD}-v0"))


def play(vector: Any) -> TimedTask:
    """Return random play in a vector environment."""
    random = np.random.default_rng(0)

    def run() -> None:
        for actions in random.integers(7, size=(STEPS, vector.num_envs)):
            vector.step(actions)

    vector.reset(seed=0)
    return TimedTask(run, STEPS * vector.num_envs, "step")
