"""All commands in one: `cbet watch`, or `python -m experiments watch`; alone, it lists them."""

import sys
from collections.abc import Sequence
from importlib import import_module

from experiments.common import interrupts

with interrupts.at_once():
    from experiments.common import cli, commands, invocation
    from experiments.common.screen import put

COMPLETION = "--completion"
SHELLS = ("bash", "zsh")
HELP = ("-h", "--help", "--help-all")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command that the first word names, or list the commands."""
    first, *rest = (sys.argv[1:] if arguments is None else list(arguments)) or HELP[:1]
    with cli.user_errors():
        if first in HELP:
            show()
            return
        if first == COMPLETION:
            put(completion(rest))
            return
        module = commands.module_of(first)
        if module is None:
            raise cli.unknown_command(first)
    if not any(word in HELP for word in rest):
        print(f"loading {first} ...", file=sys.stderr, flush=True)  # which takes seconds
    with interrupts.at_once():
        command = import_module(module)
    command.main(rest)


def show() -> None:
    """Print each command with the first line of its page, importing none of them."""
    width = max(map(len, commands.MODULES))
    put(f"{invocation.front('COMMAND')} --help says more about a command.")
    for heading, group in commands.GROUPS.items():
        put(f"\n{heading}:")
        for name, module in group.items():
            put(f"  {name:{width}}  {commands.summary(module)}")


def completion(words: Sequence[str]) -> str:
    """Return the script that completes the commands and their options in a shell.

    Raises:
        SettingsError: the shell is not known.
    """
    from experiments.common import completion

    if len(words) != 1 or words[0] not in SHELLS:
        raise cli.SettingsError(f"{COMPLETION} takes the name of a shell: {' or '.join(SHELLS)}")
    return completion.script(words[0])


if __name__ == "__main__":
    main()
