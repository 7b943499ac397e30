"""All commands in one: `cbet watch`, or `python -m experiments watch`; alone, it lists them."""

import sys
from collections.abc import Sequence
from importlib import import_module, metadata
from typing import Annotated, Any, Union

import tyro

from envs.errors import did_you_mean
from experiments.common import cli, commands, invocation
from experiments.common.screen import forget_output

COMPLETION = "--completion"
SHELLS = ("bash", "zsh", "fish")
HELP = ("-h", "--help")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command that the first word names, or list the commands."""
    first, *rest = (sys.argv[1:] if arguments is None else list(arguments)) or HELP
    with cli.user_errors():
        if first in HELP:
            show()
            return
        if first == "--version":
            print(metadata.version("cbet-jax"))
            return
        if first == COMPLETION:
            complete(rest)
        module = commands.module_of(first)
        if module is None:
            near = did_you_mean(first, commands.MODULES)
            raise cli.SettingsError(f"unknown command {first!r}; {near}")
    if not {*HELP} & {*rest}:
        print(f"loading {first} ...", file=sys.stderr, flush=True)  # which takes seconds
    import_module(module).main(rest)


def show() -> None:
    """Print each command with the first line of its page, importing none of them."""
    lines = [f"{invocation.front('COMMAND')} --help says more about a command."]
    width = max(map(len, commands.MODULES))
    for heading, group in commands.GROUPS.items():
        lines += [f"\n{heading}:"]
        lines += [
            f"  {name:{width}}  {commands.summary(one.module)}" for name, one in group.items()
        ]
    try:
        print(*lines, sep="\n", flush=True)
    except BrokenPipeError:  # a reader has had enough
        forget_output()


def complete(words: Sequence[str]) -> None:
    """Print tyro's script that completes the commands and their options in a shell.

    Raises:
        SettingsError: the shell is not known.
        SystemExit: the script is printed.
    """
    if len(words) != 1 or words[0] not in SHELLS:
        raise cli.SettingsError(f"{COMPLETION} takes the name of a shell: {', '.join(SHELLS)}")
    kinds = []
    for name, (module, options) in commands.COMMANDS.items():
        place, _, kind = options.rpartition(":")
        subcommand = tyro.conf.subcommand(name, description="")
        kinds.append(Annotated[getattr(import_module(place or module), kind), subcommand])
    everything: Any = Union[tuple(kinds)]  # noqa: UP007 - made of a list
    tyro.cli(
        everything,
        prog=commands.PROGRAM,
        args=["--tyro-write-completion", words[0], "-"],
        config=(tyro.conf.OmitSubcommandPrefixes,),
    )


if __name__ == "__main__":
    main()
