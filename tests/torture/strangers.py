"""Directories that strangers wrote: any file may be anything, and no command hangs or is fooled."""

import io
import json
import os
import shutil
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cbet_jax.runs import checkpoint
from cbet_jax.runs.directory import RunDirectory, checkpoints
from cbet_jax.runs.reading import write_with_digest
from experiments import compare, report
from tests.torture import runs
from tests.torture.trial import Ended, Trial, trouble

REFUSED, ALL_RIGHT = (3,), (0,)

COMMANDS: dict[str, Callable[[Path], Ended]] = {
    "report": lambda root: runs.run_main(report.main, [str(root)], root),
    "evaluate": runs.evaluate,
    "resume": runs.resume,
}
READ_BY = {  # file -> the commands that must refuse it, where it is none of ours
    "config.json": ("report", "evaluate", "resume"),
    "manifest.json": ("report",),
    "metrics.csv": ("report",),
    "evaluation.csv": ("report",),
    "watch.gif": ("report",),
}
NOT_FILES: dict[str, Callable[[Path], Any]] = {
    "a pipe": os.mkfifo,
    "a link that leads out": lambda path: path.symlink_to("/etc/passwd"),
    "a link to a device": lambda path: path.symlink_to("/dev/zero"),
    "a link to nothing": lambda path: path.symlink_to("nothing"),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a folder": Path.mkdir,
    "a TiB of nothing": lambda path: (path.touch(), os.truncate(path, 2**40)),
}
CONTENTS = {
    "empty": b"",
    "noise": np.random.default_rng(0).bytes(5000),
    "not UTF-8": b'{"\xff": "\xfe"}\n\xff,\xfe\n',
    "deep": b"[" * 100_000,
    "deep, closed": b'{"sessions": [' + b'{"a": ' * 50_000 + b"1" + b"}" * 50_000 + b"]}",
    "a long cell": b"seed,frames,name,value\n0,1,success," + b"1" * 131_073 + b"\n",
    "long numbers": b"seed,frames,name,value\n0," + b"9" * 40 + b",success,1\n",
}
SESSIONS: dict[str, Any] = {
    "no list": {"sessions": 5},
    "numbers": {"sessions": [5]},
    "text for frames": {"sessions": [{"frames": "1200"}]},
    "text for speed": {"sessions": [{"frames_per_second": "7"}]},
    "none": {"session": []},
    "another digest": {"sessions": [{"frames": 1200}], "digest": "0" * 64},
}
NAMES = {
    "colours": b"\x1b[31mred",
    "a title": b"\x1b]0;mine\x07",
    "not UTF-8": b"r\xff\xfe",
    "lines": b"one\ntwo\r\tthree",
    "markup": b"[red]x[/red] :smile: $x_$ %s {0} <b>",
    "direction": "\u202eabc\u2066".encode(),
    "letters": "żółć-雪-🐍".encode(),
}


def trials(whole: Path, half: Path) -> Iterator[Trial]:
    """Yield trials of a finished run that a stranger has changed."""
    for file, refusing in READ_BY.items():
        kinds = {**NOT_FILES, **{n: partial(_write, c) for n, c in CONTENTS.items()}}
        for kind, make in kinds.items():
            is_note = kind in CONTENTS and file in ("evaluation.csv", "watch.gif")
            for command in COMMANDS:
                # A table without our columns is the user's; any file may be named .gif.
                must = REFUSED if command in refusing and not is_note else (0, 2, 3)
                work = partial(_file, whole, file, make, command, must)
                yield Trial("strangers", f"{command}: {file} is {kind}", work)
    for kind, content in SESSIONS.items():
        make = partial(_write, json.dumps(content).encode())
        work = partial(_file, whole, "manifest.json", make, "report", REFUSED)
        yield Trial("strangers", f"report: a manifest with {kind}", work)
    for kind, (forge, statuses) in FORGERIES.items():
        work = partial(_forged, whole, forge, statuses)
        yield Trial("strangers", f"evaluate: a checkpoint with {kind}", work)
    for field in RunDirectory(whole).settings().__dataclass_fields__:
        for value in (None, 7, "x", [1], {}, -1):
            work = partial(_config, whole, field, value)
            yield Trial("strangers", f"evaluate: settings with {field} {value!r}", work)
    for kind, name in NAMES.items():
        for command in COMMANDS:
            work = partial(_named, whole, name, command)
            yield Trial("strangers", f"{command}: a name with {kind}", work)
        yield Trial("strangers", f"compare: a name with {kind}", partial(_compared, whole, name))


def _write(content: bytes, path: Path) -> None:
    path.write_bytes(content)


def _file(
    whole: Path,
    file: str,
    make: Callable[[Path], Any],
    command: str,
    statuses: tuple[int, ...],
    folder: Path,
) -> str:
    root = shutil.copytree(whole, folder / "run")
    path = root / file
    path.unlink(missing_ok=True)
    make(path)
    found = trouble(COMMANDS[command](root), statuses)
    if not found and not os.path.lexists(path):
        found = "what the stranger made is gone"
    return found


def _named(whole: Path, name: bytes, command: str, folder: Path) -> str:
    root = shutil.copytree(whole, folder / os.fsdecode(name))
    ended = COMMANDS[command](root)
    return trouble(ended, ALL_RIGHT) or _escapes(ended)


def _compared(whole: Path, name: bytes, folder: Path) -> str:
    roots = [shutil.copytree(whole, folder / each) for each in ("other", os.fsdecode(name))]
    words = [*map(str, roots), "--out", str(folder / "out")]
    ended = runs.run_main(compare.main, words, roots[0])
    return trouble(ended, ALL_RIGHT) or _escapes(ended)


def _escapes(ended: Ended) -> str:
    said = ended.out + ended.err
    bad = {letter for letter in said if not letter.isprintable() and letter not in "\n\ufffd"}
    return f"the terminal was sent {bad}" if bad else ""


def _config(whole: Path, field: str, value: Any, folder: Path) -> str:
    root = shutil.copytree(whole, folder / "run")
    config = root / "config.json"
    write_with_digest(config, json.loads(config.read_text()) | {field: value})
    found = (trouble(command(root)) for command in (runs.evaluate, COMMANDS["report"]))
    return next(filter(None, found), "")


# Forged checkpoints, with right checksums.

Arrays = dict[str, np.ndarray]
Record = dict[str, Any]
Forgery = Callable[[Arrays, Record], Any]  # changes both, or returns the whole file


def _first(arrays: Arrays) -> str:
    return next(name for name in arrays if name.startswith("learner.policy."))


def _policy(change: Callable[[np.ndarray], Any]) -> Forgery:
    """Return a forgery that changes the first array of the policy."""

    def forge(arrays: Arrays, record: Record) -> None:
        arrays[_first(arrays)] = np.asarray(change(arrays[_first(arrays)]))

    return forge


def _record(**entries: Any) -> Forgery:
    return lambda arrays, record: record.update(entries)


def _position(**entries: Any) -> Forgery:
    return lambda arrays, record: record.update(position=record["position"] | entries)


def _types(entries: Any) -> Forgery:
    """Return a forgery of the types of arrays, which numpy's file does not know itself."""

    def forge(arrays: Arrays, record: Record) -> bytes:
        types = {name: str(array.dtype) for name, array in arrays.items()}
        types = types | entries if isinstance(entries, dict) else entries
        return _zip(arrays, json.dumps({**record, "types": types}).encode())

    return forge


def _zip(arrays: Arrays, record: bytes, method: int = zipfile.ZIP_STORED, **more: bytes) -> bytes:
    """Return the file of these arrays."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", method) as archive:
        text = np.frombuffer(record, np.uint8)
        for name, array in {**arrays, checkpoint.RECORD: text}.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, array, allow_pickle=True)
            archive.writestr(f"{name}.npy", more.get(name) or member.getvalue())
    return content.getvalue()


def _whole(arrays: Arrays, record: Record) -> bytes:
    types = {name: str(array.dtype) for name, array in arrays.items()}
    return json.dumps({**record, "types": types}).encode()


def _member(content: Callable[[bytes], bytes]) -> Forgery:
    """Return a forgery of the bytes of the policy's first array."""

    def forge(arrays: Arrays, record: Record) -> bytes:
        member = io.BytesIO()
        np.lib.format.write_array(member, arrays[_first(arrays)])
        changed = content(member.getvalue())
        return _zip(arrays, _whole(arrays, record), **{_first(arrays): changed})

    return forge


def _add(name: str, array: Any) -> Forgery:
    return lambda arrays, record: arrays.update({name: np.asarray(array)})


FORGERIES: dict[str, tuple[Forgery, tuple[int, ...]]] = {
    "NaN": (_policy(lambda a: np.where(a == a.flat[0], np.float32("nan"), a)), REFUSED),
    "infinity": (_policy(lambda a: np.full_like(a, np.inf)), REFUSED),
    "whole numbers": (_policy(lambda a: a.astype(np.int32)), REFUSED),
    "float64": (_policy(lambda a: np.full(a.shape, 1e300)), REFUSED),
    "float16": (_policy(lambda a: a.astype(np.float16)), REFUSED),
    "complex numbers": (_policy(lambda a: a + 1j), REFUSED),
    "text": (_policy(lambda a: np.full(a.shape, "1")), REFUSED),
    "truth values": (_policy(lambda a: a > 0), REFUSED),
    "dates": (_policy(lambda a: np.full(a.shape, np.datetime64("2026-01-01"))), REFUSED),
    "another shape": (_policy(lambda a: a[..., None]), (2, 3)),
    "no seeds": (_policy(lambda a: a[:0]), (2, 3)),
    "a single number": (_policy(lambda a: np.float32(1)), (2, 3)),
    "a missing array": (lambda arrays, _: [arrays.pop(_first(arrays))][:0], (2, 3)),
    "no arrays": (lambda arrays, _: arrays.clear(), (2, 3)),
    "one array more": (_add("learner.policy.params.more.kernel", np.float32(1)), ALL_RIGHT),
    "an array for a folder": (_add("learner.policy.params", np.float32(1)), (2, 3)),
    "a folder for an array": (_add("learner.policy.params.policy.bias.x", np.float32(1)), REFUSED),
    "an array of no name": (_add("learner.policy.", np.float32(1)), (0, 2, 3)),
    "a bias of another name": (_add("learner.fixed.other", np.float32(1)), REFUSED),
    "half a bias": (_add("learner.fixed.alpha", np.float32(1)), REFUSED),
    "no position": (lambda _, record: record.clear(), REFUSED),
    "a list for a position": (_record(position=[1, 2, 3, 4]), REFUSED),
    "half a position": (_record(position={"frames": "x"}), REFUSED),
    "frames of text": (_position(frames="1"), REFUSED),
    "negative frames": (_position(frames=-1), REFUSED),
    "half a frame": (_position(frames=0.5), REFUSED),
    "true frames": (_position(frames=True), REFUSED),
    "no frames": (_position(frames=None), REFUSED),
    "more frames than any machine counts": (_position(frames=10**400), ALL_RIGHT),
    "a digest of numbers": (_position(metrics_digest=7), REFUSED),
    "more in its position": (_position(other=1), REFUSED),
    "no types": (_types(None), REFUSED),
    "a list of types": (_types(["float32"]), REFUSED),
    "an unknown type": (_types({"learner.policy.x": "float7"}), REFUSED),
    "types of what is not there": (_types({"learner.policy.x": "float32"}), REFUSED),
    "a record of text": (lambda arrays, _: _zip(arrays, b"x"), REFUSED),
    "a record of a list": (lambda arrays, _: _zip(arrays, b"[]"), REFUSED),
    "a deep record": (lambda arrays, _: _zip(arrays, b"[" * 100_000), REFUSED),
    "a compressed record": (
        lambda arrays, record: _zip(arrays, _whole(arrays, record), zipfile.ZIP_DEFLATED),
        ALL_RIGHT,
    ),
    "pickled objects": (_policy(lambda a: np.array([print], object)), REFUSED),
    "an array of more than all memory": (
        _member(lambda _: b"\x93NUMPY\x01\x00" + _huge_header()),
        (2, 3),
    ),
    "half an array": (_member(lambda content: content[: len(content) // 2]), REFUSED),
    "an empty array file": (_member(lambda content: b"\x93NUMPY"), REFUSED),
    "a file of noise": (lambda *_: CONTENTS["noise"], REFUSED),
    "an empty file": (lambda *_: b"PK\x05\x06" + bytes(18), REFUSED),
}


def _huge_header() -> bytes:
    text = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000000,), }"
    text = text.ljust(117) + b"\n"
    return len(text).to_bytes(2, "little") + text


def replace(file: Path, forge: Forgery) -> None:
    """Put a forgery in the place of a checkpoint's file."""
    arrays, record = checkpoint.read_file(file)
    content = forge(arrays, record)
    is_whole = isinstance(content, bytes)
    file.write_bytes(content if is_whole else _zip(arrays, _whole(arrays, record)))


def _forged(whole: Path, forge: Forgery, statuses: tuple[int, ...], folder: Path) -> str:
    root = shutil.copytree(whole, folder / "run")
    for path in checkpoints(root / "checkpoints"):
        replace(path / checkpoint.FILE, forge)
    return trouble(runs.evaluate(root), statuses) or trouble(runs.resume(root), (0, 2, 3))
