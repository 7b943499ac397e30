"""Run directories made by somebody who means harm, and strays that nobody meant."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from cbet_jax.runs import checkpoint
from cbet_jax.runs.directory import RunDirectory
from tests.torture import runs
from tests.torture.trial import Ended, Trial, run, trouble

GROUP = "hostile directories"
LINKED = (
    *(".lock", "metrics.csv", "manifest.json", "config.json", "checkpoints", "figures"),
    *("policies", "OLDEST", "OLDEST/checkpoint.json", "OLDEST/state", "OLDEST/metrics.csv"),
    *("evaluation.csv", "figures/learning_curves.png", "checkpoints/.stray.tmp"),
)
CONFIGS: dict[str, object] = {
    "a list": [],
    "null": None,
    "a number": 7,
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
STRAYS = ("checkpoints/000000000040", "checkpoints/x", ".metrics.0.tmp.csv", ".config.0.tmp.json")


def trials(whole: Path, half: Path) -> Iterator[Trial]:
    """Yield trials of hostile directories.

    Args:
        whole: a finished run.
        half: an interrupted one.
    """
    for name in LINKED:
        for command in ("resume", "evaluate"):
            yield Trial(GROUP, f"{command}, {name} is a link", _linked(name, command, half))
    for name, change in CONFIGS.items():
        for command in ("resume", "evaluate"):
            yield Trial(GROUP, f"{command}, config.json has {name}", _config(change, command, half))
    for command in ("watch", "habitat-evaluate", "resume"):
        yield Trial(GROUP, f"{command}, the simulator is a file", _code(command))
    for name in STRAYS:
        yield Trial(GROUP, f"resume, stray {name}", _stray(name, half, whole))
    yield Trial(GROUP, "resume, the run has a cache/ of its own", _cache(half, whole))
    yield Trial(GROUP, "resume, metrics.csv has another name elsewhere", _hard_link(half, whole))


def _do(command: str, root: Path) -> Ended:
    return runs.resume(root) if command == "resume" else runs.evaluate(root)


def _linked(name: str, command: str, half: Path) -> Callable[[Path], str]:
    def work(folder: Path) -> str:
        directory = runs.copy(half, folder / "run")
        oldest = checkpoint.checkpoints(directory.checkpoints)[0].relative_to(directory.root)
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
        found = trouble(_do(command, directory.root))
        return found or ("" if _content(victim) == before else "the link's target was changed")

    return work


def _content(path: Path) -> dict[str, bytes]:
    files = [p for p in path.rglob("*") if p.is_file()] if path.is_dir() else [path]
    return {str(file): file.read_bytes() for file in files}


def _config(change: object, command: str, half: Path) -> Callable[[Path], str]:
    def work(folder: Path) -> str:
        directory = runs.copy(half, folder / "run")
        for path in checkpoint.checkpoints(directory.checkpoints) if command == "resume" else ():
            shutil.rmtree(path)  # they would mend it
        content: object = change
        if isinstance(change, dict):
            nested = json.loads(directory.config.read_text())
            del nested["digest"]
            for name, value in change.items():
                *parents, last = name.split(".")
                inner = nested
                for parent in parents:
                    inner = inner[parent]
                inner[last] = value
            content = nested
        directory.config.write_text(json.dumps(content))
        return trouble(_do(command, directory.root))

    return work


def _code(command: str) -> Callable[[Path], str]:
    def work(folder: Path) -> str:
        from dataclasses import replace

        from cbet_jax.config import HabitatSettings
        from experiments import habitat_evaluate, habitat_pretrain, watch
        from experiments.common.presets import HABITAT_PRESETS

        code = folder / "code.py"
        code.write_text(f"open({str(folder / 'was_run')!r}, 'w')\n")
        root = folder / "run"
        played = HabitatSettings(simulator=str(code))
        RunDirectory(root).create(replace(HABITAT_PRESETS["smoke"], habitat=played))
        lines = {
            "watch": (watch.main, [str(root)]),
            "habitat-evaluate": (habitat_evaluate.main, [str(root), "--scenes", "x"]),
            "resume": (habitat_pretrain.main, ["--out", str(root), "--resume"]),
        }
        main, words = lines[command]
        found = trouble(run(lambda: main(words), folder), (2,))
        return found or ("the code was run" if (folder / "was_run").exists() else "")

    return work


def _stray(name: str, half: Path, whole: Path) -> Callable[[Path], str]:
    def work(folder: Path) -> str:
        directory = runs.copy(half, folder / "run")
        path = directory.root / name
        if not path.exists():
            path.write_text("a stray file")
        found = trouble(runs.resume(directory.root), (0,))
        return found or runs.differs(directory.root, whole)

    return work


def _cache(half: Path, whole: Path) -> Callable[[Path], str]:
    def work(folder: Path) -> str:
        directory = runs.copy(half, folder / "run")
        programs = directory.root / "cache"
        programs.mkdir()
        (programs / "jit_advance-0000-cache").write_bytes(os.urandom(1000))
        before = _content(programs)
        found = trouble(runs.resume(directory.root), (0,)) or runs.differs(directory.root, whole)
        return found or ("" if _content(programs) == before else "cache/ was written to")

    return work


def _hard_link(half: Path, whole: Path) -> Callable[[Path], str]:
    def work(folder: Path) -> str:
        directory = runs.copy(half, folder / "run")
        os.link(directory.metrics, folder / "backup.csv")
        before = (folder / "backup.csv").read_bytes()
        found = trouble(runs.resume(directory.root), (0,)) or runs.differs(directory.root, whole)
        same = (folder / "backup.csv").read_bytes() == before
        return found or ("" if same else "the other name's content was changed")

    return work
