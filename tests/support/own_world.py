"""A file with worlds of somebody's own."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent

from envs.minigrid.generators import own_worlds

MAPS = '''
    """A small room, and two of them."""


    def make():
        return """
            WGWGWGWGWG
            WG>>  GGWG
            WGWGWGWGWG
            within 9 steps
        """


    def two():
        return [make(), make().replace(">>  ", "  <<")]
'''


@contextmanager
def own_world(folder: Path, content: str = MAPS) -> Iterator[Path]:
    """Write `my_world.py`; worlds that are loaded from it are forgotten afterwards."""
    path = folder / "my_world.py"
    path.write_text(dedent(content))
    try:
        yield path
    finally:
        forget()


def forget() -> None:
    """Forget all worlds that were added, as another process would not know them."""
    for made in (own_worlds._generators, own_worlds._functions):
        made.clear()
