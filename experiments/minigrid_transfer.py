"""Transfer exploration: `python -m experiments.minigrid_transfer --from RUN --env Unlock`.

A new policy learns one task from the task's own reward, biased by a pre-trained policy that stays
as it is: softmax(f_e + alpha f_i) (`cbet_jax.agent.biased`). That may be the policy of a task,
itself biased. With `--fine-tune` a copy of it learns on instead, near it. The run's first
checkpoint holds the pre-trained policies, so the run that they come from is not needed again.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np
import tyro
from rich.console import Console

from cbet_jax.analysis.method_style import plain_name
from cbet_jax.config import NetworkSettings, RunSettings, SettingsError, TransferSettings
from cbet_jax.runs import manifest
from cbet_jax.runs.directory import Checkpoint, RunDirectory
from cbet_jax.settings.ranges import check_between
from experiments.common import gridworlds, opening, presets, training_command
from experiments.common.cli import Said, value_of
from experiments.common.gridworlds import build, gridworld_settings, save_first_state, view_options
from experiments.common.outputs import given_run
from experiments.common.screen import say
from experiments.common.training_options import (
    Asked,
    Experiment,
    GridworldOptions,
    Opened,
    gridworld_options,
)

if TYPE_CHECKING:
    from cbet_jax.agent import AgentParams


@dataclass(frozen=True, kw_only=True)
class TransferOptions(GridworldOptions):
    """Train agents on one task in a gridworld, biased by pre-trained policies."""

    #: the pre-trained run, a run that learnt a task, or pretrained/NAME
    source: Annotated[Path, tyro.conf.arg(name="from", metavar="RUN")]
    env: str  # the world whose task is learnt
    #: of a new run: frames of RUN's checkpoint, best or newest (None: a task's best, else newest)
    checkpoint: Checkpoint = None
    #: learn all weights of a copy of the pre-trained policy on, instead of biasing a new one
    fine_tune: bool = False
    #: which of RUN's seeds biases every agent (None: each agent has the one of the same index)
    seed_index: int | None = None
    alpha: float = 1.0  # weight of the pre-trained logits
    #: frames over which alpha falls linearly to 0 (None: it stays)
    alpha_frames: int | None = None

    @property
    def settings(self) -> RunSettings:
        """The settings without the pre-trained policies; `settings_from` adds these."""
        return self.run_settings(self.env)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.train.method != "none" or self.train.extrinsic_weight <= 0:
            raise SettingsError(
                "transfer learns from the task's own reward only: leave --method out, and keep "
                "--extrinsic-weight above 0 (for both rewards: `cbet tabula-rasa`)"
            )

    def settings_from(
        self,
        frames: int,
        network: NetworkSettings,
        transfer: TransferSettings | None,
        best: bool = False,
    ) -> RunSettings:
        """Return the settings that decide the numbers; arguments as in `TransferSettings`."""
        return self.run_settings(
            self.env,
            explore=False,
            transfer=TransferSettings(
                run=str(self.source),
                frames=frames,
                network=network,
                transfer=transfer,
                fine_tune=self.fine_tune,
                seed_index=self.seed_index,
                alpha=self.alpha,
                alpha_frames=self.alpha_frames,
                best=best,
            ),
        )


class Pretrained(NamedTuple):
    """The pre-trained policies that a run begins with."""

    frames: int  # of their checkpoint
    network: NetworkSettings  # theirs
    transfer: TransferSettings | None  # what they began with, where they still hold it
    params: "AgentParams"  # arrays [seeds, ...]
    best: bool  # whether they are their run's best ones


def defaults(said: Said, stored: RunSettings | None) -> TransferOptions:
    """Return the options of the preset, or of the run to resume."""
    name = value_of(said, "--preset")
    base = presets.base(name, stored)
    begun = stored.transfer if stored else None
    fine_tune = begun.fine_tune if begun else "--fine-tune" in said
    if base is not stored:
        how = presets.FINE_TUNING if fine_tune else presets.TRANSFER
        train = presets.for_task(name, presets.task_of(said, stored), how)
        base = replace(base, train=replace(train, method="none"))
    if stored is None:
        base = presets.observing(like_named_source(said, base), said)
        return TransferOptions(**gridworld_options(base), source=tyro.MISSING, env=tyro.MISSING)
    assert begun is not None
    if base is not stored:
        base = like_source(stored, base, fine_tune=fine_tune)
    return TransferOptions(
        **gridworld_options(replace(base, seeds=stored.seeds, first_seed=stored.first_seed)),
        source=Path(begun.run),
        env=stored.environments[0],
        fine_tune=begun.fine_tune,
        seed_index=begun.seed_index,
        alpha=begun.alpha,
        alpha_frames=begun.alpha_frames,
    )


def like_named_source(said: Said, base: RunSettings) -> RunSettings:
    """Return a new run's settings: as many agents as were pre-trained, who see what these saw.

    If one pre-trained agent is chosen, there are as many agents as the preset says.
    """
    named = value_of(said, "--from")
    if named is None:
        return base
    source = gridworld_settings(RunDirectory(given_run(Path(named))))
    base = like_source(source, base, fine_tune="--fine-tune" in said)
    return base if "--seed-index" in said else replace(base, seeds=source.seeds)


def like_source(source: RunSettings, base: RunSettings, *, fine_tune: bool) -> RunSettings:
    """Return settings whose agents see what those of `source` do, or also have its network."""
    base = replace(base, observation=source.observation)
    if fine_tune:
        return replace(base, train=replace(base.train, network=source.train.network))
    base = presets.seeing_images(base) if "rgb" in source.observation.view else base
    network = replace(base.train.network, brightest=source.train.network.brightest)
    return replace(base, train=replace(base.train, network=network))


def resumed(options: TransferOptions, stored: RunSettings) -> RunSettings:
    """Return the settings that the options ask of a stored run."""
    assert stored.transfer is not None
    begun, asked = stored.transfer, options.checkpoint
    frames = asked if isinstance(asked, int) else begun.frames
    return options.settings_from(frames, begun.network, begun.transfer, begun.best)


@contextmanager
def opened(runs: Sequence[Asked[TransferOptions]], console: Console) -> Iterator[Opened]:
    """Build the run; its first checkpoint holds the pre-trained policies."""
    from cbet_jax.runs import checkpoint, multihost  # imported here: it takes seconds

    options, stored, _ = runs[0]
    mesh = opening.lay_out(options, console)
    loaded = None if stored else load_pretrained(options, console)
    settings = stored
    if loaded:
        if options.fine_tune and options.train.network != loaded.network:
            raise SettingsError("--fine-tune trains the network of --from: leave --network.* out")
        settings = options.settings_from(
            loaded.frames, loaded.network, loaded.transfer, loaded.best
        )
    assert settings is not None
    assert settings.transfer is not None
    program, frames = build(settings, mesh), settings.transfer.frames
    chosen = None if settings.transfer.best else frames

    def begin(directory: RunDirectory) -> None:
        if multihost.on_first(lambda: not checkpoint.checkpoints(directory.checkpoints)):
            multihost.on_first(lambda: manifest.refuse_lost_checkpoints(directory))
            pretrained = loaded or load_pretrained(replace(options, checkpoint=chosen), console)
            if pretrained.frames != frames:  # the source has another best one by now
                pretrained = load_pretrained(replace(options, checkpoint=frames), console)
            save_first_state(directory, settings, program, pretrained.params)

    yield Opened([settings], program, f"{plain_name(options.env)}-transfer-", begin)


def load_pretrained(options: TransferOptions, console: Console) -> Pretrained:
    """Load the policies to transfer, one for each seed.

    Raises:
        SettingsError: there are too few of them. RunDirectoryError: there are none that fit.
    """
    import jax  # imported here: it takes seconds

    from cbet_jax.runs.saved_policies import load_policies, without_reference
    from envs.minigrid import make_world

    directory = RunDirectory(given_run(options.source))
    source = gridworld_settings(directory)
    refuse_other_views(options, source)
    world = make_world((options.env,), 1, explore=False, **view_options(options.settings))
    policies = load_policies(directory, source, world, options.checkpoint)
    opening.tell_damaged(policies.loaded, console)
    now, asked = directory.saved_frames(), source.train.frames
    if options.checkpoint is None and now < asked and not manifest.ending(directory.manifest):
        say(console, f"{options.source} is unfinished, at {now:,} of {asked:,} frames")
    chosen = seed_indices(options, source.seeds)
    params, transfer = without_reference(policies.params, source.transfer)
    params = jax.tree.map(lambda leaf: leaf[chosen], params)
    frames = policies.loaded.position.frames
    best = policies.loaded.path.parent == directory.best
    return Pretrained(frames, source.train.network, transfer, params, best)


def refuse_other_views(options: TransferOptions, source: RunSettings) -> None:
    """Refuse pre-trained policies that have seen otherwise than the task's shall."""
    seen, shown = source.observation, options.observation
    if seen != shown:
        problem = f"{seen}, not {shown}: leave the view's options out"
    elif "full" not in seen.view:
        return
    else:
        sizes = [view_options(run)["grid"] for run in (source, options.settings)]
        if sizes[0] == sizes[1]:
            return
        seen_as, shown_as = (f"{width} x {height}" for width, height in sizes)
        problem = f"{seen} of {seen_as} cells, and {options.env} has {shown_as}"
    raise SettingsError(f"the policy of {options.source} has {problem}")


def seed_indices(options: TransferOptions, pretrained_seeds: int) -> np.ndarray:
    """Return which pre-trained seed biases each agent: `[seeds]`.

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
    agents = np.arange(options.seeds)
    return agents if index is None else np.full_like(agents, index)


EXPERIMENT = Experiment(
    module="experiments.minigrid_transfer",
    stage="transfer",
    evaluate=gridworlds.EVALUATE,
    defaults=defaults,
    resumed=resumed,
    opened=opened,
)
main = partial(training_command.main, EXPERIMENT)

if __name__ == "__main__":
    main()
