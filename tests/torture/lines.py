"""Command lines: every command, every option at its extremes, and the environment."""

import os
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from experiments.common.commands import MODULES
from tests.torture.trial import Trial, run, trouble

GROUP = "command lines"
# Words that let a command get as far as it can without work: it ends where it would write.
NOWHERE = "/proc/nowhere"
BASES: dict[str, list[str]] = {
    "chainworld": ["--out", NOWHERE],
    "watch": ["--env", "Unlock", "--out", f"{NOWHERE}.gif"],
    "pretrain": ["--preset", "smoke", "--out", NOWHERE],
    "evaluate": [NOWHERE],
    "report": [NOWHERE],
    "transfer": ["--from", NOWHERE, "--env", "Unlock", "--preset", "smoke"],
    "tabula-rasa": ["--env", "Unlock", "--preset", "smoke", "--out", NOWHERE],
    "habitat-pretrain": ["--preset", "smoke", "--scene", "nowhere", "--out", NOWHERE],
    "habitat-evaluate": [NOWHERE],
    "sweep": ["--plan", "--preset", "smoke", "--grid", "method=cbet,count"],
    "paper": ["--plan", "--preset", "smoke"],
    "ablation": ["--plan", "--preset", "smoke"],
    "noisy-tv": ["--plan", "--preset", "smoke"],
    "compare": [NOWHERE, NOWHERE],
    "reward-maps": ["--out", NOWHERE],
    "import-torch": [NOWHERE, NOWHERE],
    "doctor": ["--out", NOWHERE],
    "benchmark": ["--groups", "nowhere", "--out", f"{NOWHERE}/x.json"],
}
WHOLE = ("-1", "0", "4294967296", "1e30", "9" * 60, "1e999999999", "x", "1.5")
REAL = ("-1", "nan", "inf", "1e300", "-1e-400", "x")
WORDS = ("", "x" * 5000, "[/red] :smile:", "\udcff", "../..", "\x1b[2J")
ENVIRONMENTS = (
    {"JAX_PLATFORMS": "cuda"},
    {"JAX_PLATFORMS": "nonsense"},
    {"XDG_CACHE_HOME": "/proc/nowhere"},
    {"HOME": "/nonexistent"},
    {"COLUMNS": "0"},
    {"TERM": "dumb"},
    {"LANG": "C", "PYTHONIOENCODING": "ascii"},
)


def trials(folder: Path) -> Iterator[Trial]:
    """Yield a trial for each option of each command, at some of its extremes in turn."""
    turn = 0
    for name, options in _options(folder).items():
        yield _line(name, [])
        yield _line(name, ["--no-such-option"])
        yield _line(name, ["--help"], ())
        for option, kind in options:
            values = {"N": WHOLE, "INT": WHOLE, "FLOAT": REAL}.get(kind, WORDS)
            for _ in range(2 if values is not WORDS else 1):
                turn += 1
                yield _line(name, [option, values[turn % len(values)]])
    for variables in ENVIRONMENTS:
        for name in ("pretrain", "watch"):
            yield _line(name, [], variables=variables)


def _options(folder: Path) -> dict[str, list[tuple[str, str]]]:
    """Return the options of each command that take a value, and what kind it is of."""
    found = {}
    for name, module in MODULES.items():
        main = import_module(module).main
        page = run(lambda main=main: main(["--help-all"]), folder).out  # type: ignore[misc]
        entries = re.findall(r"^ +(--[\w.-]+)(?:[ ,|]+--[\w.-]+)* ?([A-Z\[{]\S*)?", page, re.M)
        found[name] = [(option, kind.strip("[]")) for option, kind in entries if kind]
    return found


def _line(
    name: str,
    words: list[str],
    base: tuple[str, ...] | None = None,
    variables: dict[str, str] | None = None,
) -> Trial:
    line = [*(BASES.get(name, [NOWHERE]) if base is None else base), *words]
    main = import_module(MODULES[name]).main

    def work(folder: Path) -> str:
        ended = run(lambda: main(line), folder, variables)
        found = trouble(ended)
        left = [str(path.relative_to(folder)) for path in folder.rglob("*")]
        if not found and ended.status and left:
            found = f"left behind: {left[0]}"
        return found

    shown = " ".join(word if len(word) < 40 else f"{word[:37]}..." for word in line)
    said = " ".join(f"{key}={value}" for key, value in (variables or {}).items())
    return Trial(GROUP, f"{said} {name} {shown}".strip().encode(errors="replace").decode(), work)


def display_trials() -> Iterator[Trial]:
    """Yield trials of standard output that takes nothing."""
    for name in MODULES:
        for output in ("/dev/full", "closed pipe"):
            yield Trial("displays", f"{name} > {output}", _unread(name, output))


def _unread(name: str, output: str):  # type: ignore[no-untyped-def]
    main = import_module(MODULES[name]).main

    def work(folder: Path) -> str:
        def shown() -> None:
            if output == "closed pipe":
                reading, writing = os.pipe()
                os.close(reading)
            else:
                writing = os.open(output, os.O_WRONLY)
            os.dup2(writing, 1)
            main(["--help"])

        return trouble(run(shown, folder))

    return work
