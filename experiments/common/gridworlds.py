"""What the commands for gridworlds share: a run's settings, its devices and its program."""

import jax
from jax.sharding import Mesh

from cbet_jax.agent import world_agent
from cbet_jax.config import RunSettings, SettingsError
from cbet_jax.runs import memory
from cbet_jax.runs.directory import RunDirectory, RunDirectoryError
from cbet_jax.train import Program, make_program, seed_keys
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
        SettingsError: it needs more memory than there is, or its views cannot be counted so.
    """
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
    program = make_program(train, world, settings.seeds, settings.chunk, agent=agent, mesh=mesh)
    state = jax.eval_shape(program.init, seed_keys(settings.seeds))
    memory.refuse_state(state, mesh.size if mesh else 1)
    return program
