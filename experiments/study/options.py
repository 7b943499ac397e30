"""What the command line of a study may say, and what it says."""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import NamedTuple

from cbet_jax.runs.directory import RunDirectoryError, refuse_other_content
from cbet_jax.runs.reading import DIGEST, read_json, reading
from cbet_jax.settings.as_json import first_difference, from_json
from cbet_jax.settings.ranges import SettingsError
from experiments.common import cli, presets
from experiments.common.outputs import RUNS
from experiments.study.plan import Selection, StudySettings
from experiments.study.variants import SETUPS, check_names, method_names
from experiments.sweeps.plans import PlanOptions

SEEDS = {"paper": 7}  # the published number; of the other presets:
FEWER_SEEDS = 3
RECORD = "study.json"


class Study(NamedTuple):
    """What one command runs by default."""

    name: str  # of its directory
    program: str  # as it is called
    methods: tuple[str, ...]
    setups: tuple[str, ...]
    tasks: dict[str, tuple[str, ...]]  # preset -> worlds that are learnt, too


@dataclass(frozen=True, kw_only=True)
class StudyOptions(PlanOptions, Selection, StudySettings):
    """Run or continue a study of the paper, and report its results."""

    out: Path | None = None  # the study's directory, new or begun (None: runs/STUDY-PRESET)
    report_only: bool = False  # train nothing: report what is finished

    def __post_init__(self) -> None:
        PlanOptions.__post_init__(self)
        StudySettings.__post_init__(self)
        if self.plan and self.report_only:
            raise SettingsError("--plan prints commands, --report-only a report: leave one out")
        if self.until_success is None and self.success_frames != Selection.success_frames:
            raise SettingsError("--success-frames belongs to --until-success")
        if self.tasks_until is not None and not self.tasks:
            raise SettingsError("--tasks-until belongs to --tasks, and there are none")

    @property
    def settings(self) -> StudySettings:
        """The settings that all runs share."""
        names = (field.name for field in fields(StudySettings))
        return StudySettings(**{name: getattr(self, name) for name in names})


def read(study: Study, arguments: Sequence[str]) -> tuple[StudyOptions, Path]:
    """Read the command line; what it does not say comes from the study begun, or the preset.

    Returns:
        The options, and the study's directory.

    Raises:
        SettingsError: a name is unknown, or a number out of range. RunDirectoryError: the
            directory holds a study with other settings.
    """
    said = cli.said(arguments)
    name, out = cli.value_of(said, "--preset"), cli.value_of(said, "--out")
    root = Path(out) if out else RUNS / f"{study.name}-{name or presets.DEFAULT}"
    refuse_other_content(root / RECORD, "study")
    stored = stored_study(root)
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
    from envs.minigrid.generators import find  # imported here: it takes seconds

    check_names("method", options.methods, method_names())
    check_names("setup", options.setups, SETUPS)
    for kind, named in (("task", options.tasks), ("world", options.envs)):
        known = [find(world).name for world in named]
        check_names(kind, known, known)
    return options, root


def stored_study(root: Path) -> StudySettings | None:
    """Return the settings of the study in a directory, None where there is none.

    Raises:
        RunDirectoryError: they cannot be read.
    """
    path = root / RECORD
    if not os.path.lexists(path):
        return None
    with reading(path):
        nested = read_json(path)
        nested.pop(DIGEST, None)  # older studies have none
        return from_json(StudySettings, nested)
