"""Files that are whole whenever the process dies."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Gives a place to write a file to, which takes its own when the block ends well.

    So the file is either complete or as it was (or absent), whenever the process dies.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.unlink(missing_ok=True)  # of a process that was killed
    yield temporary
    os.replace(temporary, path)
