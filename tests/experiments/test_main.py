"""The list of commands."""

from pathlib import Path

import experiments
from experiments import __main__ as listing


def test_every_command_is_listed_with_one_line(capsys):
    listing.main()
    lines = capsys.readouterr().out.splitlines()[2:]
    found = dict(line.split(maxsplit=1) for line in lines)
    assert all(found.values())
    assert max(map(len, lines)) <= 110
    files = Path(experiments.__path__[0]).glob("*.py")
    assert found.keys() == {path.stem for path in files if not path.stem.startswith("_")}
