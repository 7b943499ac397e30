"""The console of commands; a closed pipe never stops a command."""

import contextlib
import io
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, TextIO, cast

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

UNABLE = ("dumb", "unknown")  # values of TERM
WITHOUT_DISPLAY = "utf-8"  # encoding where there is no standard output
NOTEBOOK = "ipykernel."  # modules of a notebook's output, which says that it is a terminal
UNLIMITED = 10_000  # columns of a file


class Screen(Console):
    """The console of a command.

    It prints names as they are: no markup, no emoji, no sequences that a terminal would obey. In a
    file, a pipe or a notebook, lines are unlimited unless COLUMNS limits them.
    """

    def __init__(self, **options: Any) -> None:
        if in_notebook():
            options = {"force_jupyter": False, "force_terminal": False, **options}
        super().__init__(file=cast(TextIO, _Output()), markup=False, emoji=False, **options)
        if not (self.is_terminal or "COLUMNS" in os.environ):
            self.width = UNLIMITED

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """Yield the segments of something to print, their text `printable`."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))


def printable(text: str) -> str:
    """Return text in which what no terminal shows is written as an escape sequence."""
    return "".join(x if x.isprintable() or x == "\n" else f"\\x{ord(x):02x}" for x in text)


def in_notebook() -> bool:
    """Return whether a notebook shows the text printed."""
    return type(sys.stdout).__module__.startswith(NOTEBOOK)


def say(console: Console, line: object) -> None:
    """Print one line, however long."""
    console.print(str(line), soft_wrap=True, highlight=False, markup=False)


class _Output(io.TextIOBase):
    """The current standard output; text for a closed pipe is dropped."""

    def __init__(self) -> None:
        self._is_gone = False

    @property
    def encoding(self) -> str:  # type: ignore[override]  # a variable there, in name only
        """The encoding of standard output."""
        return getattr(_standard_output(), "encoding", None) or WITHOUT_DISPLAY

    def write(self, text: str) -> int:
        """Write text, with escape sequences where it cannot be encoded."""
        shown = text.encode(self.encoding, "backslashreplace").decode(self.encoding)
        self._try(lambda output: output.write(shown))
        return len(text)

    def flush(self) -> None:
        """Flush standard output."""
        self._try(lambda output: output.flush())

    def _try(self, work: Callable[[TextIO], object]) -> None:
        output = _standard_output()
        if output is None or self._is_gone:
            return
        try:
            work(output)
        except OSError:
            self._is_gone = True
            forget_output()

    def isatty(self) -> bool:
        """Return whether standard output is a terminal that can move text and draw Unicode."""
        output = _standard_output()
        able = os.environ.get("TERM") not in UNABLE and self.encoding.lower().startswith("utf")
        return able and output is not None and output.isatty()

    def fileno(self) -> int:
        """Return the file descriptor of standard output."""
        output = _standard_output()
        if output is None:
            raise io.UnsupportedOperation("fileno")
        return output.fileno()


def _standard_output() -> TextIO | None:
    """Return standard output itself, not the stand-in that rich's progress bars put there."""
    return getattr(sys.stdout, "rich_proxied_file", sys.stdout)


def flush_output() -> None:
    """Flush stdout; if its pipe is closed, keep Python from reporting an error at exit."""
    if sys.stdout is not None:
        try:
            sys.stdout.flush()
        except OSError:
            forget_output()


def forget_output() -> None:
    """Redirect stdout to /dev/null, so Python reports no error at exit."""
    with contextlib.suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
