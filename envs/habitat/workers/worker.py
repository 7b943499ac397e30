"""Runs one simulator in a process of its own: the program that `process.py` starts and talks to.

It may run in another Python than the rest, 3.9 or newer; it needs numpy and the simulator.

Requests come as lines of JSON on its standard input, an answer to each goes to its standard
output, and images into memory that it shares with the other side:

    hello      the worker's first line, or the reason why there is no simulator
    reset      to a start drawn from `seed`         -> position, heading, images
    teleport   to `position` and `heading`          -> the same
    step       plays `action`                       -> the same
    positions  `count` of the floor, from `seed`    -> positions
    map        from above, `cell` metres a pixel    -> corner, walkable, picture
    close      ends the worker, as the end of its input does

It never outlives the other side for long: waiting, it sees the end of its input; working, an
alarm ends it where it takes longer than it may, even inside a simulator that hangs.
"""

import base64
import importlib
import importlib.util
import json
import mmap
import os
import platform
import signal
import sys
import types
from pathlib import Path
from typing import Any

PROTOCOL = 1
_PATIENCE = 1.25  # how much longer than the other side the worker's own alarm waits
_GRACE = 1.0  # seconds, the same
_ENDING = 10.0  # seconds that closing the simulator may take


def main() -> int:
    """Serves until the other side has gone; returns the exit status."""
    settings = json.loads(sys.argv[1])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the other side's to answer
    _alarm(settings["start_limit"])
    answers = _take_over_stdout()
    _make_importable()
    from envs.habitat.simulator import SimulatorError

    try:
        simulator = _open(settings)
    except SimulatorError as error:
        _say(answers, {"protocol": PROTOCOL, "error": str(error)})
        return 1
    served = _Served(simulator, settings)
    _say(answers, served.hello(settings["scene"]))
    _alarm(0.0)
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if request["do"] == "close":
            break
        _alarm(settings["step_limit"])
        try:
            answer = served.answer(request)
        except SimulatorError as error:
            answer = {"error": str(error)}
        if not _say(answers, {"number": request["number"], **answer}):
            break
        _alarm(0.0)
    _alarm(_ENDING)
    simulator.close()
    return 0


def _alarm(limit: float) -> None:
    """Ends this process after a time limit; 0: no limit any more."""
    signal.setitimer(signal.ITIMER_REAL, _PATIENCE * limit + _GRACE if limit else 0.0)


def _take_over_stdout() -> Any:
    """Returns the pipe to the other side; what else is printed goes to standard error."""
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    return answers


def _make_importable() -> None:
    """Makes this package importable by its name, and nothing that lies beside it.

    The folder that the package lies in may hold another Python's numpy.
    """
    here = Path(__file__).resolve().parent  # envs/habitat/workers
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != here]
    package = types.ModuleType("envs")
    package.__path__ = [str(here.parents[1])]
    sys.modules["envs"] = package


def _open(settings: dict) -> Any:
    """Opens the scene in the simulator.

    Raises:
        SimulatorError: one of the two is not there, or they do not go together.
    """
    from envs.habitat.simulator import INSTALL, SIMULATORS, SimulatorError

    name, folder = settings["simulator"], settings["folder"]
    try:
        if name.endswith(".py"):
            module = _load(name)
        elif name in SIMULATORS:
            module = importlib.import_module(SIMULATORS[name])
        else:
            known = ", ".join(SIMULATORS)
            raise SimulatorError(f"unknown simulator {name!r}; there are {known}")
    except ImportError as error:
        reason = " ".join(str(error).split())
        hint = INSTALL.get(name, "")
        raise SimulatorError(
            f"simulator {name} cannot be loaded by {sys.executable}: {reason}{hint}"
        ) from error
    return module.open_scene(settings["scene"], Path(folder) if folder else None)


def _load(path: str) -> types.ModuleType:
    """Loads somebody's own simulator, a file that defines `open_scene`."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    if spec is None or spec.loader is None or not Path(path).is_file():
        raise ImportError(f"no such file: {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _say(answers: Any, answer: dict) -> bool:
    """Sends an answer; returns whether anybody is there to hear it."""
    try:
        answers.write(json.dumps(answer).encode() + b"\n")
    except BrokenPipeError:
        return False
    return True


class _Served:
    """A simulator, and the memory that it shows its images in."""

    def __init__(self, simulator: Any, settings: dict) -> None:
        import numpy as np

        from envs.habitat.simulator import PANORAMA_SHAPE, VIEW_SHAPE

        self._simulator = simulator
        slots, slot = settings["slots"], settings["slot"]
        memory = mmap.mmap(settings["memory"], 0)
        views = np.frombuffer(memory, np.uint8, slots * _size(VIEW_SHAPE))
        panoramas = np.frombuffer(memory, np.uint8, offset=views.size)
        self._view = views.reshape((slots, *VIEW_SHAPE))[slot]
        panoramas = panoramas[: slots * _size(PANORAMA_SHAPE)]
        self._panorama = panoramas.reshape((slots, *PANORAMA_SHAPE))[slot]

    def hello(self, scene: str) -> dict:
        """Returns who speaks."""
        return {
            "protocol": PROTOCOL,
            "simulator": self._simulator.name,
            "version": self._simulator.version,
            "renderer": self._simulator.renderer,
            "scene": scene,
            "python": platform.python_version(),
        }

    def answer(self, request: dict) -> dict:
        """Does what is asked for."""
        from envs.habitat.simulator import Place

        do, simulator = request["do"], self._simulator
        if do == "step":
            return self._show(simulator.step(request["action"]))
        if do == "teleport":
            x, y, z = request["position"]
            return self._show(simulator.teleport(Place((x, y, z), request["heading"])))
        if do == "reset":
            return self._show(simulator.reset(request["seed"]))
        if do == "positions":
            return {"positions": simulator.positions(request["seed"], request["count"])}
        if do == "map":
            return _as_json(simulator.floor_map(request["cell"]))
        raise ValueError(f"unknown request {do!r}")

    def _show(self, moment: Any) -> dict:
        self._view[...] = moment.view
        self._panorama[...] = moment.panorama
        return {"position": moment.place.position, "heading": moment.place.heading}


def _size(shape: tuple) -> int:
    product = 1
    for number in shape:
        product *= number
    return product


def _as_json(floor_map: Any) -> dict:
    def text(array: Any) -> str:
        return base64.b64encode(array.tobytes()).decode()

    return {
        "corner": floor_map.corner,
        "cell": floor_map.cell,
        "shape": floor_map.walkable.shape,
        "walkable": text(floor_map.walkable),
        "picture": text(floor_map.picture),
    }


if __name__ == "__main__":
    sys.exit(main())
