"""Names of own code, one-line errors about names, and the results of checks."""

import difflib
from collections.abc import Callable, Iterable, Sized
from traceback import walk_tb
from typing import Any, NamedTuple

own_files: set[str] = set()  # of users' code, as tracebacks name them


def is_own(name: str) -> bool:
    """Return whether a name names a user's own code."""
    return ":" in name


def in_a_line(error: BaseException) -> str:
    """Return an error's type and the beginning of its text, whatever that text does.

    If own code led to it, its line stands first.
    """
    try:
        text = " ".join(str(error).split())[:300]
    except (Exception, SystemExit):
        text = ""
    where = f"{place}: " if (place := own_place(error)) else ""
    return f"{where}{type(error).__name__}: {text or 'no more is said'}"


def own_place(error: BaseException) -> str:
    """Return FILE:LINE of the innermost own code that led to an error, or ''."""
    places = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    return next((f"{file}:{line}" for file, line in reversed(places) if file in own_files), "")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a suggestion for a wrong name: the closest known names, or else all of them.

    For the path of a file it says to add the function's name.
    """
    if name.endswith(".py"):
        return f"name a function of that file, too: {name}:FUNCTION"
    names = {known_name.lower(): known_name for known_name in known}
    near = difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.4)
    if not near:
        return f"known: {', '.join(names.values()) or 'none'}"
    return f"did you mean {' or '.join(names[match] for match in near)}?"


class UnknownEnvironment(ValueError):  # noqa: N818 (the name says what is wrong)
    """No environment has this name; the message suggests similar names."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(f"unknown environment {name!r}; {did_you_mean(name, known)}")


class ImpossibleEnvironment(UnknownEnvironment):
    """No level can have the sizes in this name; the message says why."""

    def __init__(self, name: str, reason: str) -> None:
        ValueError.__init__(self, f"there is no environment {name!r}: {reason}")


class UnsupportedEnvironment(UnknownEnvironment):
    """This world cannot be played (in this way); the message says why."""

    def __init__(self, name: str, reason: str) -> None:
        ValueError.__init__(self, f"the world {name.partition('@')[0]}: {reason}")


class Check(NamedTuple):
    """The result of one check."""

    name: str
    problem: str = ""  # found and expected; empty if the check passed
    skipped: str = ""  # the reason, if the check was skipped

    def __str__(self) -> str:
        """Return the result as one line."""
        if self.skipped:
            return f"{self.name}: skipped: {self.skipped}"
        return f"{self.name}: failed: {self.problem}" if self.problem else f"{self.name}: ok"


class ContractError(Exception):
    """Ends a check that has found a problem."""


def expect(good: Any, problem: str) -> None:
    """End a check with this problem unless the first is true."""
    if not good:
        raise ContractError(problem)


def described(value: Any) -> str:
    """Return an array's type and shape, or what else the value is, in words."""
    if hasattr(value, "dtype"):
        return f"{value.dtype}{[*value.shape]}"
    empty = isinstance(value, Sized) and not len(value)
    return repr(value) if empty else type(value).__name__


class NotChecked(Exception):  # noqa: N818 (no error)
    """Ends a check that cannot be made; the message says why."""


def checked(name: str, check: Callable[[], None], *raised: type[Exception]) -> Check:
    """Run a check and return its result.

    Args:
        name: the check's name in messages.
        check: raises ContractError with the problem, or NotChecked with the reason.
        *raised: exceptions that are no result.
    """
    try:
        check()
    except ContractError as error:
        return Check(name, str(error))
    except NotChecked as reason:
        return Check(name, skipped=str(reason))
    except raised:
        raise
    except (Exception, SystemExit) as error:  # own code may raise anything
        return Check(name, in_a_line(error))
    return Check(name)
