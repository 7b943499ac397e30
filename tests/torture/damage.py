"""Damaged files: each is found, said, and mended from what is good."""

import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from cbet_jax.runs import checkpoint
from cbet_jax.runs.directory import RunDirectory
from experiments import compare, report, watch
from tests.torture import runs
from tests.torture.trial import Trial, run, trouble

GROUP = "damaged files"
TRIALS = 170


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


def empty(path: Path, draw: random.Random) -> None:
    path.write_bytes(b"")


def delete(path: Path, draw: random.Random) -> None:
    path.unlink()


def become_folder(path: Path, draw: random.Random) -> None:
    path.unlink()
    path.mkdir()


def become_pipe(path: Path, draw: random.Random) -> None:
    path.unlink()
    os.mkfifo(path)


DAMAGES: tuple[Callable[[Path, random.Random], None], ...] = (
    *(cut, flip, fill, zero, empty, delete, become_folder, become_pipe),
)


def trials(half: Path, whole: Path) -> Iterator[Trial]:
    """Yield trials on copies of a run that was interrupted, and of a finished one.

    Args:
        half: the interrupted run.
        whole: the finished one, which all others must equal.
    """
    draw = random.Random(0)
    for number in range(TRIALS):
        source = whole if number % 5 == 4 else half
        names = _names(source, number)
        damage = DAMAGES[number % len(DAMAGES)]
        yield _trial(source, whole, draw.choice(names), damage, draw.randrange(2**30))
    for damage in DAMAGES:
        yield _reading(whole, damage)


def _names(root: Path, number: int) -> list[Path]:
    """Return the files to choose from: the small ones in every second trial."""
    directory = RunDirectory(root)
    small = [directory.config, directory.manifest, directory.metrics]
    newest = checkpoint.checkpoints(directory.checkpoints)[-1]
    files = small if number % 2 else [path for path in newest.rglob("*") if path.is_file()]
    return sorted(path.relative_to(root) for path in files)


def _trial(
    source: Path, whole: Path, name: Path, damage: Callable[[Path, random.Random], None], seed: int
) -> Trial:
    def work(folder: Path) -> str:
        directory = runs.copy(source, folder / "run")
        damage(directory.root / name, random.Random(seed))
        ended = runs.resume(directory.root)
        # What is no ordinary file may be refused in one line: somebody has put it there.
        if damage in (become_folder, become_pipe) and ended.status in (2, 3):
            return trouble(ended)
        found = trouble(ended, (0,)) or runs.differs(directory.root, whole)
        shown = ended.out + ended.err
        is_repaired = "had already" in shown  # only what the table says matters then
        said = any(word in shown for word in ("damaged", "missing", "cannot be read"))
        said = said or is_repaired
        return found or ("" if said else "nothing was said of the damage")

    kind = "finished" if source == whole else "interrupted"
    return Trial(GROUP, f"{damage.__name__} {name} of a run that {kind}", work)


def _reading(whole: Path, damage: Callable[[Path, random.Random], None]) -> Trial:
    """Return a trial of all commands that read metrics, with a damaged table."""

    def work(folder: Path) -> str:
        directory = runs.copy(whole, folder / "run")
        shutil.copytree(whole, folder / "other")
        damage(directory.metrics, random.Random(5))
        words = [str(directory.root), str(folder / "other")]
        ended = run(lambda: compare.main([*words, "--out", str(folder / "c")]), folder)
        if ended.status == 0:
            return "compare says nothing of the damage"
        found = trouble(ended)
        for main in (report.main, watch.main):
            ended = run(lambda main=main: main([str(directory.root), "--help"]), folder)  # type: ignore[misc]
            found = found or trouble(ended)
        return found

    return Trial(GROUP, f"{damage.__name__} metrics.csv, then compare", work)
