"""Import a policy of the published code: `python -m experiments.import_torch model.tar DIR`.

DIR becomes a run that has finished: its policy can be evaluated, watched and (in gridworlds)
transferred as that of any pre-trained run. The published code's optimizer state and counts are not
imported, so the run cannot be trained further. Only this command needs PyTorch (the extra
`torch`).
"""

import hashlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import tyro

from cbet_jax.agent import make_agent
from cbet_jax.config import HabitatSettings, RunSettings, SettingsError
from cbet_jax.networks.published_weights import Policy, WeightsError
from cbet_jax.program import seed_keys
from cbet_jax.runs import checkpoint, manifest, metrics_table
from cbet_jax.runs.checkpoint import Position
from cbet_jax.runs.directory import RunDirectory
from envs.habitat.simulator import ACTIONS, VIEW_SHAPE
from envs.registry import UnknownEnvironment
from experiments.common import cli, gridworlds, habitat, invocation
from experiments.common.published_checkpoint import (
    PublishedCheckpoint,
    converted,
    read,
    run_settings,
    worlds,
)
from experiments.common.screen import Screen

MODULE = "experiments.import_torch"
SOURCE = tyro.conf.arg(metavar="model.tar", help="the checkpoint")
DIRECTORY = tyro.conf.arg(metavar="DIR", help="a new directory, of the run that is made of it")


@dataclass(frozen=True)
class ImportOptions:
    """Make a run of a checkpoint that the published PyTorch code has written."""

    source: Annotated[Path, tyro.conf.Positional, SOURCE]
    directory: Annotated[Path, tyro.conf.Positional, DIRECTORY]
    #: worlds it was trained in, or its scene (default: as the checkpoint says)
    envs: tuple[str, ...] = ()
    #: of a policy for rooms: how they are played from now on
    habitat: Annotated[HabitatSettings, tyro.conf.arg(name="")] = field(
        default_factory=HabitatSettings
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Import what the command line names."""
    arguments = sys.argv[1:] if arguments is None else arguments
    console = Screen()
    with cli.user_errors(UnknownEnvironment):
        options: ImportOptions = cli.parse(ImportOptions, arguments, MODULE)
        stored = read(options.source)
        names = worlds(stored.flags, options.envs)
        try:
            policy = converted(stored, names)
        except WeightsError as error:
            raise SettingsError(f"{options.source} cannot be imported: {error}") from None
        settings = run_settings(stored, policy.network, options.envs, options.habitat)
        directory = RunDirectory(options.directory)
        with console.status("importing"):
            imported = origin(options.source, stored)
            state = whole_state(settings, policy)
            directory.create(settings)
            write(directory, settings, state, imported, ["python -m", MODULE, *arguments])
    evaluate = habitat.EVALUATE if settings.habitat else gridworlds.EVALUATE
    line = f"imported at {settings.train.frames:,} frames; "
    line += f"next: {invocation.command_line(evaluate, directory.root)}"
    console.print(line, soft_wrap=True, highlight=False, markup=False)


def origin(source: Path, stored: PublishedCheckpoint) -> dict[str, Any]:
    """Return what the run's manifest tells of where the policy is from."""
    with open(source, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    flags = {str(name): _plain(value) for name, value in stored.flags.items()}
    return {"file": source.name, "sha256": digest, "updates": stored.updates, "flags": flags}


def _plain(value: Any) -> Any:
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def write(
    directory: RunDirectory,
    settings: RunSettings,
    state: Any,
    imported: dict[str, Any],
    command: Sequence[str],
) -> None:
    """Write a run that is at its end.

    Args:
        directory: of the run, which is made.
        settings: of the run.
        state: as `whole_state` returns it.
        imported: where the policy is from, for the manifest.
        command: words of the command line.
    """
    iterations = settings.train.iterations
    rows = metrics_table.HEADER.encode()
    position = Position(iterations, settings.train.frames, len(rows), metrics_table.digest_of(rows))
    with directory.lock():
        directory.metrics.write_bytes(rows)
        checkpoint.save(directory.checkpoints, state, position)
        manifest.Session(directory.manifest, command).record(imported=imported)


def whole_state(settings: RunSettings, policy: Policy) -> Any:
    """Return the state that a run at its end has, without what only learning needs.

    Raises:
        SettingsError: it does not fit into memory.
    """
    return _policy_alone(settings, policy) if settings.habitat else _state(settings, policy)


def _state(settings: RunSettings, policy: Policy) -> Any:
    state = gridworlds.build(settings).init(seed_keys(settings.seeds, settings.first_seed))
    return state._replace(
        learner=state.learner._replace(policy=_of_one_seed(policy)),
        iteration=jnp.full_like(state.iteration, settings.train.iterations),
    )


def _policy_alone(settings: RunSettings, policy: Policy) -> Any:
    """Return what is read to play: the rest of a state would take simulators to make."""
    agent = make_agent(settings.train.network, None, len(ACTIONS), VIEW_SHAPE)
    fixed = jax.vmap(agent.init)(seed_keys(settings.seeds, settings.first_seed)).fixed
    return {"learner": {"policy": _of_one_seed(policy), "fixed": fixed}}


def _of_one_seed(policy: Policy) -> Any:
    return jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], policy.params)


if __name__ == "__main__":
    main()
