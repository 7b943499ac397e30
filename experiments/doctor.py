"""Say what works on this machine, and how to get what does not: `python -m experiments.doctor`."""

import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cbet_jax.config import Axis, HabitatSettings, SettingsError
from envs.habitat.scenes import find_scene
from envs.habitat.simulator import SIMULATORS, SimulatorError
from envs.habitat.workers.pool import WorkerPool
from experiments.common import cli, habitat
from experiments.common.outputs import unused
from experiments.common.refusals import refusal
from experiments.common.screen import Screen, say

MODULE = "experiments.doctor"
BROKEN = 1  # exit status: not even the basics work
SCENE = "bedroom"  # the package's smallest
START_LIMIT_SECONDS = 120.0
INTERPRETER = f"name its Python with --simulator-python, or for all commands in {habitat.PYTHON}"
FLAT_DEVIATION = 1.0  # standard deviation of the pixels of a panorama that shows nothing


@dataclass(frozen=True)
class DoctorOptions:
    """Try everything that runs may need, and say in one screen what works."""

    #: the interpreter that habitat-sim is installed in (None: the environment's HABITAT_PYTHON,
    #: else this one)
    simulator_python: str | None = None
    scene: str | None = None  # to open in the simulators (None: a bedroom of the package)
    up: Axis | None = None  # axis that points up in its file (None: as it says)
    out: Path | None = None  # a folder for the simulators' frames (None: they are not kept)


class Attempt(NamedTuple):
    """Something to try."""

    work: Callable[[], str]  # returns what was found, or raises
    fix: str  # what to do where it raises ('': nothing helps)
    basic: bool = False  # no run works without it


def main(arguments: Sequence[str] | None = None) -> None:
    """Try everything, and end the process with status 1 if the basics do not work."""
    with cli.user_errors(SimulatorError):
        options: DoctorOptions = cli.parse(DoctorOptions, arguments, MODULE)
        if options.scene:
            find_scene(options.scene)  # or a SimulatorError
        elif options.up:
            raise SettingsError("--up is for --scene")
        if options.out:
            options.out.mkdir(parents=True, exist_ok=True)
        works = diagnose(attempts(options), Screen())
    if not works:
        raise SystemExit(BROKEN)


def attempts(options: DoctorOptions) -> dict[str, Attempt]:
    """Return everything to try, by name."""
    fixes = dict.fromkeys(SIMULATORS, INTERPRETER) | {habitat.EMBEDDED: ""}
    return {
        "jax": Attempt(multiply, "install jax, for a GPU with the extra cuda12 or cuda13", True),
        "navix": Attempt(begin_episode, "install navix==4.0.0", True),
        "ffmpeg": Attempt(find_ffmpeg, "only for .mp4: uv sync --extra video"),
        **{name: Attempt(partial(render, name, options), fix) for name, fix in fixes.items()},
    }


def diagnose(tried: dict[str, Attempt], console: Console) -> bool:
    """Print a line for each attempt, then what to do about those that failed.

    Returns:
        Whether the basics work.
    """
    table = Table(box=None, show_header=False, pad_edge=False)
    fixes, works = [], True
    for name, attempt in tried.items():
        try:
            with console.status(f"trying {name}"):
                table.add_row(name, Text("works", "green"), attempt.work())
        except Exception as error:  # a broken installation raises anything
            known = None if isinstance(error, SimulatorError) else refusal(error)
            lines = str(error).splitlines() or [type(error).__name__]
            problem, _, fix = (known.line if known else lines[0]).partition("; ")
            table.add_row(name, Text("does not", "red"), problem)
            if said := "; ".join(filter(None, (fix, "" if known else attempt.fix))):
                fixes.append(f"{name}: {said}")
            works &= not attempt.basic
    console.print(table, highlight=False)
    for line in fixes:
        say(console, line)
    return works


def multiply() -> str:
    """Multiply two matrices on the default device."""
    import jax  # imported here: it takes seconds
    import jax.numpy as jnp

    devices, backend = jax.devices(), jax.default_backend()
    product = jax.jit(jnp.dot)(jnp.ones((64, 64)), jnp.ones((64, 64)))
    if not (product == 64).all():
        raise ArithmeticError("a product of matrices is wrong")
    kinds = ", ".join(sorted({device.device_kind for device in devices}))
    unused_gpu = backend == "cpu" and shutil.which("nvidia-smi")
    hint = "; an NVIDIA GPU is not used: it needs the extra cuda12 or cuda13" if unused_gpu else ""
    return f"{jax.__version__}: {len(devices)} x {backend} ({kinds}){hint}"


def begin_episode() -> str:
    """Begin an episode in a gridworld through navix's interface."""
    import jax

    import envs.minigrid

    timestep = jax.jit(envs.minigrid.make("Unlock").reset)(jax.random.key(0))
    return f"{version('navix')}: Unlock begun, view {np.shape(timestep.observation)}"


def find_ffmpeg() -> str:
    """Find the program that writes videos."""
    from imageio_ffmpeg import get_ffmpeg_exe, get_ffmpeg_version

    get_ffmpeg_exe()
    return f"{get_ffmpeg_version()} (for watch --out NAME.mp4)"


def render(name: str, options: DoctorOptions) -> str:
    """Start a simulator, and render a view and a panorama, which are saved if that was asked."""
    python = options.simulator_python if name != habitat.EMBEDDED else None
    played = HabitatSettings(simulator=name, up=options.up if options.scene else None)
    settings = habitat.process_settings(options.scene or SCENE, played, python)
    with closing(WorkerPool(settings._replace(start_limit=START_LIMIT_SECONDS), 1)) as workers:
        began = time.perf_counter()
        if workers.ask([{"do": "reset", "seed": 0}]) == [None]:
            raise RuntimeError("the simulator died while it rendered")
        milliseconds = 1000 * (time.perf_counter() - began)
        view, panorama = workers.images.views[0], workers.images.panoramas[0]
        if options.out is not None:
            from PIL import Image

            frames = np.concatenate([view, *panorama], axis=1)
            Image.fromarray(frames).save(unused(options.out / f"{name}.png"))
        if panorama.std() < FLAT_DEVIATION:
            raise ValueError("the frames show nothing; try another --scene")
        hello = workers.hello
        return (
            f"{hello.version}, {hello.renderer}, Python {hello.python}: "
            f"view and panorama in {milliseconds:.0f} ms"
        )


if __name__ == "__main__":
    main()
