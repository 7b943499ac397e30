"""Read, build and begin runs in gridworlds; slow imports stand where they are used."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from rich.console import Console

import envs
from cbet_jax.analysis.method_style import plain_name
from cbet_jax.config import ObservationSettings, RunSettings, SettingsError
from cbet_jax.runs.directory import RunDirectory, RunDirectoryError
from cbet_jax.settings.as_json import first_difference, to_json
from experiments.common import opening
from experiments.common.training_options import Asked, Opened, TrainingOptions

if TYPE_CHECKING:
    from jax.sharding import Mesh

    from cbet_jax.agent import AgentParams
    from cbet_jax.program import Program

EVALUATE = "experiments.minigrid_evaluate"  # the command to run next


def gridworld_settings(directory: RunDirectory) -> RunSettings:
    """Read the settings of a run in gridworlds, and refuse any other run."""
    settings = directory.settings()
    if settings.habitat:
        raise RunDirectoryError(f"{directory.root} is a run of {settings.stage}, not in gridworlds")
    return settings


def view_options(settings: RunSettings) -> dict[str, Any]:
    """Return the options of `make_world` that show worlds as a run's policies see its own."""
    if settings.observation == ObservationSettings():
        return {}
    from envs.minigrid.generators import find
    from envs.minigrid.observations import largest_grid

    options = asdict(settings.observation)
    if "full" in settings.observation.view:  # other views do not depend on the run's worlds
        options["grid"] = largest_grid([find(name) for name in settings.environments])
    return options


def build(settings: RunSettings, mesh: "Mesh | None" = None, *others: RunSettings) -> "Program":
    """Build the program that trains in gridworlds, on one device or on those of a mesh.

    Args:
        settings: the run's settings.
        mesh: the devices (None: one device).
        *others: settings of runs trained beside it, which differ in numbers and first seeds.

    Raises:
        SettingsError: the program needs more memory than the device has, the counts cannot read
            gridworlds, or the other runs differ in more.
    """
    import jax

    from cbet_jax.agent import world_agent
    from cbet_jax.method_check.check import refuse_misfit
    from cbet_jax.program import make_program, seed_keys
    from cbet_jax.runs import memory

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
    world = envs.make_world(
        settings.environments,
        train.worlds,
        explore=settings.explore,
        staggered=settings.explore and not train.lockstep,
        **view_options(settings),
    )
    refuse_misfit(train, world.init, world.num_actions)
    agent = world_agent(train.network, settings.transfer, world)
    several = [run.train for run in (settings, *others)]
    program = make_program(several, world, settings.seeds, settings.chunk, agent=agent, mesh=mesh)
    state = jax.eval_shape(program.init, seed_keys(len(several) * settings.seeds))
    try:
        memory.refuse_state(state, mesh.size if mesh else 1)
    except SettingsError as error:
        fewer = f", or train fewer than {len(several)} runs --together" if others else ""
        raise SettingsError(f"{error}{fewer}") from None
    return program


@contextmanager
def opened[O: TrainingOptions](runs: Sequence[Asked[O]], console: Console) -> Iterator[Opened]:
    """Build the program of runs that begin with untrained policies."""
    first, *others = [run.options.settings for run in runs]
    program = build(first, opening.lay_out(runs[0].options, console), *others)
    prefix = "" if first.explore else f"{plain_name(first.environments[0])}-"
    yield Opened([first, *others], program, prefix)


def save_first_state(
    directory: RunDirectory, settings: RunSettings, program: "Program", pretrained: "AgentParams"
) -> None:
    """Save a transfer's first state, with its pre-trained policies (arrays `[seeds, ...]`)."""
    from cbet_jax.program import seed_keys
    from cbet_jax.runs import checkpoint, multihost

    assert settings.transfer is not None
    with multihost.first_inside(directory.lock):
        state = program.init(seed_keys(settings.seeds, settings.first_seed))
        learner = state.learner._replace(fixed=state.learner.fixed._replace(policy=pretrained))
        if settings.transfer.fine_tune:  # values of another reward would turn it from all it does
            copy = pretrained.learnt["params"]
            value = {name: 0 * leaf for name, leaf in copy["value"].items()}
            learner = learner._replace(policy={"params": {**copy, "value": value}})
        state = state._replace(learner=learner)
        checkpoint.save(directory.checkpoints, state, checkpoint.Position())
