"""What differs between the training commands."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple

from rich.console import Console

from cbet_jax.config import RunSettings
from cbet_jax.program import Program
from cbet_jax.runs.directory import RunDirectory
from experiments.common.cli import FirstWords
from experiments.common.training_options import TrainingOptions


def start_from_init(directory: RunDirectory) -> None:
    """Do nothing: the run starts from `program.init`. Only transfer writes a checkpoint first."""


class Opened(NamedTuple):
    """A run that is ready to train, except for its directory."""

    settings: RunSettings
    program: Program
    prefix: str = ""  # before the name of a new run's directory
    begin: Callable[[RunDirectory], None] = start_from_init
    measured: Callable[[], dict[str, Any]] = dict  # what else the manifest records
    film: tuple[str, ...] | None = None  # words of `watch`


@dataclass(frozen=True)
class Experiment[O: TrainingOptions]:
    """What differs between the training commands."""

    module: str  # the command, as `python -m` names it
    stage: str  # of its runs, as `RunSettings.stage` names it
    #: returns the default options: those of `--preset`, or of the run that `--resume` continues
    defaults: Callable[[FirstWords, RunSettings | None], O]
    #: given the options and the stored settings, returns the settings that the user asks for;
    #: they must equal the stored ones
    resumed: Callable[[O, RunSettings], RunSettings]
    #: builds the run (stored settings None: a new run)
    opened: Callable[[O, RunSettings | None, Console], AbstractContextManager[Opened]]
    evaluate: str  # the command to suggest at the end
    #: builds one program for several runs, as their options say; None: each is trained alone
    opened_together: Callable[[Sequence[O], Console], tuple[list[RunSettings], Program]] | None = (
        None
    )
    #: the words of `watch` that film a policy at play when training has ended (None: no film)
    film: Callable[[O], tuple[str, ...] | None] | None = None
