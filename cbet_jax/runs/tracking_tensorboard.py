"""Metrics for TensorBoard, in the run's directory: `tensorboard --logdir RUN/tensorboard`."""

import time
from collections.abc import Mapping
from pathlib import Path

from PIL import Image
from tensorboardX import SummaryWriter
from tensorboardX.proto.summary_pb2 import Summary
from tensorboardX.summary import hparams

from cbet_jax.config import RunSettings
from cbet_jax.runs.directory import RunDirectory
from cbet_jax.settings_json import flattened, to_json

COLORSPACE_RGB = 3


class TensorBoard:
    """Writes event files, in a folder for each seed."""

    def __init__(
        self, directory: RunDirectory, settings: RunSettings, seed: int, frames: int
    ) -> None:
        folder = directory.root / "tensorboard" / f"seed-{seed}"
        # TensorBoard forgets what an earlier process wrote after these frames. The suffix tells
        # two files apart that are begun in one second.
        suffix = f".{frames}.{time.time_ns()}"
        self._writer = SummaryWriter(str(folder), purge_step=frames + 1, filename_suffix=suffix)
        settings_and_seed = {**flattened(to_json(settings)), "seed": seed}
        for summary in hparams(settings_and_seed, {"interactions": 0.0})[:2]:
            self._writer.file_writer.add_summary(summary)

    def log(self, frames: int, values: Mapping[str, float]) -> None:
        """Write metrics."""
        for name, value in values.items():
            self._writer.add_scalar(name, value, frames)

    def show(self, frames: int, name: str, picture: Path) -> None:
        """Write a picture; a GIF moves in the browser."""
        width, height = Image.open(picture).size
        image = Summary.Image(
            encoded_image_string=picture.read_bytes(),
            width=width,
            height=height,
            colorspace=COLORSPACE_RGB,
        )
        summary = Summary(value=[Summary.Value(tag=name, image=image)])
        self._writer.file_writer.add_summary(summary, frames)

    def close(self) -> None:
        """Bring all events to the disk."""
        self._writer.close()


make = TensorBoard
