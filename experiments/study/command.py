"""The command line of a study: its plan, its runs, its report."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal, NamedTuple

import tyro
from rich.console import Console

from cbet_jax.config import Factors, SettingsError
from cbet_jax.runs.atomic_write import delete_left_over
from cbet_jax.runs.devices import use_cpu
from cbet_jax.runs.directory import RunDirectoryError, create_with_record, holds_no
from cbet_jax.runs.json_files import first_difference, from_json
from cbet_jax.setting_types import Frames, NonNegativeFloat, Processes, Worlds, check_fields
from envs.minigrid.generators.catalogue import TRANSFER as TEN_WORLDS
from envs.registry import UnknownEnvironment, find
from experiments.common import cli, invocation, presets
from experiments.common.endings import NOT_FINITE
from experiments.common.outputs import RUNS
from experiments.common.screen import Screen
from experiments.study import plan as plans
from experiments.study import plan_summary, report, results
from experiments.study.contents import RANDOM
from experiments.study.execute import Host, execute
from experiments.study.plan import Selection, StudyJob, StudySettings, plan
from experiments.study.report import Contents
from experiments.study.results import Result
from experiments.study.variants import SETUPS, check_names, method_names

SEEDS = {"paper": 7}  # the published number; of the other presets:
FEWER_SEEDS = 3
RECORD = "study.json"
RESULTS = "results.csv"


class Study(NamedTuple):
    """What one command runs by default."""

    name: str  # of its directory and its report
    program: str  # as it is called
    methods: tuple[str, ...]
    setups: tuple[str, ...]
    tasks: dict[str, tuple[str, ...]]  # preset -> worlds that are learnt, too
    report: str  # name of the report's file
    contents: Contents


@dataclass(frozen=True, kw_only=True)
class StudyOptions:
    """Run or continue a study of the paper, and report its results."""

    COMMON: ClassVar[tuple[str, ...]] = (
        *("--preset", "--out", "--setups", "--methods", "--envs", "--seeds", "--budget"),
        *("--plan", "--report-only", "--cluster"),
    )

    preset: str  # paper, laptop or smoke
    out: Path | None = None  # the study's directory, new or begun (default: runs/STUDY-PRESET)
    methods: tuple[str, ...]  # that are compared
    setups: tuple[str, ...]  # what is pre-trained in: MultiEnv, DoorKey, KeyCorridor
    tasks: tuple[str, ...]  # worlds learnt by transfer and tabula rasa
    envs: tuple[str, ...] = TEN_WORLDS  # worlds that pre-trained policies are evaluated in
    seeds: int  # of each run
    first_seed: int = 0  # the seeds are first_seed, first_seed + 1, ...
    #: of each pre-training run, for each seed; tasks get frames in the published proportion
    budget: Annotated[int, tyro.conf.arg(metavar="FRAMES")]
    actors: Worlds | None = None  # of each run (default: the preset's)
    episodes: int = 100  # of each seed in each world of an evaluation
    #: frames at which pre-trained policies are evaluated, besides the end
    evaluate_at: Annotated[tuple[int, ...], tyro.conf.arg(metavar="FRAMES ...")] = ()
    #: pre-training stops there for now, to compare all methods before any is finished; tasks are
    #: learnt only after the end of pre-training
    until: Annotated[int | None, tyro.conf.arg(metavar="FRAMES")] = None
    #: tasks stop there for now
    tasks_until: Annotated[Frames | None, tyro.conf.arg(metavar="FRAMES")] = None
    #: of matrix products: bfloat16 is faster where the processor multiplies such numbers
    factors: Factors = "float32"
    lockstep: bool = False  # all worlds of pre-training begin at once in the first environment
    decay_rate: bool = False  # the learning rate of the methods' own networks decays, too
    presets_of: Annotated[str, tyro.conf.Suppress] = presets.NEWEST  # kept, never asked for
    #: slurm: jobs of a cluster share the runs, through submitit; the last one writes the report
    cluster: Literal["local", "slurm"] = "local"
    parallel: Processes | None = None  # jobs of the cluster (default: pre-training runs to do)
    #: of each job, as submitit calls them: partition, time (minutes), gpus_per_node, mem, account
    slurm: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=VALUE ...")] = ()
    plan: bool = False  # print what would be done, how long it takes, and do nothing
    verbose: bool = False  # with --plan: print every run, too
    report_only: bool = False  # train nothing: report what is finished
    #: train nothing: draw the report of these results.csv, all together, into --out; only of
    #: --methods and --setups if they are given
    results: Annotated[tuple[Path, ...], tyro.conf.arg(metavar="FILE ...")] = ()
    #: between two checkpoints, at least (default: save at the end of each chunk, if saving takes at
    #: most a tenth of the time)
    checkpoint_seconds: NonNegativeFloat | None = None

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def selection(self) -> Selection:
        """The runs that are asked for now."""
        return Selection(
            self.methods, self.setups, self.tasks, self.envs, self.until, self.tasks_until
        )

    @property
    def settings(self) -> StudySettings:
        """The settings that all runs share."""
        return StudySettings(
            self.preset,
            self.budget,
            self.seeds,
            self.episodes,
            self.evaluate_at,
            self.factors,
            self.lockstep,
            self.decay_rate,
            self.presets_of,
            self.first_seed,
            self.actors,
        )


def main(study: Study, arguments: Sequence[str]) -> None:
    """Do what the command line asks for."""
    console = Screen()
    with cli.user_errors(UnknownEnvironment):
        options, root = read(study, arguments)
        if options.results:
            redraw(study, options, console)
            return
        diverged: list[Path] = []
        if options.plan:
            use_cpu()  # speeds are those of the devices that runs have
            jobs = plan(root, options.settings, options.selection)
            plan_summary.show(root, options.settings, jobs, console, options.verbose)
            if options.cluster == "slurm":
                from experiments.sweeps import command as sweep

                sweep.show_header(root, options.slurm, console)
            return
        if options.report_only:
            if stored_study(root) is None:
                raise holds_no("study", root / RECORD)
        else:
            jobs = plan(root, options.settings, options.selection)
            if options.cluster == "slurm":
                submit(study, options, root, jobs, arguments, console)
                return
            open_study(root, options.settings)
            use_cpu()
            delete_left_over(root, below=True)
            host = Host(console, tuple(arguments), options.checkpoint_seconds)
            diverged = execute(jobs, options.settings, host)
        found = results.collect(root, options.settings)
        results.write(root / RESULTS, found)
        tell(report.write(root, study.report, study.contents, found), console)
        if diverged:
            names = ", ".join(str(path) for path in diverged)
            cli.fail(f"diverged: {names}; all that does not need them is done", NOT_FINITE)


def submit(
    study: Study,
    options: StudyOptions,
    root: Path,
    jobs: Sequence[StudyJob],
    arguments: Sequence[str],
    console: Console,
) -> None:
    """Submit the command to SLURM, several times: its processes share the runs.

    Args:
        study: what the command runs by default.
        options: its command line.
        root: the study's directory.
        jobs: of the study.
        arguments: words of its command line.
        console: to print to.

    Raises:
        SettingsError: submitit is not installed, or there is no SLURM here.
    """
    from experiments.sweeps import command as sweep

    queue = sweep.open_slurm(root, options.slurm)
    open_study(root, options.settings)
    number = options.parallel or max(
        1, sum(job.stage == plans.PRETRAIN and not job.done for job in jobs)
    )
    words = [*arguments, "--out", str(root.absolute()), "--cluster", "local"]
    submitted = [queue.submit_command(study.program, words) for _ in range(number)]
    again = invocation.command_line(study.program, "--out", root, "--plan")
    line = f"submitted {number} jobs ({', '.join(submitted)}); how far they are: {again}"
    console.print(line, soft_wrap=True, highlight=False)


def redraw(study: Study, options: StudyOptions, console: Console) -> None:
    """Draw one report of the results of one or several studies; of several, write one table.

    Args:
        study: what the command runs by default.
        options: name the tables of results, the report's directory, and what is reported.
        console: to print to.

    Raises:
        SettingsError: no directory is named. RunDirectoryError: a table cannot be read, two have
            different values of one number, or the directory holds something else than a report.
    """
    root = options.out
    if root is None:
        raise SettingsError("--results needs --out DIR, where the report goes")
    found = chosen(study, options, results.read_together(options.results))
    earlier = root / f"{study.report}.md"
    ours = earlier.is_file() and earlier.read_text().startswith(f"# {study.contents.title}\n")
    if not ours and (root.is_file() or (root.exists() and any(root.iterdir()))):
        raise RunDirectoryError(f"{root} is not empty and holds no such report: choose another")
    root.mkdir(parents=True, exist_ok=True)
    if len(options.results) > 1:
        results.write(root / RESULTS, found)
    tell(report.write(root, study.report, study.contents, found), console)


def chosen(study: Study, options: StudyOptions, found: Sequence[Result]) -> list[Result]:
    """Return the results of the methods and setups that are named; of all, if none are."""
    all_methods, all_setups = options.methods == study.methods, options.setups == study.setups
    return [
        row
        for row in found
        if row.stage == results.STUDY
        or (
            (all_methods or row.method in (*options.methods, *RANDOM))
            and (all_setups or row.setup in (*options.setups, ""))
        )
    ]


def tell(files: Sequence[Path], console: Console) -> None:
    """Say where the report is."""
    line = f"report: {files[0]} and .html, with {len(files) - 1} pictures"
    console.print(line, soft_wrap=True, highlight=False)


def read(study: Study, arguments: Sequence[str]) -> tuple[StudyOptions, Path]:
    """Read the command line; what it does not say comes from the study begun, or the preset.

    Returns:
        The options, and the study's directory.

    Raises:
        SettingsError: a name is unknown, or a number out of range. RunDirectoryError: the
            directory holds a study with other settings.
    """
    first = cli.first_words(arguments)
    root = first.out or RUNS / f"{study.name}-{first.preset or presets.DEFAULT}"
    stored = stored_study(root)
    name = first.preset
    if name is None:
        name = stored.preset if stored else presets.DEFAULT
    frames = presets.named(name).train.frames
    base = stored or StudySettings(name, frames, SEEDS.get(name, FEWER_SEEDS), episodes=100)
    defaults = StudyOptions(
        **{**asdict(base), "preset": name},
        methods=study.methods,
        setups=study.setups,
        tasks=study.tasks.get(name, ()),
    )
    options: StudyOptions = cli.parse(StudyOptions, arguments, study.program, default=defaults)
    difference = stored and first_difference(asdict(stored), asdict(options.settings))
    if difference:
        raise RunDirectoryError(f"{root} is a study with other settings: {difference}")
    check_names("method", options.methods, method_names())
    check_names("setup", options.setups, SETUPS)
    for world in (*options.tasks, *options.envs):
        find(world)
    return options, root


def stored_study(root: Path) -> StudySettings | None:
    """Return the settings of the study in a directory, None where there is none.

    Raises:
        RunDirectoryError: they cannot be read.
    """
    path = root / RECORD
    if not path.is_file():
        return None
    try:
        return from_json(StudySettings, json.loads(path.read_text()))
    except (ValueError, TypeError, KeyError, OSError) as error:
        raise RunDirectoryError(f"{path} cannot be read: {str(error).splitlines()[0]}") from None


def open_study(root: Path, settings: StudySettings) -> None:
    """Make the study's directory, unless it is there.

    Raises:
        RunDirectoryError: the directory holds something else.
    """
    if not (root / RECORD).exists():
        create_with_record(root / RECORD, "study", asdict(settings))
