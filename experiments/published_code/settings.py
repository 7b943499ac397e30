"""The settings of the run of ours that would have made a checkpoint of the published code."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from cbet_jax import config
from experiments.common.presets import FIVE_LAYERS
from experiments.published_code.checkpoint import ROOMS, PublishedCheckpoint

METHODS = {
    **{name: name for name in ("cbet", "count", "curiosity", "ride", "rnd")},
    "vanilla": "none",
}

# Our settings -> the published code's flags.
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


def run_settings(
    stored: PublishedCheckpoint,
    network: config.NetworkSettings,
    chosen: Sequence[str] = (),
    played: config.HabitatSettings | None = None,
) -> config.RunSettings:
    """Return the settings of the run that would have made the checkpoint.

    Args:
        stored: the checkpoint.
        network: its policy's network.
        chosen: worlds from the command line, instead of the checkpoint's.
        played: how scenes are played (None: the defaults).

    Raises:
        SettingsError: none of our runs has such settings, or the policy needs another one as bias.
        UnknownEnvironment: a world has no counterpart here.
    """
    flags, rooms = stored.flags, stored.in_rooms
    if flags.get("checkpoint"):
        raise config.SettingsError(
            f"it learnt a task biased by {flags['checkpoint']}, without which its policy is not "
            "whole: import that one, and transfer it"
        )
    name = str(flags.get("model"))
    if name not in METHODS:
        raise config.SettingsError(f"it learnt by {name!r}; known: {', '.join(METHODS)}")
    played = played or config.HabitatSettings()
    if played != config.HabitatSettings() and not rooms:
        raise config.SettingsError("it was trained in gridworlds: leave out what is said of rooms")
    no_reward = flags.get("no_reward")
    if no_reward not in (None, False, True):
        raise config.SettingsError(f"its flag no_reward is {no_reward!r}, neither true nor false")
    explores = rooms or bool(no_reward)
    counts = config.CountSettings(random_resets=explores, keys="ternary" if rooms else "exact")
    if explores and name == "cbet":
        counts = _taken(flags, counts, {"reset_probability": "count_reset_prob"})
    train = config.TrainSettings(METHODS[name], network=network)
    try:
        train = _taken(flags, train, {**TRAIN, "worlds": "num_actors"})
    except config.SettingsError:  # the published code's actors need not make whole batches
        sizes = [flags.get(name, 1) for name in ("num_actors", "batch_size", "unroll_length")]
        if not all(isinstance(size, int) and size > 0 for size in sizes):
            raise
        train = _taken(flags, train, {**TRAIN, "worlds": "batch_size"})
    optimizer = _taken(flags, config.OptimizerSettings(), OPTIMIZER)
    decay = max(_taken(flags, train, {"frames": "total_frames"}).frames, optimizer.decay_frames)
    train = replace(
        train,
        frames=stored.updates * train.batch * train.unroll,
        extrinsic_weight=float(not explores),
        optimizer=replace(optimizer, decay_frames=decay),
        loss=_taken(flags, config.LossSettings(), LOSS),
        auxiliary=_taken(flags, FIVE_LAYERS if rooms else config.AuxiliarySettings(), AUXILIARY),
        counts=counts,
    )
    scenes, names = played if rooms else None, worlds(stored, chosen)
    return config.RunSettings(train, names, chunk=1, explore=explores, habitat=scenes)


def worlds(stored: PublishedCheckpoint, chosen: Sequence[str]) -> tuple[str, ...]:
    """Return the worlds that the policy was trained in, by the paper's names, or its scene.

    Args:
        stored: the checkpoint.
        chosen: names from the command line, instead of the checkpoint's.

    Raises:
        UnknownEnvironment: a world has no counterpart here.
        SettingsError: there is not exactly one scene.
    """
    flagged = str(stored.flags.get("env", "")).split(",")
    if not chosen and flagged == [""]:
        raise config.SettingsError("its flags name no world: name it with --envs")
    if stored.in_rooms:
        scenes = chosen or [name.removeprefix(ROOMS) for name in flagged]
        if len(scenes) != 1 or not scenes[0]:
            raise config.SettingsError(
                f"it walked about {' '.join(scenes)}: name one scene with --envs"
            )
        return tuple(scenes)
    from envs.minigrid.generators import find  # imported here: it takes seconds

    names = chosen or [n.removeprefix("MiniGrid-").removesuffix("-v0") for n in flagged]
    for name in names:
        find(name)
    return tuple(names)


def _taken[S](flags: Mapping[str, Any], settings: S, names: Mapping[str, str]) -> S:
    """Return settings with values of flags instead of defaults."""
    found = {name: flags[flag] for name, flag in names.items() if flag in flags}
    for name, value in found.items():
        wanted = float if isinstance(getattr(settings, name), float | None) else int
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise config.SettingsError(f"its flag {names[name]} is {value!r}, which is no number")
        if not math.isfinite(value):
            raise config.SettingsError(f"its flag {names[name]} is {value}, which is not finite")
        if wanted(value) != value:
            raise config.SettingsError(f"its flag {names[name]} is {value}, no whole number")
        found[name] = wanted(value)
    return replace(settings, **found)  # type: ignore[type-var]
