"""What the commands that train share: starting a run, going on with it, saying how it ended."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import jax
import tyro
from jax.sharding import Mesh
from rich.console import Console

from cbet_jax.agent import make_agent
from cbet_jax.analysis import figures
from cbet_jax.config import RunSettings, SettingsError, TrainSettings
from cbet_jax.runs import devices, multihost
from cbet_jax.runs.checkpoint import Loaded
from cbet_jax.runs.directory import RunDirectory, RunDirectoryError
from cbet_jax.runs.json_files import first_difference, to_json
from cbet_jax.runs.train_loop import HostSettings, NonFiniteLossError, Outcome, train
from cbet_jax.setting_types import NonNegativeFloat, PositiveInt, check_between, check_fields
from cbet_jax.train import Program, make_program, seed_keys
from envs.minigrid import make_world
from experiments.common import cli

EVALUATE = "experiments.minigrid_evaluate"
RUNS = Path("runs")
GIB = 2**30
STOPPED = 128  # exit status, plus the number of the signal
NOT_FINITE = 1  # exit status


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of every command that trains."""

    train: Annotated[TrainSettings, tyro.conf.arg(name="")]
    seeds: int  # agents trained side by side
    first_seed: int  # the seeds are first_seed, first_seed + 1, ...
    chunk: int  # iterations between two looks of the host
    preset: str | None = None  # paper (default), laptop or smoke
    out: Path | None = None  # the run's directory (default: a new one in runs/)
    resume: bool = False  # go on with the run in --out
    #: between two checkpoints, at least (default: each chunk's end is saved, as long as that takes
    #: a tenth of the time at most)
    checkpoint_seconds: NonNegativeFloat | None = None
    keep_at: tuple[int, ...] = ()  # frames at which the policies are kept for good
    #: for seeds and worlds (default: all GPUs that can be used, or all cores of the CPU); it
    #: changes the order of sums alone
    devices: PositiveInt | None = None
    distributed: bool = False  # several hosts train together, each with this command

    def run(self, *environments: str, **more: Any) -> RunSettings:
        """Returns what decides the numbers of a run.

        Args:
            *environments: that it plays.
            **more: what a command's own options say.
        """
        return RunSettings(
            self.train, environments, self.seeds, self.first_seed, self.chunk, **more
        )

    def __post_init__(self) -> None:
        check_fields(self)
        if self.devices is not None and self.distributed:
            raise SettingsError("--distributed takes devices of all hosts: leave --devices out")
        for frames in self.keep_at:
            check_between("keep_at", frames, 1, self.train.frames)


def stored_settings(first: cli.First) -> RunSettings | None:
    """Returns the settings of the run to resume, None for a new run.

    Raises:
        SettingsError: no directory is named. RunDirectoryError: there is no run in it.
    """
    if not first.resume:
        return None
    if first.out is None:
        raise SettingsError("--resume needs --out DIR, the run to go on with")
    return RunDirectory(first.out).settings()


def shared(base: RunSettings) -> dict[str, Any]:
    """Returns the options of every command that trains, as a run or a preset has them."""
    return {name: getattr(base, name) for name in ("train", "seeds", "first_seed", "chunk")}


def gridworld_settings(directory: RunDirectory) -> RunSettings:
    """Reads the settings of a run in gridworlds.

    Raises:
        RunDirectoryError: it is none.
    """
    settings = directory.settings()
    if settings.habitat:
        raise RunDirectoryError(f"{directory.root} is a run of {settings.stage}, not in gridworlds")
    return settings


def refuse_other_settings(
    options: Options, stored: RunSettings | None, settings: RunSettings
) -> None:
    """Checks that the command line does not contradict the run that it goes on with.

    Raises:
        RunDirectoryError: it does; the message names the first setting that differs.
    """
    if stored is None:
        return
    if stored.stage != settings.stage:
        raise RunDirectoryError(f"{options.out} is a run of {stored.stage}, not {settings.stage}")
    difference = first_difference(to_json(stored), to_json(settings))
    if difference:
        raise RunDirectoryError(f"{options.out} was started with other settings: {difference}")


def lay_out(options: Options, console: Console) -> Mesh | None:
    """Joins other hosts, and lays seeds and worlds out over devices, before any is used.

    Returns:
        The devices, None for one alone.

    Raises:
        SettingsError: there are not as many as asked for, or they do not divide the run, or the
            other hosts are not to be found.
    """
    devices.use_cpu(options.devices)
    if options.distributed:
        multihost.join()
        console.quiet = not multihost.is_first()
    return devices.make_mesh(options.train, options.seeds, options.devices)


def build(settings: RunSettings, mesh: Mesh | None = None) -> Program:
    """Puts gridworlds and training together, on one device or on those of a mesh.

    Raises:
        SettingsError: they take more memory than there is, or what is seen cannot be counted so.
    """
    train = settings.train
    if train.counts.keys == "ternary":
        raise SettingsError(
            "counts.keys=ternary codes the pixels of images: gridworlds, whose views are numbers "
            "of things, are counted with exact keys"
        )
    world = make_world(settings.environments, train.worlds, explore=settings.explore)
    agent = make_agent(train.network, settings.transfer, world.num_actions, world.view_shape)
    program = make_program(train, world, settings.seeds, settings.chunk, agent=agent, mesh=mesh)
    state = jax.eval_shape(program.init, seed_keys(settings.seeds))
    needed = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))
    there = devices.memory(mesh)
    if needed > there:
        raise SettingsError(
            f"training keeps {needed / GIB:.1f} GiB, count tables most of all, and there are "
            f"{there / GIB:.1f} GiB: ask for fewer --seeds, or a smaller --counts.capacity"
        )
    return program


def open_directory(options: Options, settings: RunSettings, prefix: str = "") -> RunDirectory:
    """Returns the run's directory; a new run's is made.

    Raises:
        RunDirectoryError: something else lies there already.
    """
    preset = options.preset or cli.DEFAULT
    name = f"{prefix}{settings.train.method}-{preset}-{datetime.now():%Y%m%d-%H%M%S}"

    def open_() -> str:
        directory = RunDirectory(options.out or RUNS / name)
        if not options.resume:
            directory.create(settings)
        return str(directory.root)

    return RunDirectory(Path(multihost.on_first(open_)))


def execute(
    directory: RunDirectory,
    settings: RunSettings,
    program: Program,
    host: HostSettings,
    command: str,
    evaluate: str = EVALUATE,
) -> None:
    """Trains, and says how the run ended and what to do next.

    Args:
        directory: of the run.
        settings: of the run.
        program: what they ask for.
        host: what to show, and how often to save.
        command: that goes on with the run.
        evaluate: the command that comes next.

    Raises:
        SystemExit: the run did not reach its end.
    """
    host.console.print(f"run directory: {directory.root}", soft_wrap=True, highlight=False)
    try:
        outcome = train(directory, settings, program, host)
    except NonFiniteLossError as error:
        cli.fail(str(error), NOT_FINITE)
    if outcome.finished:
        draw_figures(directory)
    report(outcome, directory, host.console, command, evaluate)


def draw_figures(directory: RunDirectory) -> None:
    """Draw the learning curves of a run, on the first host."""

    def draw() -> None:
        figures.draw_learning_curves(directory.metrics, directory.figures)

    multihost.on_first(draw)


def host_settings(options: Options, arguments: Sequence[str], console: Console) -> HostSettings:
    """Returns what the host is to do."""
    return HostSettings(console, tuple(arguments), options.checkpoint_seconds, options.keep_at)


def report(
    outcome: Outcome,
    directory: RunDirectory,
    console: Console,
    command: str,
    evaluate: str = EVALUATE,
) -> None:
    """Says how the run ended and what to do next; a stopped run ends the process."""
    if outcome.finished:
        how = "finished" if outcome.trained else "had already finished"
        after = cli.command_line(evaluate, directory.root)
        line = f"{how} at {outcome.frames:,} frames; next: {after}"
    else:
        again = cli.command_line(command, "--out", directory.root, "--resume")
        line = f"stopped and saved at {outcome.frames:,} frames; continue with: {again}"
    console.print(line, soft_wrap=True, highlight=False, markup=False)
    if not outcome.finished:
        raise SystemExit(STOPPED + outcome.signal)


def tell_damaged(loaded: Loaded, console: Console) -> None:
    """Says which checkpoints were passed over."""
    for path in loaded.damaged:
        console.print(f"checkpoint {path} is damaged: using {loaded.path.name}", soft_wrap=True)
