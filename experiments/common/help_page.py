"""The page that `--help` prints: the common options first, and no noise."""

import contextlib
import io
import os
import re
import shutil
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

WIDEST = 100  # columns of a page
POSITIONAL = "positional arguments"
COLUMNS = "129"  # that tyro prints in: one more, and it would put boxes beside each other
DEFAULT = re.compile(r"\s*\(default: ?(None|False|)\)")
BOX = "│╭╮╰╯─ "


class Entry(NamedTuple):
    """One option."""

    group: str
    words: str  # such as "--frames N"
    text: str

    @property
    def name(self) -> str:
        """The option, without its value."""
        return self.words.split(",")[0].split(" ")[0]


def page(
    program: str,
    about: str,
    printed: Callable[[], Any],
    common: Sequence[str] | None,
    choices: Mapping[str, Callable[[], Sequence[str]]],
) -> str:
    """Return a command's help.

    Args:
        program: the line that starts the command.
        about: what it does, in paragraphs; the short page has the first.
        printed: prints tyro's own help.
        common: options of the short page, in their order (None: the long page, with all).
        choices: returns the values of an option whose type does not list them.
    """
    entries = [_with_choices(entry, choices) for entry in _entries(_captured(printed))]
    shown = entries if common is None else _chosen(entries, common)
    width = min(shutil.get_terminal_size().columns, WIDEST)
    arguments = [entry.words for entry in entries if entry.group == POSITIONAL]
    lines = [" ".join(["usage:", program, *arguments, "[OPTIONS]"]), ""]
    for paragraph in about.split("\n\n")[: 1 if len(shown) < len(entries) else None]:
        lines += [*textwrap.wrap(paragraph, width), ""]
    for group in dict.fromkeys(entry.group for entry in shown) if common is None else [""]:
        lines += [f"{group}:"] if group else []
        of_group = [entry for entry in shown if group in ("", entry.group)]
        lines += [*_table(of_group, width), ""]
    if len(shown) < len(entries):
        lines.append(f"{len(shown)} of {len(entries)} options; --help-all lists the others.")
    return "\n".join(lines).rstrip()


def _chosen(entries: Sequence[Entry], common: Sequence[str]) -> list[Entry]:
    """Return the arguments and the common options, or all where none are called common."""
    by_name = {entry.name: entry for entry in entries}
    arguments = [entry for entry in entries if entry.group == POSITIONAL]
    chosen = [by_name[name] for name in common if name in by_name]
    return [*arguments, *chosen] if chosen else list(entries)


def _captured(printed: Callable[[], Any]) -> str:
    """Return what tyro prints, unwrapped."""
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")  # with which tyro draws boxes
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = COLUMNS
    try:
        with contextlib.redirect_stdout(output), contextlib.suppress(SystemExit):
            printed()
    finally:
        os.environ.pop("COLUMNS")
        if before is not None:
            os.environ["COLUMNS"] = before
    output.seek(0)
    return re.sub(r"\x1b\[[0-9;]*m", "", output.read())


def _entries(text: str) -> list[Entry]:
    """Read the options back from tyro's boxes."""
    entries: list[Entry] = []
    group = ""
    for line in text.splitlines():
        if line.startswith("╭"):
            group = line.strip(BOX)
        elif line.startswith("│"):
            inner = line.strip("│").rstrip()
            if inner.startswith("   ") and entries and entries[-1].group == group:
                last = entries.pop()
                entries.append(last._replace(text=f"{last.text} {inner.strip()}".strip()))
            elif inner.startswith(" -") or group == POSITIONAL:
                words, _, rest = inner.strip().partition("  ")
                entries.append(Entry(group, words, rest.strip()))
    return [_quiet(entry) for entry in entries if entry.words != "-h, --help"]


def _quiet(entry: Entry) -> Entry:
    """Return an option without its `--no-` form and its default, where it is off by default."""
    off = entry.text.endswith("(default: False)")
    words = entry.words.split(",")[0] if off else entry.words
    return entry._replace(words=words, text=DEFAULT.sub("", entry.text))


def _with_choices(entry: Entry, choices: Mapping[str, Callable[[], Sequence[str]]]) -> Entry:
    if entry.name not in choices:
        return entry
    return entry._replace(words=f"{entry.name} {{{','.join(choices[entry.name]())}}}")


def _table(entries: Sequence[Entry], width: int) -> list[str]:
    """Return a line or more for each option: its words, and beside or below them what it is."""
    column = min(max((len(entry.words) for entry in entries), default=0), 28) + 4
    lines = []
    for entry in entries:
        text = textwrap.wrap(entry.text, width - column) or [""]
        words = f"  {entry.words}"
        if len(words) > column - 2:
            head, _, values = words.partition(" {")
            if len(words) > width and values:
                words = f"{head} {{{values.replace(',', ', ')}"
            lines += textwrap.wrap(
                words, width, subsequent_indent=" " * column, break_on_hyphens=False
            )
            words = ""
        lines += [f"{words:{column}}{text[0]}".rstrip(), *(" " * column + t for t in text[1:])]
    return lines
