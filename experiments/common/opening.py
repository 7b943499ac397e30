"""Open a run: read its command line, choose its devices and its directory."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from cbet_jax import own_code
from cbet_jax.analysis.method_style import plain_name
from cbet_jax.config import RunSettings, SettingsError
from cbet_jax.runs.directory import RunDirectory, RunDirectoryError
from cbet_jax.runs.manifest import sessions
from cbet_jax.settings.as_json import first_difference, to_json
from experiments.common import cli, presets
from experiments.common.cli import Said
from experiments.common.outputs import new_in_runs
from experiments.common.screen import say
from experiments.common.training_options import Experiment, TrainingOptions

if TYPE_CHECKING:
    from jax.sharding import Mesh

    from cbet_jax.runs.checkpoint import Loaded


def read[O: TrainingOptions](
    experiment: Experiment[O], arguments: Sequence[str]
) -> tuple[O, RunSettings | None]:
    """Read the command line; the preset or the resumed run fills in the rest.

    Returns:
        The options, and the settings of the run to resume (None: a new run).

    Raises:
        SettingsError: the command line is invalid.
        RunDirectoryError: the run to resume is missing, of another kind, or has other settings.
    """
    said = cli.said(arguments)
    stored = stored_settings(said)
    out = cli.value_of(said, "--out")
    if stored and stored.stage != experiment.stage:
        raise RunDirectoryError(f"{out} is a run of {stored.stage}, not {experiment.stage}")
    defaults = experiment.defaults(said, stored)
    options: O = cli.parse(type(defaults), arguments, experiment.module, default=defaults)
    if stored:
        from cbet_jax.intrinsic import refuse_unnamed  # imported here: it takes seconds
        from envs.minigrid.generators import own_worlds

        asked = experiment.resumed(options, stored)
        refuse_unnamed(asked.train.method)  # code of a stranger is run only if the line names it
        if not asked.habitat:
            own_worlds.refuse_unnamed(asked.environments)
        if "--frames" in said and asked.train.frames > stored.train.frames:
            # The run is made longer.
            if any("imported" in one for one in sessions(RunDirectory(Path(out or "")).manifest)):
                raise RunDirectoryError(f"{out} was imported without its optimizer and counts")
            stored = replace(stored, train=replace(stored.train, frames=asked.train.frames))
        difference = first_difference(to_json(stored), to_json(asked))
        if difference:
            new = {asked.train.method, *asked.environments}
            new -= {stored.train.method, *stored.environments}  # else they differ in their order
            own = any("@" in name for name in new) and "@" in difference
            kept = "; the run keeps the code that it began with" if own else ""
            raise RunDirectoryError(f"{out} was started with other settings: {difference}{kept}")
    return options, stored


def stored_settings(said: Said) -> RunSettings | None:
    """Return the settings of the run to resume, None for a new run."""
    if "--resume" not in said:
        return None
    out = cli.value_of(said, "--out")
    if out is None:
        raise SettingsError("--resume needs --out DIR, the run to continue")
    return RunDirectory(Path(out)).settings()


def lay_out(options: TrainingOptions, console: Console) -> "Mesh | None":
    """Connect to the other hosts, then choose the mesh of devices (None: a single device).

    Raises:
        SettingsError: devices or hosts are missing, or the devices do not divide the run.
    """
    from cbet_jax.runs import devices, multihost  # imported here: it takes seconds

    devices.use_cpu(options.devices)
    if options.distributed:
        multihost.join()
        console.quiet = not multihost.is_first()
    return devices.make_mesh(options.train, options.seeds, options.devices)


def open_directory(options: TrainingOptions, settings: RunSettings, prefix: str) -> RunDirectory:
    """Return the run's directory, a new one in runs/ named after `prefix` if none is given.

    Raises:
        RunDirectoryError: the directory holds something else.
    """
    from cbet_jax.runs import multihost  # imported here: it takes seconds

    preset = options.preset or presets.DEFAULT
    method = settings.train.method
    name = f"{prefix}{plain_name(method)}-{preset}"

    def open_() -> str:
        directory = RunDirectory(options.out or new_in_runs(name))
        if not options.resume:
            directory.create(settings)
            worlds = map(own_code.source, settings.environments)
            directory.keep_code(own_code.source(method), filter(None, worlds))
        return str(directory.root)

    return RunDirectory(Path(multihost.on_first(open_)))


def tell_damaged(loaded: "Loaded", console: Console) -> None:
    """Name the damaged checkpoints that were skipped."""
    for path in loaded.damaged:
        say(console, f"checkpoint {path} is damaged: using {loaded.path.name}")
