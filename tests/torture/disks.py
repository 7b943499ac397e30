"""Disks that are full, read-only, or go away."""

import ctypes
import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.torture import runs
from tests.torture.trial import Trial, run, trouble

SIZES_KIB = (64, 96, 128, 160, 192, 256, 320, 384, 512)  # of a small disk
LIMITS = (200, 500, 1000, 4096, 10_000, 30_000, 100_000)  # bytes of each file (`ulimit -f`)


def trials(whole: Path, half: Path) -> Iterator[Trial]:
    """Yield trials of disks, with copies of a finished run and of an interrupted one."""
    trial = partial(Trial, "disks")
    for limit in LIMITS:
        yield trial(f"a new run, files of {limit} bytes at most", partial(_new, limit))
        yield trial(f"a resumed run, {limit} bytes", partial(_resumed, limit, half, whole))
        yield trial(f"an evaluation, {limit} bytes", partial(_evaluation, limit, whole))
    if run(lambda: _mount(Path("/tmp"), b"size=64k"), Path("/tmp")).status == 0:  # if it may mount
        for size in SIZES_KIB:
            yield trial(f"a new run on a disk of {size} KiB", partial(_small, size))
        yield trial("resume and evaluate on a read-only disk", partial(_read_only, whole))


def _limit_files(limit: int) -> None:
    """Let this process write no file longer than that."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))


def _new(limit: int, folder: Path) -> str:
    root = folder / "run"
    ended = runs.pretrain(root, before=partial(_limit_files, limit))
    found = trouble(ended)
    if not found and ended.status and (root / "config.json").exists():
        found = trouble(runs.resume(root), (0,))
    return found or runs.left_over(root)


def _resumed(limit: int, half: Path, whole: Path, folder: Path) -> str:
    root = shutil.copytree(half, folder / "run")
    found = trouble(runs.resume(root, before=partial(_limit_files, limit)))
    found = found or trouble(runs.resume(root), (0,))
    return found or runs.differs(root, whole) or runs.left_over(root)


def _evaluation(limit: int, whole: Path, folder: Path) -> str:
    root = shutil.copytree(whole, folder / "run")
    found = trouble(runs.evaluate(root, before=partial(_limit_files, limit)))
    return found or runs.left_over(root)


def _small(size: int, folder: Path) -> str:
    _mount(folder, f"size={size}k".encode())
    root = folder / "run"
    ended = runs.pretrain(root)
    found = trouble(ended)
    if not found and ended.status and (root / "config.json").exists():
        subprocess.run(["mount", "-o", "remount,size=20m", str(folder)], check=True)
        found = trouble(runs.resume(root), (0,)) or runs.left_over(root)
    return found


def _read_only(whole: Path, folder: Path) -> str:
    disk = folder / "disk"
    disk.mkdir()
    _mount(disk, b"size=20m")
    root = shutil.copytree(whole, disk / "run")
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    found = trouble(runs.resume(root), (3,))
    ended = runs.evaluate(root)
    found = found or trouble(ended, (3,)) or ("" if "--out" in ended.err else "no advice")
    out = folder / "elsewhere"
    found = found or trouble(runs.evaluate(root, "--out", str(out)), (0,))
    return found or ("" if (out / "evaluation.csv").is_file() else "no table elsewhere")


def _mount(place: Path, options: bytes) -> None:
    """Mount a disk in memory that only this process and its children see, until they end."""
    libc = ctypes.CDLL(None, use_errno=True)
    new_namespace, private = 0x00020000, 1 << 18 | 1 << 14
    if libc.unshare(new_namespace) or libc.mount(b"none", b"/", None, private, None):
        raise OSError(ctypes.get_errno(), "no mount namespace")
    if libc.mount(b"tmpfs", os.fsencode(place), b"tmpfs", 0, options):
        raise OSError(ctypes.get_errno(), "no mount")
