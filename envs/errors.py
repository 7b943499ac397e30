"""Errors about names, of environments most of all. Each message is one line."""

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question with the names most like a wrong one, or with all where none is like it."""
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
    """This environment of another library cannot be imported; the message says why."""

    def __init__(self, name: str, reason: str) -> None:
        ValueError.__init__(self, f"environment {name!r} cannot be imported: {reason}")
