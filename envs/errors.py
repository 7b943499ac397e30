"""Errors that every kind of world raises."""

import difflib
from collections.abc import Iterable


class UnknownEnvironment(ValueError):  # noqa: N818 (it names what is wrong, not where)
    """A name that no environment has; the message is one line and gives the nearest names."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        names = list(known)
        by_lower_case = {known_name.lower(): known_name for known_name in names}
        near = difflib.get_close_matches(name.lower(), by_lower_case, n=3, cutoff=0.4)
        suggestion = " or ".join(by_lower_case[match] for match in near) or ", ".join(names)
        super().__init__(f"unknown environment {name!r}; did you mean {suggestion}?")


class ImpossibleEnvironment(UnknownEnvironment):
    """A name whose numbers no level can have; the message is one line and says why."""

    def __init__(self, name: str, reason: str) -> None:
        ValueError.__init__(self, f"there is no environment {name!r}: {reason}")


class UnsupportedEnvironment(UnknownEnvironment):
    """A name of another library's that cannot be played here; the message is one line, says why."""

    def __init__(self, name: str, reason: str) -> None:
        ValueError.__init__(self, f"environment {name!r} cannot be imported: {reason}")
