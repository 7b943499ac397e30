"""Checkpoints of the published PyTorch code, read without running code that they may hold."""

import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cbet_jax.config import SettingsError
from cbet_jax.runs.reading import reading

if TYPE_CHECKING:
    from cbet_jax.networks.published_weights import Tensors

POLICY, FLAGS, SCHEDULE = "actor_model_state_dict", "flags", "scheduler_state_dict"
ROOMS = "HabitatNav-"  # prefix of a scene's name; actions have the same order as ours


class PublishedCheckpoint(NamedTuple):
    """The parts that we read of a checkpoint."""

    tensors: "Tensors"  # the policy's parameters
    flags: Mapping[str, Any]  # the published code's settings
    updates: int  # updates of the policy

    @property
    def in_rooms(self) -> bool:
        """Whether the policy was trained in Habitat."""
        return str(self.flags.get("env", "")).startswith(ROOMS)


def read(path: Path) -> PublishedCheckpoint:
    """Read a checkpoint of the published code.

    Raises:
        SettingsError: the file is missing or no such checkpoint, or PyTorch is not installed.
        UnreadableError: it is damaged.
    """
    if not path.is_file():
        raise SettingsError(f"{path} is no file")
    content = load(path)
    parts = (POLICY, FLAGS, SCHEDULE)
    if not isinstance(content, Mapping) or not all(
        isinstance(content.get(part), Mapping) for part in parts
    ):
        raise SettingsError(
            f"{path} is no checkpoint of the published code, which has {', '.join(parts)}"
        )
    policy, flags, schedule = (content[part] for part in parts)
    updates = schedule.get("last_epoch")
    if type(updates) is not int:
        raise SettingsError(f"{path}: last_epoch is {updates!r}, no whole number")
    with reading(path):
        tensors = {str(name): _float32(tensor) for name, tensor in policy.items()}
        plain = {str(name): _plain(value) for name, value in flags.items()}
        return PublishedCheckpoint(tensors, plain, updates)


def _float32(tensor: Any) -> np.ndarray:
    is_real = hasattr(tensor, "is_floating_point") and tensor.is_floating_point()
    array = np.asarray(tensor.detach().float() if is_real else tensor)
    if array.dtype.kind != "f":
        raise TypeError(f"its policy has numbers of the type {array.dtype}")
    with np.errstate(over="ignore"):
        return array.astype(np.float32)


def _plain(value: Any) -> bool | int | float | str | None:
    """Return a flag as it is, or as text where no file of JSON holds it."""
    known = isinstance(value, bool | float | str | None)
    return value if known or (isinstance(value, int) and abs(value) < 2**63) else str(value)[:80]


def load(path: Path) -> Any:
    """Unpickle tensors and plain settings only, so no code can run.

    Raises:
        SettingsError: the file holds something else, or PyTorch is not installed.
        UnreadableError: it is damaged.
    """
    with reading(path):  # PyTorch looks at no checksums
        if zipfile.is_zipfile(path) and zipfile.ZipFile(path).testzip():
            raise ValueError("it is damaged")
    try:
        import torch
    except ImportError:
        raise SettingsError(
            "PyTorch reads its checkpoints, and is not installed: it is the extra `torch`"
        ) from None
    # The published code's learning rate is a numpy number, which numpy 1 wrote by another name.
    scalar: Any = np.float64().__reduce__()[0]
    harmless = [scalar, (scalar, "numpy.core.multiarray.scalar"), np.dtype, np.dtypes.Float64DType]
    try:
        quiet = warnings.catch_warnings(action="ignore")  # of files that it did not write
        with quiet, torch.serialization.safe_globals(harmless):
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # an unpickler of any bytes may raise anything
        raise SettingsError(
            f"{path} is damaged, or no checkpoint of PyTorch's of tensors and plain settings only "
            f"({type(error).__name__})"
        ) from None
