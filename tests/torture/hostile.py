"""Run directories made by a stranger who means harm."""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from cbet_jax.config import HabitatSettings
from cbet_jax.runs import directory as run_directory
from cbet_jax.runs.directory import RunDirectory, checkpoints
from experiments import habitat_evaluate, habitat_pretrain, watch
from experiments.common.presets import HABITAT_PRESETS
from tests.torture import runs
from tests.torture.trial import Ended, Trial, run, trouble

GROUP = "hostile"
LINKED = (
    *(".lock", "metrics.csv", "manifest.json", "config.json", "checkpoints", "figures"),
    *("policies", "OLDEST", "evaluation.csv", "figures/learning_curves.png"),
)
CONFIGS: dict[str, object] = {
    "a list": [],
    "null": None,
    "worlds of 10^9": {"train.worlds": 10**9},
    "a fraction of a seed": {"seeds": 1.5},
    "seeds in words": {"seeds": "two"},
    "seeds that wrap": {"first_seed": 2**32},
    "no environments": {"environments": []},
    "an unknown environment": {"environments": ["\x1b[2JX"]},
    "an unknown method": {"train.method": "__import__('os')"},
    "units of 10^9": {"train.network.lstm_units": 10**9},
    "a rate that is no number": {"train.optimizer.learning_rate": float("nan")},
    "a chunk of 10^31": {"chunk": 10**31},
}


def trials(whole: Path, half: Path) -> Iterator[Trial]:
    """Yield trials of hostile directories, copies of an interrupted run."""
    for command in (runs.resume, runs.evaluate):
        for name in LINKED:
            what = f"{command.__name__}, {name} is a link"
            yield Trial(GROUP, what, _linked(name, command, half))
        for name, change in CONFIGS.items():
            what = f"{command.__name__}, config.json has {name}"
            yield Trial(GROUP, what, _config(change, command, half))
    for main, words in (
        (watch.main, ["RUN"]),
        (habitat_evaluate.main, ["RUN", "--scenes", "x"]),
        (habitat_pretrain.main, ["--out", "RUN", "--resume"]),
    ):
        yield Trial(GROUP, f"{main.__module__}, the simulator is a file", _code(main, words))


def _linked(name: str, command: Callable[[Path], Ended], half: Path) -> Callable[[Path], str]:
    def work(folder: Path) -> str:
        directory = runs.copy(half, folder / "run")
        oldest = checkpoints(directory.checkpoints)[0].relative_to(directory.root)
        link, victim = directory.root / name.replace("OLDEST", str(oldest)), folder / "victim"
        link.parent.mkdir(exist_ok=True)
        if link.is_dir() or name in ("figures", "policies"):
            shutil.move(link, victim) if link.exists() else victim.mkdir()
            (victim / "precious").write_text("precious")
        else:
            link.unlink(missing_ok=True)
            victim.write_text("precious\n" * 1000)
        link.symlink_to(victim)
        before = _content(victim)
        found = trouble(command(directory.root))
        return found or ("" if _content(victim) == before else "the link's target was changed")

    return work


def _content(path: Path) -> dict[str, bytes]:
    files = [p for p in path.rglob("*") if p.is_file()] if path.is_dir() else [path]
    return {str(file): file.read_bytes() for file in files}


def _config(change: object, command: Callable[[Path], Ended], half: Path) -> Callable[[Path], str]:
    def work(folder: Path) -> str:
        directory = runs.copy(half, folder / "run")
        content: object = change
        if isinstance(change, dict):
            nested = json.loads(directory.config.read_text())
            del nested[run_directory.DIGEST]
            for name, value in change.items():
                *parents, last = name.split(".")
                inner = nested
                for parent in parents:
                    inner = inner[parent]
                inner[last] = value
            content = {**nested, run_directory.DIGEST: run_directory._digest(nested)}
        directory.config.write_text(json.dumps(content))
        return trouble(command(directory.root))

    return work


def _code(main: Callable[[list[str]], None], words: list[str]) -> Callable[[Path], str]:
    def work(folder: Path) -> str:
        code, root = folder / "code.py", folder / "run"
        code.write_text(f"open({str(folder / 'was_run')!r}, 'w')\n")
        played = HabitatSettings(simulator=str(code))
        RunDirectory(root).create(replace(HABITAT_PRESETS["smoke"], habitat=played))
        line = [str(root) if word == "RUN" else word for word in words]
        found = trouble(run(lambda: main(line), folder), (2,))
        return found or ("the code was run" if (folder / "was_run").exists() else "")

    return work
