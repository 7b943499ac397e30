"""Errors about names, of environments most of all, and problems that checks find: a line each."""

import difflib
from collections.abc import Iterable
from typing import NamedTuple


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return what a wrong name may have meant: the names most like it, or all where none is.

    A file of one's own is named with its function.
    """
    if name.endswith(".py"):
        return f"name a function of that file, too: {name}:FUNCTION"
    names = {known_name.lower(): known_name for known_name in known}
    near = difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.4)
    suggestion = " or ".join(names[match] for match in near) or ", ".join(names.values())
    return f"did you mean {suggestion}?"


class UnknownEnvironment(ValueError):  # noqa: N818 (the name says what is wrong)
    """No environment has this name; the message suggests similar names."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(f"unknown environment {name!r}; {did_you_mean(name, known)}")


class ImpossibleEnvironment(UnknownEnvironment):
    """No level can have the sizes in this name; the message says why."""

    def __init__(self, name: str, reason: str) -> None:
        ValueError.__init__(self, f"there is no environment {name!r}: {reason}")


class UnsupportedEnvironment(UnknownEnvironment):
    """This world cannot be played, or not in this way; the message says why."""

    def __init__(self, name: str, reason: str) -> None:
        ValueError.__init__(self, f"the world {name.partition('@')[0]}: {reason}")


class Check(NamedTuple):
    """What came of one check."""

    name: str
    problem: str = ""  # what was found, and what was expected; empty if all is well
    skipped: str = ""  # why it was not made

    def __str__(self) -> str:
        """One line."""
        if self.skipped:
            return f"{self.name}: skipped: {self.skipped}"
        return f"{self.name}: failed: {self.problem}" if self.problem else f"{self.name}: ok"


class ContractError(Exception):
    """Ends a check that has found a problem."""


class NotChecked(Exception):  # noqa: N818 (no error)
    """Ends a check that cannot be made; the message says why."""
