"""Run one simulator: the program of a worker process, started by `process.py`.

Its Python may differ from the rest's: 3.9 or newer, with numpy and the simulator. It reads requests
from standard input, one line of JSON each, and writes answers to standard output. Images go to
memory shared with the parent process.

    hello      sent first, without a request: the simulator, or an error
    reset      move to a place drawn from `seed`      -> position, heading, images
    teleport   move to `position` and `heading`       -> the same
    step       take `action`                          -> the same
    map        from above, cells of `cell` metres     -> corner, walkable, picture

The worker ends soon after its parent: a thread looks for the parent each second, and an alarm ends
what works longer than its time limit, even if the simulator hangs.
"""

import base64
import importlib
import importlib.util
import inspect
import json
import math
import mmap
import os
import platform
import signal
import sys
import threading
import time
import types
from pathlib import Path
from typing import Any

# The worker's alarm waits longer than the parent, by this factor and these seconds.
_ALARM_FACTOR = 1.25
_ALARM_SECONDS = 1.0
_CLOSE_SECONDS = 10.0  # the simulator's time to close


def main() -> int:
    """Answer requests until the parent is gone; return the exit status."""
    settings = json.loads(sys.argv[1])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    _alarm(settings["start_limit"])
    threading.Thread(target=_end_after, args=[os.getppid()], daemon=True).start()
    answers = _take_over_stdout()
    _make_importable()
    from envs.habitat.simulator import SimulatorError

    try:
        simulator = _open(settings)
    except SimulatorError as error:
        _say(answers, {"error": str(error)})
        return 1
    served = _Served(simulator, settings)
    _say(answers, served.hello(settings["scene"]))
    _alarm(0.0)
    for line in sys.stdin.buffer:
        request = json.loads(line)
        _alarm(settings["step_limit"])
        try:
            answer = served.answer(request)
        except SimulatorError as error:
            answer = {"error": str(error)}
        if not _say(answers, {"number": request["number"], **answer}):
            break
        _alarm(0.0)
    _alarm(_CLOSE_SECONDS)
    simulator.close()
    return 0


def _alarm(limit: float) -> None:
    """End this process after `limit` seconds; 0 removes the limit."""
    signal.setitimer(signal.ITIMER_REAL, _ALARM_FACTOR * limit + _ALARM_SECONDS if limit else 0.0)


def _end_after(parent: int) -> None:
    """End this process within a second of its parent's end."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _take_over_stdout() -> Any:
    """Return the pipe to the parent, and redirect all other output to standard error."""
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    return answers


def _make_importable() -> None:
    """Make `envs` importable without its parent folder, which may hold another Python's numpy."""
    here = Path(__file__).resolve().parent  # envs/habitat/workers
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != here]
    package = types.ModuleType("envs")
    package.__path__ = [str(here.parents[1])]
    sys.modules["envs"] = package


def _open(settings: dict) -> Any:
    """Open the scene in the simulator, with those options that its `open_scene` takes.

    Raises:
        SimulatorError: simulator or scene is missing or unusable.
    """
    from envs.habitat.simulator import INSTALL_HINTS, SIMULATORS, AgentSize, SimulatorError

    name, folder = settings["simulator"], settings["folder"]
    try:
        if name.endswith(".py"):
            module = _load(name)
        elif name in SIMULATORS:
            module = importlib.import_module(SIMULATORS[name])
        else:
            raise SimulatorError(f"unknown simulator {name!r}; there are {', '.join(SIMULATORS)}")
    except ImportError as error:
        reason = " ".join(str(error).split())
        hint = INSTALL_HINTS.get(name, "")
        raise SimulatorError(
            f"simulator {name} cannot be loaded by {sys.executable}: {reason}{hint}"
        ) from error
    offered = {name: settings[name] for name in ("up", "panoramas")}
    offered["agent"] = AgentSize(*settings["agent"])
    taken = inspect.signature(module.open_scene).parameters
    more = {name: value for name, value in offered.items() if name in taken}
    if settings["up"] is not None and "up" not in more:
        raise SimulatorError(f"simulator {name} does not take --up: leave it out")
    return module.open_scene(settings["scene"], Path(folder) if folder else None, **more)


def _load(path: str) -> types.ModuleType:
    """Load a user's simulator, a file with `open_scene`."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    if spec is None or spec.loader is None or not Path(path).is_file():
        raise ImportError(f"no such file: {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _say(answers: Any, answer: dict) -> bool:
    """Send an answer; return whether the parent still reads."""
    try:
        answers.write(json.dumps(answer).encode() + b"\n")
    except BrokenPipeError:
        return False
    return True


class _Served:
    """A simulator, and the shared memory for its images."""

    def __init__(self, simulator: Any, settings: dict) -> None:
        import numpy as np

        from envs.habitat.simulator import PANORAMA_SHAPE, VIEW_SHAPE

        self._simulator = simulator
        slots, slot = settings["slots"], settings["slot"]
        memory = mmap.mmap(settings["memory"], 0)
        views = np.frombuffer(memory, np.uint8, slots * math.prod(VIEW_SHAPE))
        panoramas = np.frombuffer(memory, np.uint8, slots * math.prod(PANORAMA_SHAPE), views.size)
        self._view = views.reshape((slots, *VIEW_SHAPE))[slot]
        self._panorama = panoramas.reshape((slots, *PANORAMA_SHAPE))[slot]

    def hello(self, scene: str) -> dict:
        """Return the first message of the worker."""
        return {
            "simulator": self._simulator.name,
            "version": self._simulator.version,
            "renderer": self._simulator.renderer,
            "scene": scene,
            "python": platform.python_version(),
        }

    def answer(self, request: dict) -> dict:
        """Fulfil one request and return the answer."""
        from envs.habitat.simulator import Pose

        do, simulator = request["do"], self._simulator
        if do == "step":
            return self._show(simulator.step(request["action"]))
        if do == "teleport":
            x, y, z = request["position"]
            return self._show(simulator.teleport(Pose((x, y, z), request["heading"])))
        if do == "reset":
            return self._show(simulator.reset(request["seed"]))
        if do == "map":
            return _as_json(simulator.floor_map(request["cell"]))
        raise ValueError(f"unknown request {do!r}")

    def _show(self, observation: Any) -> dict:
        import numpy as np

        from envs.habitat.simulator import SimulatorError

        pose = observation.pose
        numbers = (*pose.position, pose.heading)
        if not all(map(math.isfinite, numbers)):
            raise SimulatorError(f"the simulator's pose has a number that is not finite: {pose}")
        if any(number != float(np.float32(number)) for number in numbers):
            raise SimulatorError(
                f"the simulator's pose must be exact in float32, of x float(np.float32(x)): {pose}"
            )
        self._view[...] = _checked("view", observation.view, self._view.shape)
        self._panorama[...] = _checked("panorama", observation.panorama, self._panorama.shape)
        return {"position": pose.position, "heading": pose.heading}


def _checked(name: str, array: Any, shape: tuple) -> Any:
    """Return an image of a simulator as an array, unless its bytes would show another one."""
    import numpy as np

    from envs.habitat.simulator import SimulatorError

    array = np.asarray(array)
    if (array.shape, array.dtype) != (shape, "uint8"):
        found = f"{array.dtype}{[*array.shape]}"
        raise SimulatorError(f"the simulator's {name} must be uint8{[*shape]}, not {found}")
    return array


def _as_json(floor_map: Any) -> dict:
    import numpy as np

    def text(array: Any) -> str:
        return base64.b64encode(array.tobytes()).decode()

    walkable = np.asarray(floor_map.walkable, bool)
    picture = _checked("picture of the floor", floor_map.picture, (*walkable.shape, 3))
    return {
        "corner": floor_map.corner,
        "cell": floor_map.cell,
        "shape": walkable.shape,
        "walkable": text(walkable),
        "picture": text(picture),
    }


if __name__ == "__main__":
    sys.exit(main())
