"""A checkpoint of the published PyTorch code: its policy, and the settings it was trained with.

Only `load` needs PyTorch (the extra `torch`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cbet_jax.config import (
    AuxiliarySettings,
    CountSettings,
    HabitatSettings,
    LossSettings,
    NetworkSettings,
    OptimizerSettings,
    RunSettings,
    SettingsError,
    TrainSettings,
)
from cbet_jax.networks.published_weights import Policy, Tensors, convert
from envs.habitat.simulator import ACTIONS, VIEW_SHAPE
from envs.minigrid import make_world
from envs.registry import find
from experiments.common.presets import FIVE_LAYERS

POLICY, FLAGS, SCHEDULE = "actor_model_state_dict", "flags", "scheduler_state_dict"
METHODS = {name: name for name in ("cbet", "count", "curiosity", "ride", "rnd")} | {
    "vanilla": "none"
}

# Our setting -> the published code's flag.
TRAIN = {
    "batch": "batch_size",
    "unroll": "unroll_length",
    "intrinsic_coefficient": "intrinsic_reward_coef",
}
OPTIMIZER = {
    "learning_rate": "learning_rate",
    "rms_decay": "alpha",
    "rms_epsilon": "epsilon",
    "max_gradient_norm": "max_grad_norm",
}
LOSS = {
    "discount": "discounting",
    "value_weight": "baseline_cost",
    "entropy_weight": "entropy_cost",
}
AUXILIARY = {
    "forward_weight": "forward_loss_coef",
    "inverse_weight": "inverse_loss_coef",
    "prediction_weight": "rnd_loss_coef",
}
ROOMS = "HabitatNav-"  # before the name of a scene; then its actions are ours, in our order


class PublishedCheckpoint(NamedTuple):
    """What a checkpoint holds, as far as it is read."""

    tensors: Tensors  # of the policy
    flags: Mapping[str, Any]  # the published code's settings
    updates: int  # of the policy, so far


def read(path: Path) -> PublishedCheckpoint:
    """Read a checkpoint of the published code.

    Raises:
        SettingsError: there is none, it cannot be read, or PyTorch is not installed.
    """
    if not path.is_file():
        raise SettingsError(f"there is no file {path}")
    content = load(path)
    parts = (POLICY, FLAGS, SCHEDULE)
    if not isinstance(content, Mapping) or not all(
        isinstance(content.get(part), Mapping) for part in parts
    ):
        raise SettingsError(
            f"{path} is no checkpoint of the published code, which has {', '.join(parts)}"
        )
    policy, flags, schedule = (content[part] for part in parts)
    try:
        tensors = {str(name): np.asarray(tensor) for name, tensor in policy.items()}
        if not all(np.isfinite(tensor).all() for tensor in tensors.values()):
            raise ValueError("its policy has numbers that are not finite")
        return PublishedCheckpoint(tensors, flags, int(schedule["last_epoch"]))
    except (KeyError, TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise SettingsError(f"{path} cannot be read: {error!r}") from None


def load(path: Path) -> Any:
    """Unpickle tensors and plain settings, and nothing that could run code.

    Raises:
        SettingsError: that is not what the file holds, or PyTorch is not installed.
    """
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
        with torch.serialization.safe_globals(harmless):
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # an unpickler of any bytes may raise anything
        raise SettingsError(
            f"{path} is no checkpoint of PyTorch's that holds tensors and plain settings only "
            f"({type(error).__name__})"
        ) from None


def worlds(flags: Mapping[str, Any], chosen: Sequence[str]) -> tuple[str, ...]:
    """Return the worlds that the policy was trained in, by the paper's names, or its scene.

    Args:
        flags: the published code's settings.
        chosen: what the command line says instead.

    Raises:
        UnknownEnvironment: we have no such world. SettingsError: it is not one scene.
    """
    stored = str(flags.get("env", "")).split(",")
    if in_rooms(flags):
        scenes = chosen or [name.removeprefix(ROOMS) for name in stored]
        if len(scenes) != 1 or not scenes[0]:
            raise SettingsError(f"it walked about {' '.join(scenes)}: name one scene with --envs")
        return tuple(scenes)
    names = chosen or [n.removeprefix("MiniGrid-").removesuffix("-v0") for n in stored]
    for name in names:
        find(name)
    return tuple(names)


def in_rooms(flags: Mapping[str, Any]) -> bool:
    """Return whether the policy was trained in Habitat."""
    return str(flags.get("env", "")).startswith(ROOMS)


def converted(stored: PublishedCheckpoint, names: Sequence[str]) -> Policy:
    """Return the policy as one of ours.

    Args:
        stored: the checkpoint.
        names: of the worlds that it was trained in.

    Raises:
        WeightsError: it is none for such worlds.
    """
    if in_rooms(stored.flags):
        return convert(stored.tensors, len(ACTIONS), VIEW_SHAPE, images=True)
    world = make_world(names[:1], 1, explore=True)
    return convert(stored.tensors, world.num_actions, world.view_shape)


def run_settings(
    stored: PublishedCheckpoint,
    network: NetworkSettings,
    chosen: Sequence[str] = (),
    played: HabitatSettings | None = None,
) -> RunSettings:
    """Return the settings of the run that would have made the checkpoint.

    Args:
        stored: the checkpoint.
        network: of its policy.
        chosen: worlds, where the checkpoint's are not the ones.
        played: how scenes are, if it was trained in one (None: as by default).

    Raises:
        SettingsError: no run of ours is such a run, or its policy is only half of one.
        UnknownEnvironment: we have no such world.
    """
    flags = stored.flags
    if flags.get("checkpoint"):
        raise SettingsError(
            f"it learnt a task biased by {flags['checkpoint']}, without which its policy is not "
            "whole: import that one, and transfer it"
        )
    name = str(flags.get("model"))
    if name not in METHODS:
        raise SettingsError(f"it learnt by {name!r}; known: {', '.join(METHODS)}")
    rooms = in_rooms(flags)
    played = played or HabitatSettings()
    if played != HabitatSettings() and not rooms:
        raise SettingsError("it was trained in gridworlds: leave out what is said of rooms")
    explores = rooms or bool(flags.get("no_reward"))
    counts = CountSettings(random_resets=explores, keys="ternary" if rooms else "exact")
    if explores and name == "cbet":
        counts = _taken(flags, counts, {"reset_probability": "count_reset_prob"})
    train = TrainSettings(METHODS[name], network=network)
    try:
        train = _taken(flags, train, {**TRAIN, "worlds": "num_actors"})
    except SettingsError:  # the published code's actors need not make whole batches
        train = _taken(flags, train, {**TRAIN, "worlds": "batch_size"})
    optimizer = _taken(flags, OptimizerSettings(), OPTIMIZER)
    decay = max(_taken(flags, train, {"frames": "total_frames"}).frames, optimizer.decay_frames)
    train = replace(
        train,
        frames=stored.updates * train.batch * train.unroll,
        extrinsic_weight=float(not explores),
        optimizer=replace(optimizer, decay_frames=decay),
        loss=_taken(flags, LossSettings(), LOSS),
        auxiliary=_taken(flags, FIVE_LAYERS if rooms else AuxiliarySettings(), AUXILIARY),
        counts=counts,
    )
    names, scenes = worlds(flags, chosen), played if rooms else None
    return RunSettings(train, names, chunk=1, explore=explores, habitat=scenes)


def _taken[S](flags: Mapping[str, Any], settings: S, names: Mapping[str, str]) -> S:
    """Return settings with what the flags say in place of the defaults."""
    found = {name: flags[flag] for name, flag in names.items() if flag in flags}
    for name, value in found.items():
        wanted = float if isinstance(getattr(settings, name), float | None) else int
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise SettingsError(f"its flag {names[name]} is {value!r}, which is no number")
        if not math.isfinite(value):
            raise SettingsError(f"its flag {names[name]} is {value}, which is not finite")
        found[name] = wanted(value)
    return replace(settings, **found)  # type: ignore[type-var]
