"""What the commands for Habitat share: starting simulators, and building what plays in them."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cbet_jax.agent import make_agent
from cbet_jax.config import HabitatSettings, RunSettings
from cbet_jax.runs.directory import RunDirectory, RunDirectoryError
from cbet_jax.train import Program, make_program
from envs.habitat.workers.process import Settings
from envs.habitat.workers.simulators import Simulators, simulator_errors
from envs.habitat.world import habitat_world
from envs.types import World

EVALUATE = "experiments.habitat_evaluate"
PYTHON = "HABITAT_PYTHON"  # names the interpreter that habitat-sim is installed in
EMBEDDED = "raycast"  # which this interpreter runs by itself


def interpreter(simulator: str, named: str | None) -> str:
    """Returns the interpreter that a simulator runs in.

    Args:
        simulator: the simulator's name.
        named: on the command line (None: the environment's `HABITAT_PYTHON`, else this one).
    """
    outside = os.environ.get(PYTHON) if simulator != EMBEDDED else None
    return named or outside or sys.executable


def process_settings(scene: str, habitat: HabitatSettings, python: str | None) -> Settings:
    """Returns what starts the simulators of a scene."""
    folder = Path(habitat.folder) if habitat.folder else None
    named = interpreter(habitat.simulator, python)
    return Settings(scene, habitat.simulator, folder, named)


@contextmanager
def simulators(settings: Settings, number: int) -> Iterator[Simulators]:
    """Keeps simulators while the block plays; they end with it, however it ends.

    Raises:
        SimulatorError: they cannot be started, or cannot go on.
    """
    started = Simulators(settings, number)
    try:
        with simulator_errors(started):
            yield started
    finally:
        started.close()


def worlds(habitat: HabitatSettings, played: Simulators) -> World:
    """Returns the worlds of a run, which simulators play."""
    return habitat_world(played, max_steps=habitat.max_steps, random_starts=habitat.random_starts)


def build(settings: RunSettings, played: Simulators) -> Program:
    """Puts worlds and training together; seeds take turns with the simulators."""
    assert settings.habitat is not None
    train, world = settings.train, worlds(settings.habitat, played)
    agent = make_agent(train.network, settings.transfer, world.num_actions, world.view_shape)
    return make_program(train, world, settings.seeds, settings.chunk, seeds_at_once=1, agent=agent)


def habitat_settings(directory: RunDirectory) -> tuple[RunSettings, HabitatSettings]:
    """Reads the settings of a run in Habitat.

    Raises:
        RunDirectoryError: it is none.
    """
    settings = directory.settings()
    if settings.habitat is None:
        raise RunDirectoryError(f"{directory.root} is a run of {settings.stage}, not in Habitat")
    return settings, settings.habitat
