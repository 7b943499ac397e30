"""Measure training: frames a second, memory, seconds to compile."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import jax

from cbet_jax.config import TrainSettings
from cbet_jax.program import make_program, seed_keys
from cbet_jax.runs.devices import LARGE_LSTM_UNITS, make_mesh
from envs.minigrid import make_world
from experiments.benchmarks.measurement import MIXED, BenchmarkOptions, Measurement
from experiments.benchmarks.timing import TimedTask, repeated, seconds_to_compile, take_turns
from experiments.common.presets import PRESETS


class Training:
    """The compiled training of a preset's agents.

    Args:
        settings: settings of each agent.
        seeds: number of agents trained together.
        iterations: in one call.
    """

    def __init__(self, settings: TrainSettings, seeds: int, iterations: int) -> None:
        world = make_world(MIXED, settings.worlds, explore=True)
        self._mesh = make_mesh(settings, seeds)
        program = make_program(settings, world, seeds, iterations, mesh=self._mesh)
        self._frames = seeds * iterations * program.frames_per_iteration
        self._keys = seed_keys(seeds)
        self._init, self._advance = program.init, program.advance
        self.compile_seconds = seconds_to_compile(self._compile)

    def _compile(self) -> None:
        self._program: Any = self._advance.lower(jax.eval_shape(self._init, self._keys)).compile()
        self._begin: Any = self._init.lower(self._keys).compile()

    def task(self) -> TimedTask:
        """Return a call as a task: rollouts and updates of all agents."""
        advance = repeated(lambda state: self._program(state)[0], self._begin(self._keys))
        return TimedTask(advance, self._frames)

    @property
    def held_bytes(self) -> float:
        """The peak memory of all devices together, in bytes."""
        plan = self._program.memory_analysis()
        held = plan.argument_size_in_bytes + plan.output_size_in_bytes + plan.temp_size_in_bytes
        return float(held - plan.alias_size_in_bytes) * (self._mesh.size if self._mesh else 1)


def measure_training(options: BenchmarkOptions) -> list[Measurement]:
    """Measure each preset's training, with each precision and number of seeds."""
    return [row for preset in options.presets for row in _measure_preset(preset, options)]


def _measure_preset(preset: str, options: BenchmarkOptions) -> Iterator[Measurement]:
    settings, chunk = PRESETS[preset].train, PRESETS[preset].chunk
    large = settings.network.lstm_units >= LARGE_LSTM_UNITS
    iterations = 1 if large else chunk  # a large network's takes seconds
    trainings = {}
    for factors, seeds in product(options.factors, options.seeds):
        settings = replace(settings, network=replace(settings.network, factors=factors))
        name = f"training, {preset} preset, {factors}, seeds: {seeds}"
        trainings[name] = Training(settings, seeds, iterations)
    timings = take_turns({name: each.task() for name, each in trainings.items()}, options.rounds)
    first = next(iter(trainings))
    for name, speed in timings.medians().items():
        ratios = {first: timings.times(name, first)} if name != first else {}
        yield Measurement(name, speed, "frames/s", ratios)
        yield Measurement(f"{name}, memory", trainings[name].held_bytes / 2**20, "MiB")
        yield Measurement(f"{name}, compiling", trainings[name].compile_seconds, "s")
