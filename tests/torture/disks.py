"""Disks that are full, read-only, or go away."""

import ctypes
import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.torture import runs
from tests.torture.trial import Trial, run, trouble

GROUP = "disks"
SIZES_KIB = (64, 96, 128, 160, 192, 256, 320, 384, 512)  # of a small disk
LIMITS = (200, 500, 1000, 4096, 10_000, 30_000, 100_000)  # bytes of each file (`ulimit -f`)


def mounts() -> bool:
    """Return whether this process may mount a small disk of its own."""
    return run(lambda: _mount(Path("/tmp"), "size=64k"), Path("/tmp")).status == 0


def trials(whole: Path, half: Path) -> Iterator[Trial]:
    """Yield trials of disks, with copies of a finished run and of an interrupted one."""
    for limit in LIMITS:
        yield Trial(GROUP, f"a new run, files of {limit} bytes at most", _limited_new(limit))
        yield Trial(GROUP, f"a resumed run, {limit} bytes", _limited_resumed(limit, half, whole))
        yield Trial(GROUP, f"an evaluation, {limit} bytes", _limited_evaluation(limit, whole))
    if mounts():
        for size in SIZES_KIB:
            yield Trial(GROUP, f"a new run on a disk of {size} KiB", _small(size))
        for name, work in (("resume", _read_only_resume), ("evaluate", _read_only_evaluation)):
            yield Trial(GROUP, f"{name} on a read-only disk", work(whole))
        yield Trial(GROUP, "a new run on a read-only disk", _read_only_new)
    for name in ("x" * 300, "/".join(["x" * 200] * 30), "/dev/null/run", "/proc/run", "\udcff/run"):
        yield Trial(GROUP, f"a new run in {name[:20]!r}", _named(name))


def limit_files(limit: int) -> None:
    """Let this process write no file longer than that."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))


def _limited_new(limit: int) -> Callable[[Path], str]:
    def work(folder: Path) -> str:
        root = folder / "run"
        ended = runs.pretrain(root, before=lambda: limit_files(limit))
        found = trouble(ended)
        if not found and ended.status == 0:
            return runs.left_over(root)
        if not found and (root / "config.json").exists():
            found = trouble(runs.resume(root), (0,)) or runs.left_over(root)
        return found

    return work


def _limited_resumed(limit: int, half: Path, whole: Path) -> Callable[[Path], str]:
    def work(folder: Path) -> str:
        root = runs.copy(half, folder / "run").root
        found = trouble(runs.resume(root, before=lambda: limit_files(limit)))
        found = found or trouble(runs.resume(root), (0,))
        return found or runs.differs(root, whole) or runs.left_over(root)

    return work


def _limited_evaluation(limit: int, whole: Path) -> Callable[[Path], str]:
    def work(folder: Path) -> str:
        root = runs.copy(whole, folder / "run").root
        found = trouble(runs.evaluate(root, before=lambda: limit_files(limit)))
        return found or runs.left_over(root)

    return work


def _small(size: int) -> Callable[[Path], str]:
    def work(folder: Path) -> str:
        disk = folder / "disk"
        disk.mkdir()
        _mount(disk, f"size={size}k")
        root = disk / "run"
        ended = runs.pretrain(root)
        found = trouble(ended)
        if not found and ended.status:
            if not (root / "config.json").exists():
                return ""
            subprocess.run(["mount", "-o", "remount,size=20m", str(disk)], check=True)
            found = trouble(runs.resume(root), (0,)) or runs.left_over(root)
        return found

    return work


def _read_only_resume(whole: Path) -> Callable[[Path], str]:
    def work(folder: Path) -> str:
        disk = _read_only_copy(whole, folder)
        return trouble(runs.resume(disk / "run"), (3,))

    return work


def _read_only_evaluation(whole: Path) -> Callable[[Path], str]:
    def work(folder: Path) -> str:
        disk = _read_only_copy(whole, folder)

        def must_not_play() -> None:
            from experiments.evaluation import gridworlds

            gridworlds.play_each_world = None  # type: ignore[assignment]

        ended = runs.evaluate(disk / "run", before=must_not_play)
        found = trouble(ended, (3,)) or ("" if "--out" in ended.err else "no advice")
        out = folder / "elsewhere"
        found = found or trouble(runs.evaluate(disk / "run", "--out", str(out)), (0,))
        return found or ("" if (out / "evaluation.csv").is_file() else "no table elsewhere")

    return work


def _read_only_new(folder: Path) -> str:
    disk = folder / "disk"
    disk.mkdir()
    _mount(disk, "size=1m,ro")
    return trouble(runs.pretrain(disk / "run"), (3,))


def _named(name: str) -> Callable[[Path], str]:
    def work(folder: Path) -> str:
        return trouble(runs.pretrain(folder / name))

    return work


def _read_only_copy(source: Path, folder: Path) -> Path:
    disk = folder / "disk"
    disk.mkdir()
    _mount(disk, "size=20m")
    shutil.copytree(source, disk / "run")
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    return disk


def _mount(place: Path, options: str) -> None:
    """Mount a disk in memory that only this process and its children see, until they end."""
    libc = ctypes.CDLL(None, use_errno=True)
    new_namespace, private = 0x00020000, 1 << 18 | 1 << 14
    if libc.unshare(new_namespace) or libc.mount(b"none", b"/", None, private, None):
        raise OSError(ctypes.get_errno(), "no mount namespace")
    if libc.mount(b"tmpfs", os.fsencode(place), b"tmpfs", _flags(options), _data(options)):
        raise OSError(ctypes.get_errno(), "no mount")


def _flags(options: str) -> int:
    return 1 if "ro" in options.split(",") else 0


def _data(options: str) -> bytes:
    return ",".join(each for each in options.split(",") if each != "ro").encode()
