"""The settings of a run: frozen dataclasses, checked once.

Defaults are the values of the published code (paper, appendix "hyperparameters").
Settings marked *static* shape the compiled program; the others only fill in numbers.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Literal, get_args


class SettingsError(ValueError):
    """Settings that cannot be run, with one line that says why."""


BRIGHTEST_PIXEL = 255  # the largest number in an image
Factors = Literal["float32", "bfloat16"]


@dataclass(frozen=True)
class NetworkSettings:
    """The policy's network (static)."""

    conv_layers: int = 3  # 3x3, stride 2, padding 1, ELU
    channels: int = 32  # filters of each convolution
    dense_layers: int = 2  # ReLU
    dense_units: int = 1024
    lstm_layers: int = 2
    lstm_units: int = 1024
    factors: Factors = "float32"  # of its matrix products; their sums and all else are float32
    #: what views are divided by: 255 for images (None: nothing, as for MiniGrid's numbers of
    #: things)
    brightest: int | None = None


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
    #: a time-out is a truncation: bootstrap from the old episode's last view, not (as the published
    #: code does) from the next one's first (static)
    cut_at_time_outs: bool = False


View = Literal["egocentric", "panoramic"]
Keys = Literal["exact", "ternary"]
Offsets = Literal["uniform", "normal"]


@dataclass(frozen=True)
class CountSettings:
    """Count tables: of states and of changes, as far as the method counts them."""

    reset_probability: float | None = None  # p, for each table at each step (None: the method's)
    random_resets: bool = True  # no: the method's own p is 0, as in the paper without pre-training
    capacity: int | None = None  # slots in a table (None: enough for the method) (static)
    shared: bool = False  # one table for all actors, instead of one for each (static)
    states: View = "egocentric"  # the view that a state is told by (static)
    changes: View = "panoramic"  # the view whose difference is a change (static)
    #: what is taken for the same: equal observations, or (for images) those of one ternary code
    #: (static)
    keys: Keys = "exact"
    #: w of that code: uniform in (-1, 1) as in the published code, or standard normal as in the
    #: paper (static)
    offsets: Offsets = "uniform"

    def __post_init__(self) -> None:
        if self.reset_probability is not None and not 0 <= self.reset_probability <= 1:
            raise SettingsError("counts.reset_probability must lie between 0 and 1")
        choices = {"states": View, "changes": View, "keys": Keys, "offsets": Offsets}
        for name, names in choices.items():
            if getattr(self, name) not in get_args(names):
                raise SettingsError(f"counts.{name} must be {' or '.join(get_args(names))}")
        slots = 16 if self.capacity is None else self.capacity
        if slots < 16 or slots & (slots - 1):
            raise SettingsError(
                f"counts.capacity must be a power of two of 16 or more, not {slots}"
            )


@dataclass(frozen=True)
class AuxiliarySettings:
    """The networks of RND, Curiosity and RIDE, and what they learn from."""

    channels: tuple[int, ...] = (32, 32, 128)  # filters of an embedding's convolutions (static)
    hidden_units: int = 256  # of the inverse and the forward model (static)
    forward_weight: float = 10.0  # of the forward model's loss
    inverse_weight: float = 0.1  # of the inverse model's loss
    prediction_weight: float = 0.1  # of RND's loss
    squared_norms: bool = False  # in rewards and losses, as the paper writes them (static)

    def __post_init__(self) -> None:
        if not self.channels or min(self.channels) < 1:
            raise SettingsError("auxiliary.channels must be one or more numbers of at least 1")
        if self.hidden_units < 1:
            raise SettingsError("auxiliary.hidden_units must be at least 1")


@dataclass(frozen=True)
class HabitatSettings:
    """How scenes of rooms are played (paper, appendix on Habitat)."""

    simulator: str = "raycast"  # or habitat_sim, or the path of a file that defines `open_scene`
    folder: str | None = None  # of the data set that scenes are named in (None: they are paths)
    max_steps: int = 500  # of an episode
    random_starts: bool = False  # every episode begins somewhere else, not where the seed says

    def __post_init__(self) -> None:
        if self.max_steps < 1:
            raise SettingsError(f"max_steps must be at least 1, not {self.max_steps}")


@dataclass(frozen=True)
class TransferSettings:
    """The pre-trained policy that biases a task's, and by how much (paper, section 3.3)."""

    run: str  # directory of the run that it is taken from
    frames: int  # of that run's checkpoint
    network: NetworkSettings  # its own (static)
    #: which of that run's seeds (None: each seed takes the one of the same index)
    seed_index: int | None = None
    alpha: float = 1.0  # weight of its logits, which are added to the task's
    alpha_frames: int | None = None  # alpha falls linearly to 0 over so many (None: it stays)

    def __post_init__(self) -> None:
        if self.alpha < 0 or not math.isfinite(self.alpha):
            raise SettingsError(f"alpha must be at least 0, not {self.alpha}")
        if self.alpha_frames is not None and self.alpha_frames < 1:
            raise SettingsError(f"alpha_frames must be at least 1, not {self.alpha_frames}")


@dataclass(frozen=True)
class TrainSettings:
    """All that training needs to know beside its worlds."""

    method: str = "cbet"  # or count, rnd, curiosity, ride, none, ablation-* (static)
    intrinsic_coefficient: float | None = None  # of the intrinsic reward (None: the method's own)
    extrinsic_weight: float = 0.0  # of the extrinsic reward, added to it: 0 in pre-training
    frames: int = 50_000_000  # for each seed; rounded up to whole iterations
    worlds: int = 40  # actors, for each seed (static)
    batch: int = 32  # sequences in an update (static)
    unroll: int = 100  # steps in a sequence (static)
    network: NetworkSettings = field(default_factory=NetworkSettings)
    optimizer: OptimizerSettings = field(default_factory=OptimizerSettings)
    loss: LossSettings = field(default_factory=LossSettings)
    counts: CountSettings = field(default_factory=CountSettings)
    auxiliary: AuxiliarySettings = field(default_factory=AuxiliarySettings)

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


@dataclass(frozen=True)
class RunSettings:
    """All that decides what a run computes: equal settings give equal numbers."""

    train: TrainSettings = field(default_factory=TrainSettings)
    environments: tuple[str, ...] = ("MultiRoom-N4-S5", "KeyCorridorS3R3", "BlockedUnlockPickup")
    seeds: int = 1  # trained side by side in one compiled program
    first_seed: int = 0  # the seeds are first_seed, first_seed + 1, ...
    chunk: int = 5  # iterations between two looks of the host
    explore: bool = True  # there is no task: success does not end an episode
    transfer: TransferSettings | None = None  # what biases the policy, if anything does
    habitat: HabitatSettings | None = None  # how the environments are played, if they are scenes of
    # rooms; None: they are gridworlds

    def __post_init__(self) -> None:
        for name in ("seeds", "chunk"):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.first_seed < 0:
            raise SettingsError(f"first_seed must be at least 0, not {self.first_seed}")
        if not self.environments:
            raise SettingsError("envs must name at least one environment")

    @property
    def stage(self) -> str:
        """What people call such a run."""
        task = "transfer" if self.transfer else "tabula rasa"
        stage = "pre-training" if self.explore else task
        return f"{stage} in Habitat" if self.habitat else stage


MAX_ROLLOUTS = 8  # more would let the data of an iteration grow stale

# What a setting must be -> whether it is, and the settings that must.
RANGES: dict[str, tuple[Callable[[Any], bool], tuple[str, ...]]] = {
    "at least 1": (
        lambda value: value >= 1,
        (
            *("frames", "worlds", "batch", "unroll", "network.conv_layers", "network.channels"),
            *("network.dense_layers", "network.dense_units", "network.lstm_layers"),
            *("network.lstm_units", "network.brightest"),
        ),
    ),
    "above 0": (
        lambda value: value > 0,
        ("optimizer.learning_rate", "optimizer.rms_epsilon", "optimizer.max_gradient_norm"),
    ),
    "at least 0": (
        lambda value: value >= 0,
        (
            *("intrinsic_coefficient", "extrinsic_weight", "optimizer.decay_frames"),
            *("loss.value_weight", "loss.entropy_weight", "auxiliary.forward_weight"),
            *("auxiliary.inverse_weight", "auxiliary.prediction_weight"),
        ),
    ),
    "at least 0 and below 1": (
        lambda value: 0 <= value < 1,
        ("loss.discount", "optimizer.rms_decay"),
    ),
}


def check(settings: TrainSettings) -> None:
    """Refuses settings that cannot be run.

    Raises:
        SettingsError: the first thing found wrong, in one line.
    """
    values = dict(_numbers(settings))
    for name, value in values.items():
        if not math.isfinite(value):
            raise SettingsError(f"{name} must be a finite number, not {value}")
    for wanted, (is_so, names) in RANGES.items():
        for name in names:
            if name in values and not is_so(values[name]):
                raise SettingsError(f"{name} must be {wanted}, not {values[name]}")
    if settings.network.factors not in get_args(Factors):
        raise SettingsError(f"network.factors must be {' or '.join(get_args(Factors))}")
    if settings.rollouts > MAX_ROLLOUTS:
        raise SettingsError(
            f"worlds={settings.worlds} and batch={settings.batch} do not divide: it would take "
            f"{settings.rollouts} rollouts (at most {MAX_ROLLOUTS}) to make whole batches; "
            "choose worlds as a multiple or a divisor of batch"
        )


def _numbers(settings: Any, prefix: str = "") -> Iterator[tuple[str, float]]:
    """Yields the name and the value of each number of a dataclass and of those inside it."""
    for item in fields(settings):
        value, name = getattr(settings, item.name), f"{prefix}{item.name}"
        if is_dataclass(value):
            yield from _numbers(value, f"{name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield name, value
