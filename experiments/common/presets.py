"""The presets: complete settings under a name. Every field can be overridden."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cbet_jax.config import (
    BRIGHTEST_PIXEL,
    AuxiliarySettings,
    CountSettings,
    HabitatSettings,
    NetworkSettings,
    OptimizerSettings,
    RunSettings,
    SettingsError,
    TrainSettings,
)
from cbet_jax.own_code import is_own
from envs.errors import did_you_mean
from envs.names import our_name
from experiments.common.cli import Said, value_of

SMALL = NetworkSettings(channels=8, dense_layers=1, dense_units=32, lstm_layers=1, lstm_units=32)

PRESETS: dict[str, RunSettings] = {
    # The published code's values, which are the defaults of every field.
    "paper": RunSettings(),
    # The same algorithm with a small network and many small updates: it learns within minutes on
    # two CPU cores. How it was chosen: experiments/laptop.md.
    "laptop": RunSettings(
        train=TrainSettings(
            frames=24_000_000,
            worlds=128,
            batch=32,
            unroll=50,
            network=NetworkSettings(
                channels=16, dense_layers=2, dense_units=64, lstm_layers=1, lstm_units=64
            ),
            optimizer=OptimizerSettings(learning_rate=1e-3),
        ),
        chunk=30,
    ),
    # Everything once, in less than a minute: shows that it runs, learns nothing.
    "smoke": RunSettings(
        train=TrainSettings(frames=8_000, worlds=8, batch=8, unroll=20, network=SMALL), chunk=10
    ),
}
DEFAULT = "paper"

TERNARY = CountSettings(keys="ternary")
FIVE_LAYERS = AuxiliarySettings(channels=(32,) * 5)  # 128 numbers of a 64x64 view
FLAT = ("large_flat",)  # the largest of the package's scenes


def seeing_images(run: RunSettings) -> RunSettings:
    """Return settings with the network that reads images."""
    network = replace(run.train.network, conv_layers=5, brightest=BRIGHTEST_PIXEL)
    return replace(run, train=replace(run.train, network=network))


def _seeing_rooms(run: RunSettings) -> RunSettings:
    """Return a preset's settings with the network and the counts of all runs in rooms."""
    run = seeing_images(run)
    return replace(run, train=replace(run.train, counts=TERNARY, auxiliary=FIVE_LAYERS))


_HABITAT: dict[str, RunSettings] = {
    # The published code's values; its scene was Replica's apartment_0.
    "paper": RunSettings(
        train=TrainSettings(frames=2_000_000, worlds=4),
        environments=FLAT,
        chunk=1,
        habitat=HabitatSettings(),
    ),
    # The same algorithm with a smaller network, which learns more often from fewer frames.
    "laptop": RunSettings(
        train=TrainSettings(
            frames=300_000,
            worlds=8,
            batch=4,
            unroll=50,
            network=NetworkSettings(
                channels=16, dense_layers=1, dense_units=256, lstm_layers=1, lstm_units=256
            ),
            optimizer=OptimizerSettings(learning_rate=5e-4),
        ),
        environments=FLAT,
        chunk=10,
        habitat=HabitatSettings(),
    ),
    # Everything once, in less than a minute: shows that it runs, learns nothing.
    "smoke": RunSettings(
        train=TrainSettings(frames=1_000, worlds=2, batch=2, unroll=25, network=SMALL),
        environments=("studio",),
        chunk=5,
        habitat=HabitatSettings(max_steps=100),
    ),
}
HABITAT_PRESETS = {name: _seeing_rooms(run) for name, run in _HABITAT.items()}

# What the presets change in tasks; `paper` changes nothing. What keeps a learnt task from being
# lost: experiments/study/RESULTS.md. Users' own worlds may not give final views.
_LOSS = replace(PRESETS["laptop"].train.loss, relative_entropy=True, bootstrap="final")
_OPTIMIZER = replace(PRESETS["laptop"].train.optimizer, rms_decay=0.999, largest_step=1.0)


def _from_policy(weight: float, learning_rate: float) -> dict[str, Any]:
    return {
        "loss": replace(_LOSS, entropy_weight=weight, forward_kl=True),
        "optimizer": replace(_OPTIMIZER, learning_rate=learning_rate, target_kl=0.02),
    }


TABULA_RASA, TRANSFER, FINE_TUNING = "tabula rasa", "transfer", "fine-tuning"
LAPTOP_TASKS = {
    TABULA_RASA: {"loss": replace(_LOSS, entropy_weight=1e-4), "optimizer": _OPTIMIZER},
    TRANSFER: _from_policy(5e-4, 1e-3),
    FINE_TUNING: _from_policy(1e-3, 3e-4),  # a copy can lose more, so it is kept nearer
}

# Frames that the published code learns each task from; other tasks take the preset's.
MILLION = 1_000_000
TASK_FRAMES = {
    "Unlock": 5 * MILLION,
    "DoorKey-8x8": 50 * MILLION,
    "KeyCorridorS3R3": 25 * MILLION,
    "UnlockPickup": 25 * MILLION,
    "BlockedUnlockPickup": 50 * MILLION,
    "MultiRoom-N6": 25 * MILLION,
    "MultiRoom-N12-S10": 50 * MILLION,
    "ObstructedMaze-1Dlh": 50 * MILLION,
    "ObstructedMaze-2Dlh": 100 * MILLION,
    "ObstructedMaze-2Dlhb": 200 * MILLION,
}


def named(name: str | None, presets: Mapping[str, RunSettings] = PRESETS) -> RunSettings:
    """Return the settings of a preset (None: the default one), or refuse an unknown name."""
    name = DEFAULT if name is None else name
    if name not in presets:
        raise SettingsError(f"unknown preset {name!r}; {did_you_mean(name, presets)}")
    return presets[name]


def base(
    name: str | None, stored: RunSettings | None, presets: Mapping[str, RunSettings] = PRESETS
) -> RunSettings:
    """Return the defaults of a command line: the named preset's, or the resumed run's."""
    return stored if stored and name is None else named(name, presets)


def observing(run: RunSettings, said: Said) -> RunSettings:
    """Return settings with the network that reads what a command line lets policies see."""
    return seeing_images(run) if "rgb" in (value_of(said, "--view") or "") else run


def task_frames(env: str) -> int:
    """Return the published frames of a task, or of pre-training for other tasks."""
    return TASK_FRAMES.get(our_name(env).partition("?")[0], PRESETS["paper"].train.frames)


def task_of(said: Said, stored: RunSettings | None) -> str | None:
    """Return the task that a command line names, or else that of the run to resume, if any."""
    return value_of(said, "--env") or (stored.environments[0] if stored else None)


def for_task(name: str | None, env: str | None, how: str = TABULA_RASA) -> TrainSettings:
    """Return a preset for one task: extrinsic reward, no resets of counts, and `LAPTOP_TASKS`.

    The published frames of pre-training become the published frames of the task.
    """
    preset = named(name)
    frames = preset.train.frames
    if env and frames == PRESETS["paper"].train.frames:
        frames = task_frames(env)
    train = replace(
        preset.train,
        frames=frames,
        extrinsic_weight=1.0,
        counts=replace(preset.train.counts, random_resets=False),
        **(LAPTOP_TASKS[how] if name == "laptop" else {}),
    )
    own = is_own(env or "")
    return replace(train, loss=replace(train.loss, bootstrap="next")) if own else train


def published(run: RunSettings) -> RunSettings:
    """Return the `paper` preset of what a run does: it pre-trains, or learns its task."""
    preset = (HABITAT_PRESETS if run.habitat else PRESETS)["paper"]
    if run.explore:
        return preset
    train = for_task("paper", run.environments[0])
    train = replace(train, method="none") if run.transfer else train
    task = replace(preset, train=train, environments=run.environments)
    return replace(task, explore=False, transfer=run.transfer)
