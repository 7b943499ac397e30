"""Import a policy of the published code: `python -m experiments.import_torch model.tar DIR`.

DIR becomes a finished run: its policy can be evaluated, watched and (in gridworlds) transferred.
It cannot be trained further, since optimizer state and counts are not imported. Only this command
needs PyTorch (the extra `torch`).
"""

import hashlib
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from cbet_jax import config
from cbet_jax.runs import manifest, metrics_table
from cbet_jax.runs.directory import RunDirectory
from envs.errors import UnknownEnvironment
from envs.habitat.simulator import ACTIONS, VIEW_SHAPE
from experiments.common import cli, gridworlds, habitat, invocation
from experiments.common.screen import Screen, say
from experiments.published_code import checkpoint as published
from experiments.published_code.settings import run_settings, worlds

if TYPE_CHECKING:
    from cbet_jax.networks.published_weights import Policy

MODULE = "experiments.import_torch"


@dataclass(frozen=True)
class ImportOptions:
    """Turn a checkpoint of the published PyTorch code into a run."""

    source: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="model.tar")]
    #: the run's new directory
    directory: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]
    #: worlds or scene that it was trained in (none: as the checkpoint says)
    envs: tuple[str, ...] = ()
    #: how rooms are played from now on
    habitat: Annotated[config.HabitatSettings, tyro.conf.arg(name="")] = field(
        default_factory=config.HabitatSettings
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Import the checkpoint that the command line names."""
    arguments = sys.argv[1:] if arguments is None else arguments
    console = Screen()
    with cli.user_errors(UnknownEnvironment):
        options: ImportOptions = cli.parse(ImportOptions, arguments, MODULE)
        from cbet_jax.networks.published_weights import WeightsError  # takes seconds

        directory = RunDirectory(options.directory)
        if directory.config.exists():
            raise config.SettingsError(f"{directory.root} already holds a run: choose another")
        stored = published.read(options.source)
        try:
            policy = converted(stored, worlds(stored, options.envs))
            settings = run_settings(stored, policy.network, options.envs, options.habitat)
        except (WeightsError, config.SettingsError) as error:
            raise config.SettingsError(f"{options.source} cannot be imported: {error}") from None
        with console.status("importing"):
            imported = origin(options.source, stored)
            state = whole_state(settings, policy)
            directory.create(settings)
            with directory.lock():
                try:
                    write(directory, settings, state, imported, ["python -m", MODULE, *arguments])
                except BaseException:
                    directory.discard()
                    raise
    evaluate = habitat.EVALUATE if settings.habitat else gridworlds.EVALUATE
    following = invocation.command_line(evaluate, directory.root)
    say(console, f"imported at {settings.train.frames:,} frames; next: {following}")


def converted(stored: published.PublishedCheckpoint, names: Sequence[str]) -> "Policy":
    """Convert the policy to one of ours, for worlds of these names.

    Raises:
        WeightsError: the policy does not fit these worlds.
    """
    from cbet_jax.networks.published_weights import convert  # imported here: it takes seconds
    from envs.minigrid import make_world

    if stored.in_rooms:
        return convert(stored.tensors, len(ACTIONS), VIEW_SHAPE, images=True)
    world = make_world(names[:1], 1, explore=True)
    return convert(stored.tensors, world.num_actions, world.view_shape)


def origin(source: Path, stored: published.PublishedCheckpoint) -> dict[str, Any]:
    """Return the policy's origin, for the run's manifest."""
    with open(source, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    found = {"file": source.name, "sha256": digest, "updates": stored.updates}
    floats = {name: x for name, x in stored.flags.items() if isinstance(x, float)}
    infinite = {name: str(x) for name, x in floats.items() if not math.isfinite(x)}
    return {**found, "flags": {**stored.flags, **infinite}}  # JSON has no infinity


def write(
    directory: RunDirectory,
    settings: config.RunSettings,
    state: Any,
    imported: dict[str, Any],
    command: Sequence[str],
) -> None:
    """Write a finished run.

    Args:
        directory: the run's directory, already created and locked.
        settings: the run's settings.
        state: what `whole_state` returns.
        imported: the policy's origin.
        command: words of the command line.
    """
    from cbet_jax.runs import checkpoint  # imported here: it takes seconds

    iterations = settings.train.iterations
    rows = metrics_table.HEADER.encode()
    digest = metrics_table.rows_digest(rows)
    position = checkpoint.Position(iterations, settings.train.frames, len(rows), digest)
    directory.metrics.write_bytes(rows)
    checkpoint.save(directory.checkpoints, state, position)
    manifest.Session(directory.manifest, command).record(directory.manifest, imported=imported)


def whole_state(settings: config.RunSettings, policy: "Policy") -> Any:
    """Return the state of a finished run; only its policy matters.

    In rooms it holds only the policy, because the rest needs simulators.

    Raises:
        SettingsError: the state does not fit into memory.
    """
    import jax  # imported here: it takes seconds
    import jax.numpy as jnp

    from cbet_jax.agent import make_agent
    from cbet_jax.program import seed_keys

    params = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], policy.params)  # of one seed
    keys = seed_keys(settings.seeds, settings.first_seed)
    if settings.habitat:
        agent = make_agent(settings.train.network, None, len(ACTIONS), VIEW_SHAPE)
        return {"learner": {"policy": params, "fixed": jax.vmap(agent.init)(keys).fixed}}
    state = gridworlds.build(settings).init(keys)
    return state._replace(
        learner=state.learner._replace(policy=params),
        iteration=jnp.full_like(state.iteration, settings.train.iterations),
    )


if __name__ == "__main__":
    main()
