"""List the commands: `python -m experiments`."""

import ast
from pathlib import Path

from experiments.common import cli


def main() -> None:
    """Print each command with the first line of its page, importing none of them."""
    folder = Path(__file__).parent
    names = [path.stem for path in sorted(folder.glob("*.py")) if not path.stem.startswith("_")]
    width = max(map(len, names))
    print(f"{cli.command_line('experiments.COMMAND')} --help says more about a command:\n")
    for name in names:
        print(f"  {name:{width}}  {_summary((folder / f'{name}.py').read_text())}")


def _summary(source: str) -> str:
    """Return the first line of a module's docstring, without the command line at its end."""
    line = (ast.get_docstring(ast.parse(source)) or "").split("\n", 1)[0]
    return line.split(": `python", 1)[0].rstrip(".")


if __name__ == "__main__":
    main()
