"""Errors about names of environments. Each message is one line."""

import difflib
from collections.abc import Iterable


class UnknownEnvironment(ValueError):  # noqa: N818 (the name says what is wrong)
    """No environment has this name; the message suggests similar names."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        names = list(known)
        by_lower_case = {known_name.lower(): known_name for known_name in names}
        near = difflib.get_close_matches(name.lower(), by_lower_case, n=3, cutoff=0.4)
        suggestion = " or ".join(by_lower_case[match] for match in near) or ", ".join(names)
        super().__init__(f"unknown environment {name!r}; did you mean {suggestion}?")


class ImpossibleEnvironment(UnknownEnvironment):
    """No level can have the sizes in this name; the message says why."""

    def __init__(self, name: str, reason: str) -> None:
        ValueError.__init__(self, f"there is no environment {name!r}: {reason}")


class UnsupportedEnvironment(UnknownEnvironment):
    """This environment of another library cannot be imported; the message says why."""

    def __init__(self, name: str, reason: str) -> None:
        ValueError.__init__(self, f"environment {name!r} cannot be imported: {reason}")
