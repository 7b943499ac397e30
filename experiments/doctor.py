"""Say what works on this machine, and how to get what does not: `python -m experiments.doctor`."""

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from ctypes.util import find_library
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cbet_jax.config import Axis, HabitatSettings
from cbet_jax.runs.atomic_write import check_room
from cbet_jax.runs.directory import RunDirectoryError
from envs.habitat.simulator import SIMULATORS, SimulatorError
from envs.habitat.workers.pool import WorkerPool
from experiments.common import cli, habitat
from experiments.common.refusals import refusal
from experiments.common.screen import Screen

MODULE = "experiments.doctor"
BROKEN = 1  # exit status: not even the basics work
SCENE = "bedroom"  # the package's smallest
START_LIMIT_SECONDS = 120.0
NAMED = f"with --simulator-python, or for all commands in {habitat.PYTHON}"
CONDAS = ("conda", "mamba", "micromamba")
MOST_CMAKE = 4  # the first release that is too new to build habitat-sim with
FLAT_DEVIATION = 1.0  # standard deviation of the pixels of a panorama that shows nothing


@dataclass(frozen=True)
class DoctorOptions:
    """Try everything that runs may need, and say in one screen what works."""

    #: the interpreter that habitat-sim is installed in (default: the environment's HABITAT_PYTHON,
    #: else this one)
    simulator_python: str | None = None
    scene: str | None = None  # what the simulators are to open (default: a bedroom of the package)
    up: Axis | None = None  # axis that points up in its file (None: as it says)
    out: Path | None = None  # a folder for the simulators' frames (default: they are not kept)


class Check(NamedTuple):
    """What was tried, and what came of it."""

    name: str
    works: bool
    found: str
    fix: str = ""  # what to do about it
    basic: bool = False  # nothing goes without it


def main(arguments: Sequence[str] | None = None) -> None:
    """Try everything, and end the process with status 1 if the basics do not work."""
    arguments = sys.argv[1:] if arguments is None else arguments
    console = Screen()
    with cli.user_errors():
        options: DoctorOptions = cli.parse(DoctorOptions, arguments, MODULE)
        check_out(options.out)
        checks = []
        for name, attempt in attempts(options).items():
            with console.status(f"trying {name}"):
                checks.append(attempt())
    show(checks, console)
    if not all(check.works for check in checks if check.basic):
        raise SystemExit(BROKEN)


def check_out(out: Path | None) -> None:
    """Make the folder for frames.

    Raises:
        RunDirectoryError: frames are there already. OSError: it cannot be written to.
    """
    if out is None:
        return
    check_room(out)
    for path in (out / f"{name}.png" for name in SIMULATORS):
        if path.exists():
            raise RunDirectoryError(f"{path} already exists: choose another folder")


def attempts(options: DoctorOptions) -> dict[str, Callable[[], Check]]:
    """Return all that is to be tried, by name."""
    return {
        "jax": try_jax,
        "navix": try_navix,
        "ffmpeg": try_ffmpeg,
        **{name: partial(try_simulator, name, options) for name in SIMULATORS},
        "sources of habitat_sim": find_ways,
    }


def try_jax() -> Check:
    """Multiply two matrices on the default device."""
    found, fix = jax.__version__, ""
    try:
        devices = jax.devices()
        kinds = ", ".join(sorted({device.device_kind for device in devices}))
        found += f": {len(devices)} x {jax.default_backend()} ({kinds})"
        fix = "install jax for it: the extra cuda12 or cuda13" if unused_gpu() else ""
        product = jax.jit(jnp.dot)(jnp.ones((64, 64)), jnp.ones((64, 64)))
        works = bool((product == 64).all())
    except (RuntimeError, AssertionError) as error:  # the second without any device
        return Check("jax", False, f"{found}: {first_line(error)}", fix, basic=True)
    return Check("jax", works, found + ("; an NVIDIA GPU is not used" if fix else ""), fix, True)


def unused_gpu() -> bool:
    """Return whether there is an NVIDIA GPU that JAX does not compute on."""
    return shutil.which("nvidia-smi") is not None and jax.default_backend() == "cpu"


def try_navix() -> Check:
    """Begin an episode in a gridworld through navix's interface."""
    try:
        import envs.minigrid

        environment = envs.minigrid.make("Unlock")
        timestep = jax.jit(environment.reset)(jax.random.key(0))
        found = f"{version('navix')}: Unlock begun, view {np.shape(timestep.observation)}"
        return Check("navix", True, found, basic=True)
    except Exception as error:  # whatever a broken installation raises is what is to be shown
        fix = "" if refusal(error) else "install navix==4.0.0"
        return Check("navix", False, first_line(error), fix, basic=True)


def try_ffmpeg() -> Check:
    """Look for what writes videos."""
    try:
        from imageio_ffmpeg import get_ffmpeg_exe, get_ffmpeg_version

        get_ffmpeg_exe()
        return Check("ffmpeg", True, f"{get_ffmpeg_version()} (for watch --out NAME.mp4)")
    except (ImportError, RuntimeError) as error:
        return Check("ffmpeg", False, first_line(error), "only for .mp4: uv sync --extra video")


def try_simulator(name: str, options: DoctorOptions) -> Check:
    """Start a simulator, shake hands, and have it render a frame."""
    python = options.simulator_python if name != habitat.EMBEDDED else None
    try:
        played = HabitatSettings(simulator=name, up=options.up if options.scene else None)
        settings = habitat.process_settings(options.scene or SCENE, played, python)
        workers = WorkerPool(settings._replace(start_limit=START_LIMIT_SECONDS), 1)
        try:
            return render(name, workers, options.out)
        finally:
            workers.close()
    except SimulatorError as error:
        problem, _, fix = first_line(error).partition("; ")
        return Check(name, False, problem, f"{fix} ({NAMED})" if "python" in fix else fix)


def find_ways() -> Check:
    """Say which ways of installing habitat-sim this machine could use (envs/habitat/README.md)."""
    conda = next(filter(shutil.which, CONDAS), None)
    lacking = [name for name in ("git", "c++") if shutil.which(name) is None]
    lacking += [f"cmake below {MOST_CMAKE}"] if not usable_cmake() else []
    ways = {
        "conda, stable (Python 3.9)": "" if conda else "no conda",
        "conda, nightly (Python 3.10, 3.11)": "" if conda else "no conda",
        "from source (Python 3.12)": "no " + ", no ".join(lacking) if lacking else "",
    }
    found = "; ".join(f"{way}: {problem or 'possible'}" for way, problem in ways.items())
    works = not all(ways.values())
    if find_library("EGL") is None:
        return Check("sources of habitat_sim", False, f"{found}; no EGL", "install Mesa's libegl1")
    return Check("sources of habitat_sim", works, found)


def usable_cmake() -> bool:
    """Return whether there is a cmake that habitat-sim can be built with."""
    cmake = shutil.which("cmake")
    if cmake is None:
        return False
    said = subprocess.run([cmake, "--version"], capture_output=True, text=True, check=False).stdout
    release = re.search(r"version (\d+)", said)
    return release is not None and int(release[1]) < MOST_CMAKE


def render(name: str, workers: WorkerPool, out: Path | None) -> Check:
    """Render a view and a panorama, and save them if there is a folder for them."""
    hello = workers.hello
    began = time.perf_counter()
    workers.reset([0])
    milliseconds = 1000 * (time.perf_counter() - began)
    view, panorama = workers.images.views[0], workers.images.panoramas[0]
    if out is not None:
        from PIL import Image

        Image.fromarray(np.concatenate([view, *panorama], axis=1)).save(out / f"{name}.png")
    found = (
        f"{hello.version}, {hello.renderer}, Python {hello.python}: "
        f"view and panorama in {milliseconds:.0f} ms"
    )
    if panorama.std() < FLAT_DEVIATION:
        return Check(name, False, f"{found}, but the frames show nothing", "try another --scene")
    return Check(name, True, found)


def show(checks: Sequence[Check], console: Console) -> None:
    """Print a line for each check, then what to do about those that failed."""
    table = Table(box=None, show_header=False, pad_edge=False)
    for check in checks:
        mark = Text("works", "green") if check.works else Text("does not", "red")
        table.add_row(check.name, mark, check.found)
    console.print(table, highlight=False)
    for check in checks:
        if check.fix:
            console.print(
                f"{check.name}: {check.fix}", highlight=False, soft_wrap=True, markup=False
            )


def first_line(error: Exception) -> str:
    """Return what an error says, in one line."""
    if found := refusal(error):
        return found.line
    return (str(error).splitlines() or [type(error).__name__])[0]


if __name__ == "__main__":
    main()
