"""Damaged files: each is found and told of in one line, and nothing wrong is trained or shown."""

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

from cbet_jax.runs.checkpoint import FILE
from cbet_jax.runs.directory import RunDirectory, checkpoints
from experiments import compare
from tests.torture import runs
from tests.torture.trial import Trial, run, trouble

GROUP = "damage"
TRIALS = 70


def cut(path: Path, draw: random.Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: draw.randrange(len(content) or 1)])


def flip(path: Path, draw: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    path.write_bytes(content)


def fill(path: Path, draw: random.Random) -> None:
    path.write_bytes(draw.randbytes(draw.randrange(1, 5000)))


def zero(path: Path, draw: random.Random) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def delete(path: Path, draw: random.Random) -> None:
    path.unlink()


def become_folder(path: Path, draw: random.Random) -> None:
    path.unlink()
    path.mkdir()


def become_pipe(path: Path, draw: random.Random) -> None:
    path.unlink()
    os.mkfifo(path)


DAMAGES = (cut, flip, fill, zero, delete, become_folder, become_pipe)
type Damage = Callable[[Path, random.Random], None]


def trials(whole: Path, half: Path) -> Iterator[Trial]:
    """Yield trials on copies of a run that was interrupted, and of a finished one."""
    draw = random.Random(0)
    for number in range(TRIALS):
        source = whole if number % 5 == 4 else half
        directory, damage = RunDirectory(source), DAMAGES[number % len(DAMAGES)]
        small = [directory.config, directory.manifest, directory.metrics]
        newest = checkpoints(directory.checkpoints)[-1] / FILE
        path = draw.choice(small) if number % 2 else newest
        yield _trial(source, whole, path.relative_to(source), damage, draw.randrange(2**30))
    for damage in DAMAGES:
        yield Trial(GROUP, f"{damage.__name__} metrics.csv, then compare", _compared(whole, damage))


def _trial(source: Path, whole: Path, name: Path, damage: Damage, seed: int) -> Trial:
    def work(folder: Path) -> str:
        root = runs.copy(source, folder / "run").root
        damage(root / name, random.Random(seed))
        ended = runs.resume(root)
        if ended.status:  # settings and metrics are refused, and pipes and folders
            return trouble(ended, (2, 3))
        found = trouble(ended) or runs.differs(root, whole)
        # Some bits mean nothing, and a deleted checkpoint or manifest is not missed.
        silent = damage in (flip, delete, become_folder, become_pipe) or source == whole
        return found or ("" if silent or "damaged" in ended.out else "nothing was said of it")

    return Trial(GROUP, f"{damage.__name__} {name} of {source.name}", work)


def _compared(whole: Path, damage: Damage) -> Callable[[Path], str]:
    def work(folder: Path) -> str:
        directory = runs.copy(whole, folder / "run")
        damage(directory.metrics, random.Random(5))
        words = [str(directory.root), str(runs.copy(whole, folder / "other").root)]
        return trouble(run(lambda: compare.main(words), folder), (2, 3))

    return work
