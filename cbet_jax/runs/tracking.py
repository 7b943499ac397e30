"""Trackers: services that show metrics while a run trains, such as TensorBoard.

A tracker follows one seed of a run. Another service needs a class like `TensorBoard` and a line in
`TRACKERS`. Packages are imported when they are used.
"""

import importlib.util
import os
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cbet_jax.config import RunSettings, SettingsError
from cbet_jax.runs.directory import RunDirectory
from cbet_jax.runs.metrics import HIDDEN
from cbet_jax.runs.reading import read_bytes
from cbet_jax.settings.as_json import flattened, to_json

COLORSPACE_RGB = 3  # TensorBoard's code for RGB
PROJECT = "cbet-jax"  # project in Weights & Biases
FRAMES = "frames"  # horizontal axis of all metrics there


class TensorBoard:
    """Writes event files, in a folder of the run for each seed."""

    def __init__(self, directory: RunDirectory, settings: RunSettings, seed: int, frames: int):
        from tensorboardX.event_file_writer import EventsWriter
        from tensorboardX.proto.event_pb2 import SessionLog
        from tensorboardX.summary import hparams

        folder = directory.root / "tensorboard" / f"seed-{seed}"
        folder.mkdir(parents=True, exist_ok=True)
        # The suffix tells files of one second apart. A `SummaryWriter` would write in a thread,
        # where `flush` does not reach what waits.
        self._events = EventsWriter(str(folder / "events"), f".{frames}.{time.time_ns()}")
        # TensorBoard drops what an earlier process wrote after these frames.
        self._write(frames + 1, session_log=SessionLog(status=SessionLog.START))
        settings_and_seed = {**flattened(to_json(settings)), "seed": seed}
        for summary in hparams(settings_and_seed, {"interactions": 0.0})[:2]:
            self._write(0, summary=summary)

    def log(self, frames: int, values: Mapping[str, float]) -> None:
        """Write metrics."""
        from tensorboardX.proto.summary_pb2 import Summary

        scalars = [Summary.Value(tag=name, simple_value=value) for name, value in values.items()]
        self._write(frames, summary=Summary(value=scalars))

    def show(self, frames: int, name: str, picture: Path) -> None:
        """Write a picture; a GIF moves in the browser."""
        from PIL import Image
        from tensorboardX.proto.summary_pb2 import Summary

        width, height = Image.open(picture).size
        image = Summary.Image(
            encoded_image_string=picture.read_bytes(),
            width=width,
            height=height,
            colorspace=COLORSPACE_RGB,
        )
        self._write(frames, summary=Summary(value=[Summary.Value(tag=name, image=image)]))

    def _write(self, frames: int, **content: Any) -> None:
        from tensorboardX.proto.event_pb2 import Event

        self._events.write_event(Event(wall_time=time.time(), step=frames, **content))

    def flush(self) -> None:
        """Bring all events to the disk."""
        self._events.flush()

    def close(self) -> None:
        """Flush all events to the disk."""
        self._events.close()


class WeightsAndBiases:
    """Sends metrics to a run there for each seed, the same one after a run has been resumed.

    `WANDB_MODE=offline` keeps them in the run's directory, for `wandb sync` to upload later;
    `WANDB_PROJECT` names the project.
    """

    def __init__(self, directory: RunDirectory, settings: RunSettings, seed: int, frames: int):
        import wandb

        group = directory.root.absolute().name
        self._run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            dir=directory.root,
            group=group,
            name=f"{group}, seed {seed}",
            id=f"{_name_of_run(directory)}-{seed}",
            config={**to_json(settings), "seed": seed},
            resume="allow",
            reinit="create_new",  # several seeds are open at once
            settings=wandb.Settings(silent=True, console="off"),
        )
        self._run.define_metric("*", step_metric=FRAMES)
        self._image = wandb.Image

    def log(self, frames: int, values: Mapping[str, float]) -> None:
        """Send metrics."""
        self._run.log({**values, FRAMES: frames}, step=frames)

    def show(self, frames: int, name: str, picture: Path) -> None:
        """Send a picture or a film."""
        self._run.log({name: self._image(str(picture)), FRAMES: frames}, step=frames)

    def flush(self) -> None:
        """Do nothing: another process sends and writes."""

    def close(self) -> None:
        """Wait until all is sent or written."""
        self._run.finish()


def _name_of_run(directory: RunDirectory) -> str:
    """Return the run's unique name, made once."""
    path = directory.root / "wandb" / "run-id"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        path.write_text(uuid.uuid4().hex[:10])
    return read_bytes(path).decode()


type Tracker = TensorBoard | WeightsAndBiases

# Name on the command line, which is also that of the extra that installs it
TRACKERS: dict[str, type[Tracker]] = {"tensorboard": TensorBoard, "wandb": WeightsAndBiases}
NEEDED = {"tensorboard": "tensorboardX", "wandb": "wandb"}  # packages


class Trackers:
    """All trackers of all seeds of a run; one that fails is left out and never ends the run."""

    def __init__(
        self,
        names: Sequence[str],
        directory: RunDirectory,
        settings: RunSettings,
        say: Callable[[str], None],
    ) -> None:
        self._names = names
        self._directory = directory
        self._settings = settings
        self._say = say
        self._open: dict[tuple[str, int], Tracker] = {}
        self._frames = 0

    def begin(self, frames: int) -> None:
        """Open all trackers of a run that begins or continues at `frames`."""
        self._frames = frames
        first = self._settings.first_seed
        for name in self._names:
            for seed in range(first, first + self._settings.seeds):
                if name in self._names:  # no other seed's has failed
                    self._try(name, partial(self._make, name, seed, frames))

    def log(self, chunk: Mapping[str, np.ndarray], frames: int, frames_per_iteration: int) -> None:
        """Record a chunk of metrics, after each seed has played `frames`."""
        shown = {name: values for name, values in chunk.items() if name not in HIDDEN}
        length = len(next(iter(chunk.values())))
        self._frames = frames + length * frames_per_iteration
        for name, seed in list(self._open):
            column = seed - self._settings.first_seed
            for row in range(length):
                values = {key: float(value[row, column]) for key, value in shown.items()}
                there = {key: value for key, value in values.items() if not np.isnan(value)}
                self._ask(name, seed, "log", frames + (row + 1) * frames_per_iteration, there)

    def show(self, name: str, picture: Path) -> None:
        """Record a picture or a film with each seed."""
        self._ask_all("show", self._frames, name, picture)

    def flush(self) -> None:
        """Write what is recorded: a run that goes on from here does not record it again."""
        self._ask_all("flush")

    def close(self) -> None:
        """Close all trackers."""
        self._ask_all("close")
        self._open.clear()

    def _make(self, name: str, seed: int, frames: int) -> None:
        self._open[name, seed] = TRACKERS[name](self._directory, self._settings, seed, frames)

    def _ask_all(self, method: str, *arguments: Any) -> None:
        for name, seed in list(self._open):
            self._ask(name, seed, method, *arguments)

    def _ask(self, name: str, seed: int, method: str, *arguments: Any) -> None:
        """Call a method of a tracker, unless its service has failed before."""
        if (name, seed) in self._open:
            self._try(name, lambda: getattr(self._open[name, seed], method)(*arguments))

    def _try(self, name: str, work: Callable[[], Any]) -> None:
        """Call `work`; if it fails, say so and leave the tracker out."""
        try:
            work()
        except Exception as error:  # whatever a service raises: the run matters more
            self._names = tuple(other for other in self._names if other != name)
            for key in [key for key in self._open if key[0] == name]:
                with suppress(Exception):
                    self._open.pop(key).close()
            reason = " ".join(str(error).split()) or type(error).__name__
            self._say(f"{name} has failed and is left out: {reason}")


def check_installed(names: Sequence[str]) -> None:
    """Refuse trackers whose packages are not installed.

    Raises:
        SettingsError: a package is missing.
    """
    for name in names:
        if importlib.util.find_spec(NEEDED[name]) is None:
            raise SettingsError(
                f"--track {name} needs a package: `uv sync --extra {name}`, or "
                f"`pip install 'cbet-jax[{name}]'`"
            )
