"""Completion of `cbet`'s commands, options and names in a shell, as tyro writes it."""

import ast
import contextlib
import io
import re
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any, Union

import tyro

from cbet_jax.intrinsic import METHODS
from envs.registry import names
from experiments.common import cli, commands
from experiments.study.variants import SETUPS, method_names

ROOMS = "habitat-"  # begins the commands whose environments are scenes, not gridworlds
# Of tyro's scripts: the line with all options, and what is changed so that words that are no
# option complete as files.
OPTIONS = re.compile(r"^COMPLETION_SPEC = (.*)$", re.MULTILINE)
PRINT = "    # Output one completion per line.\n"
FILES = """\
    if not completions and not "".join(words[current_index:]).startswith("-"):
        completions = ["__TYRO_COMPLETE_FILES__"]
"""


def script(shell: str) -> str:
    """Return the completion script of all commands.

    Args:
        shell: bash or zsh.
    """
    options = [
        Annotated[kind, tyro.conf.subcommand(name, default=default, description="")]
        for name, module in commands.MODULES.items()
        for kind, default in [cli.options_of(import_module(module).main)]
    ]
    everything: Any = Union[tuple(options)]  # noqa: UP007 - made of a list
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        tyro.cli(
            everything,
            prog=commands.PROGRAM,
            args=["--tyro-write-completion", shell, "-"],
            config=(tyro.conf.OmitSubcommandPrefixes,),
        )
    return _with_names(printed.getvalue())


def _with_names(written: str) -> str:
    """Return tyro's script with the names of methods and worlds, which no type lists."""
    known: dict[str, Sequence[str]] = {
        "--method": tuple(METHODS),
        "--methods": method_names(),
        "--setups": tuple(SETUPS),
        "--env": names(),
        "--envs": names(),
        "--tasks": names(),
    }
    found = OPTIONS.search(written)
    assert found is not None
    everything = ast.literal_eval(found[1])
    for command, its in everything["subcommands"].items():
        for option in its["options"]:
            (name, *_) = option["flags"]
            if name in known and not command.startswith(ROOMS):
                option |= {"type": "choice", "choices": list(known[name])}
    start, end = found.span(1)
    changed = written[:start] + repr(everything) + written[end:]
    changed = changed.replace(PRINT, FILES + PRINT)
    return changed.replace("complete -F", "complete -o default -o filenames -F")
