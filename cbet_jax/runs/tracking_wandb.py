"""Metrics for Weights & Biases: a run there for each seed, all in one group.

`WANDB_MODE=offline` keeps them in the run's directory, for `wandb sync` to upload later;
`WANDB_PROJECT` names the project (default: cbet-jax).
"""

import os
import uuid
from collections.abc import Mapping
from pathlib import Path

import wandb

from cbet_jax.config import RunSettings
from cbet_jax.runs.directory import RunDirectory
from cbet_jax.settings_json import to_json

PROJECT = "cbet-jax"
FRAMES = "frames"  # the horizontal axis of all metrics


class WeightsAndBiases:
    """Sends metrics to a run there, the same one after a run has been resumed."""

    def __init__(
        self, directory: RunDirectory, settings: RunSettings, seed: int, frames: int
    ) -> None:
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

    def log(self, frames: int, values: Mapping[str, float]) -> None:
        """Send metrics."""
        self._run.log({**values, FRAMES: frames}, step=frames)

    def show(self, frames: int, name: str, picture: Path) -> None:
        """Send a picture or a film."""
        self._run.log({name: wandb.Image(str(picture)), FRAMES: frames}, step=frames)

    def close(self) -> None:
        """Wait until all is sent, or written."""
        self._run.finish()


def _name_of_run(directory: RunDirectory) -> str:
    """Return a name that no other run has, made once for each run."""
    path = directory.root / "wandb" / "run-id"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        path.write_text(uuid.uuid4().hex[:10])
    return path.read_text()


make = WeightsAndBiases
