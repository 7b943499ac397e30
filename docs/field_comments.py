"""Comments of fields as their docstrings: an extension of griffe, which reads code for the site."""

from pathlib import Path
from typing import Any

import griffe


class FieldComments(griffe.Extension):
    """Takes the comment beside a field or a constant, or the `#:` above it, for its docstring."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        """Give an attribute its comment."""
        first, last = attr.lineno or 1, attr.endlineno or 1
        lines = [line.strip() for line in Path(attr.filepath).read_text().splitlines()]
        found = [line.partition("# ")[2] for line in lines[first - 1 : last] if "# " in line]
        while found and lines[last : last + 1] and lines[last].startswith("# "):
            found, last = [*found, lines[last][2:]], last + 1
        while first > 1 and lines[first - 2].startswith("#: "):
            found, first = [lines[first - 2][3:], *found], first - 1
        if found and attr.docstring is None:
            attr.docstring = griffe.Docstring(" ".join(found), parent=attr)
