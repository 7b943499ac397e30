"""What a command says that refuses its arguments."""

import pytest


def refused(main, arguments, capsys, status=2) -> str:
    """Return the one line that `main` ends with, and with that exit status."""
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    error = capsys.readouterr().err
    assert stop.value.code == status
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert error.endswith("\n")
    return error
