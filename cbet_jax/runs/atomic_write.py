"""Write files that are whole, whenever the process dies."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to, which replaces `path` if the block succeeds.

    So the file is either complete, or as it was (or absent), whenever the process dies.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.unlink(missing_ok=True)  # of a process that was killed
    yield temporary
    os.replace(temporary, path)
