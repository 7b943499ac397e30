"""The settings of a run: frozen dataclasses, checked once.

Defaults are the values of the published code (paper, appendix "hyperparameters").
Settings marked *static* shape the compiled program; the others only fill in numbers.
"""

import math
from dataclasses import dataclass, field


class SettingsError(ValueError):
    """Settings that cannot be run, with one line that says why."""


@dataclass(frozen=True)
class NetworkSettings:
    """The policy's network (static)."""

    conv_layers: int = 3  # 3x3, stride 2, padding 1, ELU
    channels: int = 32  # filters of each convolution
    dense_layers: int = 2  # ReLU
    dense_units: int = 1024
    lstm_layers: int = 2
    lstm_units: int = 1024


@dataclass(frozen=True)
class OptimizerSettings:
    """RMSProp as PyTorch computes it, with a linearly decaying learning rate."""

    learning_rate: float = 1e-4
    decay_frames: int = 100_000_000  # the rate reaches 0 after max(frames, decay_frames)
    rms_decay: float = 0.99
    rms_epsilon: float = 1e-5  # added outside the square root
    max_gradient_norm: float = 40.0


@dataclass(frozen=True)
class LossSettings:
    """V-trace and the three terms of the loss."""

    discount: float = 0.99
    value_weight: float = 0.5
    entropy_weight: float = 0.0005


@dataclass(frozen=True)
class CountSettings:
    """Count tables: one for states and one for changes, for each actor."""

    reset_probability: float = 0.001  # p, for each table at each step
    capacity: int = 2**14  # slots in a table (static)

    def __post_init__(self) -> None:
        if not 0 <= self.reset_probability <= 1:
            raise SettingsError("counts.reset_probability must lie between 0 and 1")
        if self.capacity < 16 or self.capacity & (self.capacity - 1):
            raise SettingsError(
                f"counts.capacity must be a power of two of 16 or more, not {self.capacity}"
            )


@dataclass(frozen=True)
class TrainSettings:
    """All that pre-training needs to know beside its worlds."""

    method: str = "cbet"
    intrinsic_coefficient: float = 0.005
    frames: int = 50_000_000  # for each seed; rounded up to whole iterations
    worlds: int = 40  # actors, for each seed (static)
    batch: int = 32  # sequences in an update (static)
    unroll: int = 100  # steps in a sequence (static)
    network: NetworkSettings = field(default_factory=NetworkSettings)
    optimizer: OptimizerSettings = field(default_factory=OptimizerSettings)
    loss: LossSettings = field(default_factory=LossSettings)
    counts: CountSettings = field(default_factory=CountSettings)

    def __post_init__(self) -> None:
        check(self)

    @property
    def rollouts(self) -> int:
        """Rollouts in an iteration: the fewest that make whole batches."""
        return math.lcm(self.worlds, self.batch) // self.worlds

    @property
    def updates(self) -> int:
        """Updates in an iteration: every sequence played is learnt from once."""
        return math.lcm(self.worlds, self.batch) // self.batch

    @property
    def iteration_frames(self) -> int:
        """Frames that one iteration plays, for each seed."""
        return self.rollouts * self.worlds * self.unroll

    @property
    def iterations(self) -> int:
        """Iterations in the whole run."""
        return -(-self.frames // self.iteration_frames)


MAX_ROLLOUTS = 8  # more would let the data of an iteration grow stale


def check(settings: TrainSettings) -> None:
    """Refuses settings that cannot be run.

    Raises:
        SettingsError: the first thing found wrong, in one line.
    """
    for name in ("frames", "worlds", "batch", "unroll"):
        if getattr(settings, name) < 1:
            raise SettingsError(f"{name} must be at least 1, not {getattr(settings, name)}")
    if settings.rollouts > MAX_ROLLOUTS:
        raise SettingsError(
            f"worlds={settings.worlds} and batch={settings.batch} do not divide: it would take "
            f"{settings.rollouts} rollouts (at most {MAX_ROLLOUTS}) to make whole batches; "
            "choose worlds as a multiple or a divisor of batch"
        )
    network = settings.network
    for name in ("conv_layers", "channels", "dense_layers", "dense_units", "lstm_layers"):
        if getattr(network, name) < 1:
            raise SettingsError(f"network.{name} must be at least 1")
    if network.lstm_units < 1:
        raise SettingsError("network.lstm_units must be at least 1")
    if not 0 <= settings.loss.discount < 1:
        raise SettingsError("loss.discount must be at least 0 and below 1")
    if settings.optimizer.learning_rate <= 0:
        raise SettingsError("optimizer.learning_rate must be above 0")
