"""What a command says that refuses its arguments."""

import re

import pytest


def refused(main, arguments, capsys, status=2) -> str:
    """Return the one line that `main` ends with, or what tyro says in its box."""
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    error = capsys.readouterr().err
    assert stop.value.code == status
    if not error.startswith("error: "):
        said = " ".join(re.sub("[│╭╮╰╯─]|---+", " ", error).split())
        assert "For full helptext" in said
        return said
    assert error.count("\n") == 1
    assert error.endswith("\n")
    return error
