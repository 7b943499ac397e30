"""What the commands for gridworlds share: a run's settings, its devices and its program."""

from collections.abc import Sequence
from dataclasses import replace

import jax
from jax.sharding import Mesh

from cbet_jax.agent import world_agent
from cbet_jax.config import RunSettings, SettingsError
from cbet_jax.program import Program, make_program, seed_keys
from cbet_jax.runs import memory
from cbet_jax.runs.directory import RunDirectory, RunDirectoryError
from cbet_jax.settings_json import first_difference, to_json
from envs.minigrid import make_world

EVALUATE = "experiments.minigrid_evaluate"  # the command to run next


def gridworld_settings(directory: RunDirectory) -> RunSettings:
    """Read the settings of a run in gridworlds.

    Raises:
        RunDirectoryError: it is no such run.
    """
    settings = directory.settings()
    if settings.habitat:
        raise RunDirectoryError(f"{directory.root} is a run of {settings.stage}, not in gridworlds")
    return settings


def build(settings: RunSettings, mesh: Mesh | None = None) -> Program:
    """Build the program that trains in gridworlds, on one device or on those of a mesh.

    Raises:
        NotEnoughMemoryError: it needs more memory than there is. SettingsError: its views cannot be
            counted so.
    """
    return build_together([settings], mesh)


def build_together(runs: Sequence[RunSettings], mesh: Mesh | None = None) -> Program:
    """Build the program that trains several runs beside each other.

    Args:
        runs: their settings, which differ in numbers and first seeds only.
        mesh: the devices, as one of the runs would have them (None: one device).

    Raises:
        SettingsError, NotEnoughMemoryError: the settings differ in more, or as `build` says.
    """
    settings, *others = runs
    for other in others:
        alike = replace(other, train=settings.train, first_seed=settings.first_seed)
        if difference := first_difference(to_json(settings), to_json(alike)):
            raise SettingsError(f"runs of one program differ in train's numbers only: {difference}")
    train = settings.train
    if train.counts.keys == "ternary":
        raise SettingsError(
            "counts.keys=ternary codes the pixels of images: gridworlds, whose views are numbers "
            "of things, are counted with exact keys"
        )
    world = make_world(
        settings.environments,
        train.worlds,
        explore=settings.explore,
        staggered=settings.explore and not train.lockstep,
    )
    agent = world_agent(train.network, settings.transfer, world)
    several = [run.train for run in runs]
    program = make_program(several, world, settings.seeds, settings.chunk, agent=agent, mesh=mesh)
    state = jax.eval_shape(program.init, seed_keys(len(runs) * settings.seeds))
    try:
        memory.refuse_state(state, mesh.size if mesh else 1)
    except memory.NotEnoughMemoryError as error:
        fewer = f", or train fewer than {len(runs)} runs --together" if others else ""
        raise memory.NotEnoughMemoryError(f"{error}{fewer}") from None
    return program
