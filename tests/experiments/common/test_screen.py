"""What is shown stops nothing, whoever reads it."""

import os
import pty
import select
import subprocess
import sys
import time

import nbformat
import pytest
from nbclient import NotebookClient
from rich.table import Table
from rich.text import Text

from experiments.common import cli
from experiments.common.screen import Screen, say
from tests.support.families import others_slow, slow
from tests.support.notebooks import ROOT


def test_names_are_shown_as_they_are(capsys):
    Screen().print("runs/[/bold] :smile: [red]", soft_wrap=True)
    assert capsys.readouterr().out == "runs/[/bold] :smile: [red]\n"


NAMES = {  # as they are -> as a terminal shows them
    "\x1b[31mred\x1b]0;title\x9c": "\\x1b[31mred\\x1b]0;title\\x9c",
    "not UTF-8: \udcff": "not UTF-8: \\xdcff",
    "\u202eback\x7f": "\\x202eback\\x7f",
    "żółć 雪 🐍 [0.1, 0.2] a\nb": "żółć 雪 🐍 [0.1, 0.2] a\nb",
}


@pytest.mark.parametrize("name", NAMES)
def test_no_name_reaches_the_terminal_as_a_command_to_it(name, capsys):
    table = Table("run")
    table.add_row(Text(name))
    say(Screen(), name)
    assert capsys.readouterr().out == f"{NAMES[name]}\n"
    Screen().print(table)
    shown = capsys.readouterr().out
    assert all(letter.isprintable() or letter == "\n" for letter in shown)
    with pytest.raises(SystemExit):
        cli.fail(name, 2)
    assert capsys.readouterr().err == f"error: {' '.join(NAMES[name].split())}\n"


def test_a_file_gets_tables_whole_and_columns_limits_them(capsys, monkeypatch):
    table = Table("x" * 200)
    monkeypatch.delenv("COLUMNS", raising=False)
    Screen().print(table)
    assert "x" * 200 in capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", "80")
    Screen().print(table)
    assert max(map(len, capsys.readouterr().out.splitlines())) == 80


SHOWS = """
from experiments.common import cli
from experiments.common.screen import Screen
with cli.user_errors():
    for _ in range(3):
        Screen().print("x\\udcff" * 10000, soft_wrap=True)
import sys
sys.stderr.write("done")
"""
MOVES = """
from rich.live import Live
from cbet_jax.runs.progress_bar import Speedometer, display, waiting
from experiments.common.screen import Screen
screen = Screen()
assert screen.is_terminal
with waiting(screen, "compiling"):
    screen.print("one")
with display(screen, Speedometer(0, 10, 1)) as shown:
    shown.update(5, {})
    print("two")
with screen.status("playing"):
    screen.print("three")
with Live(console=screen, auto_refresh=False) as live:
    live.update("four", refresh=True)
"""
BEGIN = "import os, sys; os.login_tty(0); os.execvp(sys.argv[1], sys.argv[1:])"


def shown_in_a_terminal(code: str, seconds: float = 60.0, **variables: str) -> str:
    """Run a program in its own terminal, check that it succeeds, and return what it showed."""
    ours, theirs = pty.openpty()
    in_its_own = [sys.executable, "-c", BEGIN, sys.executable, "-c", code]
    environment = {**os.environ, "TERM": "xterm", **variables}
    process = subprocess.Popen(
        in_its_own, stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    shown, end = b"", time.monotonic() + seconds
    while time.monotonic() < end:
        if not select.select([ours], [], [], 0.1)[0]:
            continue
        try:
            shown += os.read(ours, 65536)
        except OSError:  # the last one who could write is gone
            break
    else:
        process.kill()
    os.close(ours)
    text = shown.decode(errors="replace")
    assert process.wait(timeout=seconds) == 0, text
    return text


def test_a_terminal_shows_what_moves_and_what_is_printed_meanwhile():
    shown = shown_in_a_terminal(MOVES)
    words = ("compiling", "one", "5/10 frames", "two", "playing", "three", "four")
    assert [word for word in words if word not in shown] == []


@pytest.mark.parametrize("unable", [{"TERM": "dumb"}, {"PYTHONIOENCODING": "ascii"}])
def test_a_terminal_that_cannot_show_what_moves_gets_plain_lines(unable):
    shown = shown_in_a_terminal(MOVES.replace("assert screen", "assert not screen"), **unable)
    assert "compiling ...\r\none\r\n5/10 frames" in shown
    assert "\x1b" not in shown


@pytest.mark.slow
def test_a_notebook_gets_plain_lines(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    cell = nbformat.v4.new_code_cell(MOVES.replace("assert screen", "assert not screen"))
    NotebookClient(nbformat.v4.new_notebook(cells=[cell]), timeout=60).execute()
    assert {output.output_type for output in cell.outputs} == {"stream"}
    text = "".join(output.text for output in cell.outputs)
    assert text.startswith("compiling ...\none\n5/10 frames")
    assert "\x1b" not in text


@pytest.mark.parametrize("output", others_slow(("closed pipe", "full", "closed"), ("full",)))
def test_output_that_nobody_reads_stops_nothing(output):
    reading, writing = os.pipe()
    os.close(reading)
    full = os.open("/dev/full", os.O_WRONLY)
    command = [sys.executable, "-c", SHOWS]
    if output == "closed":
        command = ["sh", "-c", 'exec "$@" >&-', "sh", *command]
    stdout = {"closed pipe": writing, "full": full}.get(output)
    done = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    os.close(full)
    assert done.stderr == b"done"
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("JAX_NUM_CPU_DEVICES", "x", "JAX_NUM_CPU_DEVICES must be a number in "),
        ("JAX_ENABLE_X64", "maybe", "JAX cannot be imported with these variables: invalid truth"),
        slow("JAX_DEBUG_NANS", "1", "JAX_DEBUG_NANS=True cannot be used"),
        ("JAX_NUMPY_DTYPE_PROMOTION", "strict", "JAX_NUMPY_DTYPE_PROMOTION=strict cannot be used"),
    ],
)
def test_an_environment_that_jax_or_this_package_cannot_use_is_refused(name, value, line):
    done = subprocess.run(
        [sys.executable, "-m", "experiments.chainworld"],
        env={**os.environ, name: value},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {line}")
    assert done.stderr.count("\n") == 1
