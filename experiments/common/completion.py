"""Completion of `cbet`'s commands and options in a shell, as tyro writes it."""

import contextlib
import io
from importlib import import_module
from typing import Annotated, Any, Union

import tyro

from experiments.common import cli, commands


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
    return printed.getvalue()
