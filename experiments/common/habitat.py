"""Start simulators, and build and read runs in Habitat; slow imports stand where they are used."""

import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from cbet_jax.config import HabitatSettings, RunSettings, SettingsError
from cbet_jax.runs.directory import RunDirectory, RunDirectoryError
from envs.habitat.simulator import SIMULATORS, AgentSize
from envs.habitat.workers.process import Settings
from experiments.common.screen import say

if TYPE_CHECKING:
    from cbet_jax.program import Program
    from envs.habitat.workers.simulators import Played, Simulators
    from envs.types import World

EVALUATE = "experiments.habitat_evaluate"  # the command to run next
PYTHON = "HABITAT_PYTHON"  # environment variable: the interpreter with habitat-sim
EMBEDDED = "raycast"  # the simulator that needs no other interpreter


def process_settings(
    scene: str, habitat: HabitatSettings, python: str | None, *, panoramas: bool = True
) -> Settings:
    """Return the settings that start simulators of a scene, in `python` or HABITAT_PYTHON's."""
    folder = Path(habitat.folder) if habitat.folder else None
    outside = os.environ.get(PYTHON) if habitat.simulator != EMBEDDED else None
    named = python or outside or sys.executable
    agent = AgentSize(habitat.agent_radius, habitat.agent_height)
    return Settings(
        *(scene, habitat.simulator, folder, named), agent=agent, up=habitat.up, panoramas=panoramas
    )


@contextmanager
def simulators(settings: Settings, number: int) -> "Iterator[Simulators]":
    """Start simulators, and close them at the block's end."""
    from envs.habitat.workers.simulators import Simulators, simulator_errors

    started = Simulators(settings, number)
    with simulator_errors(started), closing(started):
        yield started


def worlds(habitat: HabitatSettings, played: "Simulators") -> "World":
    """Return a run's worlds, played by simulators."""
    from envs.habitat.world import habitat_world

    return habitat_world(
        played,
        max_steps=habitat.max_steps,
        random_starts=habitat.random_starts,
        shared_start=habitat.shared_start,
    )


def build(settings: RunSettings, played: "Simulators") -> "Program":
    """Build the program that trains in scenes; seeds take turns with the simulators."""
    from cbet_jax.agent import world_agent
    from cbet_jax.method_check.check import refuse_misfit
    from cbet_jax.program import make_program

    assert settings.habitat is not None
    train, world = settings.train, worlds(settings.habitat, played)
    refuse_misfit(train, world.init, world.num_actions)
    agent = world_agent(train.network, settings.transfer, world)
    return make_program(train, world, settings.seeds, settings.chunk, seeds_at_once=1, agent=agent)


def habitat_settings(directory: RunDirectory) -> tuple[RunSettings, HabitatSettings]:
    """Read the settings of a run in Habitat, and refuse any other run."""
    settings = directory.settings()
    if settings.habitat is None:
        raise RunDirectoryError(f"{directory.root} is a run of {settings.stage}, not in Habitat")
    return settings, settings.habitat


def trusted(stored: HabitatSettings, said: str | None) -> HabitatSettings:
    """Return a run's Habitat settings, with the simulator that the command line names.

    A simulator's file is code, and a run may come from another person: only the command line
    may choose such a file.

    Raises:
        SettingsError: the run's simulator is a file, and the command line does not name it.
    """
    if said is None and stored.simulator not in SIMULATORS:
        raise SettingsError(
            f"the run's simulator is a file, {stored.simulator}, which is code: if you trust it, "
            f"add --simulator {stored.simulator}"
        )
    return replace(stored, simulator=said or stored.simulator)


def introduce(simulators: "Simulators", console: Console) -> None:
    """Say which simulator plays."""
    hello = simulators.workers.hello
    line = f"{len(simulators)} x {hello.simulator} {hello.version} ({hello.renderer})"
    say(console, f"simulators: {line}, scene {hello.scene}")


def played_time(played: "Played") -> dict[str, float]:
    """Return the speed and the simulators' share of the time, for the manifest."""
    if not played.steps:
        return {}
    return {
        "simulator_steps_per_second": round(played.steps / played.seconds, 1),
        "time_in_simulators": round(played.simulating / played.seconds, 3),
    }


def tell_time(played: "Played", console: Console) -> None:
    """Say how fast the simulators were played, and how much of the time they took."""
    if played.steps:
        speed, share = played.steps / played.seconds, played.simulating / played.seconds
        say(console, f"{speed:,.0f} simulator steps/s; simulators took {share:.0%} of the time")
