"""Transfers exploration: `python -m experiments.minigrid_transfer --from RUN --env Unlock`.

A new policy learns one task from its own reward, biased by a pre-trained one that nothing
changes: softmax(f_e + alpha f_i) (paper, section 3.3). The run's first checkpoint holds the
pre-trained policies, so that the run they come from is not needed again.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import tyro
from jaxtyping import Array, Int
from rich.console import Console

from cbet_jax.config import NetworkSettings, RunSettings, SettingsError, TransferSettings
from cbet_jax.runs import checkpoint, multihost
from cbet_jax.runs.checkpoint import Position
from cbet_jax.runs.directory import RunDirectory, RunDirectoryError
from cbet_jax.runs.json_files import to_json
from cbet_jax.runs.saved_policies import load_policies
from cbet_jax.setting_types import check_between
from cbet_jax.train import Program, seed_keys
from envs.minigrid import make_world
from envs.registry import UnknownEnvironment
from experiments.common import cli, presets, training
from experiments.common.training import build

MODULE = "experiments.minigrid_transfer"


@dataclass(frozen=True, kw_only=True)
class Options(training.Options):
    """Trains agents on one MiniGrid task, biased by pre-trained policies."""

    source: Annotated[Path, tyro.conf.arg(name="from", metavar="RUN")]  # the pre-trained run
    env: str  # the world whose task it is
    checkpoint: int | None = None  # frames of RUN's checkpoint (default: its newest)
    #: which of RUN's seeds biases every agent (default: each agent has the one of the same index)
    seed_index: int | None = None
    alpha: float = 1.0  # weight of the pre-trained logits
    alpha_frames: int | None = None  # alpha falls linearly to 0 over so many (default: it stays)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.train.method != "none" or self.train.extrinsic_weight <= 0:
            raise SettingsError(
                "transfer learns from the task's own reward alone: leave --method out, and "
                "--extrinsic-weight above 0 (for both rewards: experiments.minigrid_tabula_rasa)"
            )

    def settings(self, frames: int, network: NetworkSettings) -> RunSettings:
        """Returns what decides the numbers.

        Args:
            frames: of the pre-trained run's checkpoint.
            network: of the pre-trained policies.
        """
        return self.run(
            self.env,
            explore=False,
            transfer=TransferSettings(
                run=str(self.source),
                frames=frames,
                network=network,
                seed_index=self.seed_index,
                alpha=self.alpha,
                alpha_frames=self.alpha_frames,
            ),
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the experiment that the command line asks for."""
    arguments = sys.argv[1:] if arguments is None else arguments
    console = Console()
    with cli.user_errors(UnknownEnvironment):
        options, stored = read(arguments)
        mesh = training.lay_out(options, console)
        settings, biases = (stored, None) if stored else pretrained(options, console)
        program = build(settings, mesh)
        directory = training.open_directory(options, settings, f"{options.env}-transfer-")
        if multihost.on_first(lambda: not checkpoint.checkpoints(directory.checkpoints)):
            biases = pretrained(options, console)[1] if biases is None else biases
            begin(directory, settings, program, biases)
        host = training.host_settings(options, arguments, console)
        training.execute(directory, settings, program, host, MODULE)


def read(arguments: Sequence[str]) -> tuple[Options, RunSettings | None]:
    """Reads the command line; what it does not say comes from the preset or the resumed run.

    Returns:
        The options, and the settings of the run to resume, None for a new run.
    """
    first = cli.first(arguments, cli.FirstOfTransfer)
    stored = training.stored_settings(first)
    defaults = resumed(first, stored) if stored else fresh(first)
    options: Options = cli.parse(Options, arguments, MODULE, default=defaults)
    if stored and stored.transfer:
        frames = stored.transfer.frames if options.checkpoint is None else options.checkpoint
        settings = options.settings(frames, stored.transfer.network)
        training.refuse_other_settings(options, stored, settings)
    return options, stored


def fresh(first: cli.FirstOfTransfer) -> Options:
    """Returns the defaults of a new run: as many seeds as were pre-trained, or the one chosen."""
    preset = cli.preset(first.preset)
    source = training.gridworld_settings(RunDirectory(first.source)) if first.source else preset
    return Options(
        train=replace(presets.for_task(preset, first.env), method="none"),
        source=tyro.MISSING,
        env=tyro.MISSING,
        seeds=preset.seeds if first.seed_index is not None else source.seeds,
        first_seed=preset.first_seed,
        chunk=preset.chunk,
    )


def resumed(first: cli.FirstOfTransfer, stored: RunSettings) -> Options:
    """Returns the defaults of a run that is to go on.

    Raises:
        RunDirectoryError: it is no run of transfer.
    """
    transfer = stored.transfer
    if transfer is None:
        raise RunDirectoryError(f"{first.out} is a run of {stored.stage}, not transfer")
    preset = cli.preset(first.preset) if first.preset else None
    return Options(
        train=replace(presets.for_task(preset, first.env), method="none")
        if preset
        else stored.train,
        source=Path(transfer.run),
        env=stored.environments[0],
        seeds=stored.seeds,
        first_seed=stored.first_seed,
        chunk=preset.chunk if preset else stored.chunk,
        checkpoint=transfer.frames,
        seed_index=transfer.seed_index,
        alpha=transfer.alpha,
        alpha_frames=transfer.alpha_frames,
    )


def pretrained(options: Options, console: Console) -> tuple[RunSettings, Any]:
    """Reads the policies to transfer.

    Returns:
        The settings of the run of transfer, and f_i for each of its seeds: `[seeds, ...]`.

    Raises:
        SettingsError: there are too few of them. RunDirectoryError: there are none that fit.
    """
    directory = RunDirectory(options.source)
    source = training.gridworld_settings(directory)
    if source.transfer is not None:
        raise SettingsError(f"{options.source} is a run of transfer itself: its policy is biased")
    world = make_world((options.env,), 1, explore=False)
    policies = load_policies(directory, source, world, options.checkpoint)
    training.tell_damaged(policies.loaded, console)
    settings = options.settings(policies.loaded.position.frames, source.train.network)
    chosen = seed_indices(options, source.seeds)
    return settings, jax.tree.map(lambda leaf: leaf[chosen], policies.params.learnt)


def seed_indices(options: Options, pretrained_seeds: int) -> Int[Array, " seeds"]:
    """Returns which pre-trained seed biases each agent: `[seeds]`.

    Raises:
        SettingsError: there are too few of them.
    """
    index = options.seed_index
    if index is None and options.seeds > pretrained_seeds:
        raise SettingsError(
            f"{options.seeds} seeds need as many pre-trained ones, but {options.source} has "
            f"{pretrained_seeds}: choose one for all with --seed-index"
        )
    if index is not None:
        check_between("seed_index", index, 0, pretrained_seeds - 1)
    agents = jnp.arange(options.seeds)
    return agents if index is None else jnp.full_like(agents, index)


def begin(directory: RunDirectory, settings: RunSettings, program: Program, biases: Any) -> None:
    """Saves the state before the first step, with the pre-trained policies in their place."""
    with multihost.first_inside(directory.lock):
        state = program.init(seed_keys(settings.seeds, settings.first_seed))
        fixed = state.learner.fixed._replace(policy=biases)
        state = state._replace(learner=state.learner._replace(fixed=fixed))
        checkpoint.save(directory.checkpoints, state, Position(), to_json(settings))


if __name__ == "__main__":
    main()
