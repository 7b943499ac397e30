"""Read off what a GPU would do, without one: `python -m experiments.gpu_program`.

Compiles a preset's training for a described GPU and prints what the compiled program holds: for
each loop the kernels that it starts, the bytes that it moves, its products, the places where the
host may wait, the lines of source that cost most; and from stated rates an estimate of the time.
With `--out` it writes

program.json       all numbers
program.md         the same as tables
program.txt.gz     the compiled program, for `--program`
"""

import gzip
import os
import shlex
import sys
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import jax
import tyro

from cbet_jax.config import Factors, SettingsError
from cbet_jax.runs.atomic_write import write_json
from cbet_jax.runs.directory import RunDirectoryError
from experiments.benchmarks import gpu_program_report, gpu_program_table, gpu_targets
from experiments.benchmarks.gpu_program_report import Compiled
from experiments.benchmarks.gpu_report_cases import GOAL_SEEDS, Case
from experiments.common import cli, presets
from experiments.common.screen import Screen

MODULE = "experiments.gpu_program"
JSON, TABLE, PROGRAM = "program.json", "program.md", "program.txt.gz"
GPU = tyro.conf.arg(help="h200, h100, or a file with a GpuTargetConfigProto of XLA as text")
STORED = tyro.conf.arg(help=f"read this {PROGRAM} of the same settings, and compile nothing")


@dataclass(frozen=True)
class GpuProgramOptions:
    """Say what a GPU would do in training, from the program compiled for it. Nothing is run."""

    preset: str | None = None  # paper, laptop or smoke
    seeds: int = GOAL_SEEDS  # side by side
    worlds: int | None = None  # for each seed (None: the preset's)
    factors: Factors = "bfloat16"  # of the network's products
    gpu: Annotated[str, GPU] = "h200"
    out: Path | None = None  # a folder to write to
    program: Annotated[Path | None, STORED] = None


def main(arguments: Sequence[str] | None = None) -> None:
    """Compile what the command line asks for, and print what its program holds."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    with cli.user_errors():
        options: GpuProgramOptions = cli.parse(GpuProgramOptions, arguments, MODULE)
        refuse_taken(options.out)
        case, description = case_of(options), gpu_targets.describe(options.gpu)
        if options.program:
            compiled = Compiled(read(options.program))
        elif gpu_program_report.has_plugin():
            compiled = gpu_program_report.compile_for(case, description)
        else:
            raise SettingsError(
                f"compiling for a GPU takes a plugin of JAX: {with_plugin(arguments)}"
            )
        content = gpu_program_report.make(case, description, compiled)
        text = gpu_program_table.markdown(content)
        Screen().print(text, soft_wrap=True, highlight=False, markup=False)
        if options.out:
            write(options.out, content, text, compiled)


def refuse_taken(folder: Path | None) -> None:
    """Refuse a folder that holds files of these names.

    Raises:
        RunDirectoryError: it does.
    """
    for path in (folder / name for name in (JSON, TABLE, PROGRAM)) if folder else ():
        if os.path.lexists(path):
            raise RunDirectoryError(f"{path} already exists: choose another folder")


def case_of(options: GpuProgramOptions) -> Case:
    """Return what the options ask to be trained.

    Raises:
        SettingsError: there is no such preset, or its settings do not allow it.
    """
    if options.seeds < 1:
        raise SettingsError(f"seeds must be at least 1, not {options.seeds}")
    run = presets.named(options.preset)
    network = replace(run.train.network, factors=options.factors)
    worlds = run.train.worlds if options.worlds is None else options.worlds
    settings = replace(run.train, network=network, worlds=worlds)
    return Case(options.preset or presets.DEFAULT, settings, run.environments, options.seeds)


def with_plugin(arguments: Sequence[str]) -> str:
    """Return the command that runs this one with JAX's compiler for GPUs."""
    plugin = f"jax-cuda13-plugin=={jax.__version__}"
    return shlex.join(["uv", "run", "--with", plugin, "python", "-m", MODULE, *arguments])


def read(path: Path) -> str:
    """Return the text of a compiled program, compressed or not.

    Raises:
        SettingsError: the file cannot be read.
    """
    try:
        data = path.read_bytes()
        return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise SettingsError(f"cannot read {path}: {error}") from None


def write(folder: Path, content: dict[str, Any], text: str, compiled: Compiled) -> None:
    """Write what was found, and the program.

    Raises:
        RunDirectoryError: the folder cannot be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / JSON, content)
        (folder / TABLE).write_text(text)
        (folder / PROGRAM).write_bytes(gzip.compress(compiled.text.encode(), mtime=0))
    except OSError as error:
        raise RunDirectoryError(f"cannot write to {folder}: {error.strerror}") from None


if __name__ == "__main__":
    main()
