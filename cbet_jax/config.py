"""The settings of a run: frozen dataclasses, checked once.

Defaults are the values of the published code (paper, appendix "hyperparameters"). A field's type
says its range, and whether it is static, which means that it shapes the compiled program
(`cbet_jax.settings.ranges`). Names of fields are a file format: runs are stored with them.
"""

import math
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from cbet_jax.settings.ranges import (
    LARGEST_INT,
    MOST_FRAMES,
    BelowOne,
    Frames,
    Iterations,
    Layers,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    Probability,
    Requirement,
    Seed,
    Seeds,
    SettingsError,
    Static,
    Steps,
    Switch,
    Units,
    Worlds,
    at_least,
    at_most,
    check_fields,
    check_seeds,
)

BRIGHTEST_PIXEL = 255  # the largest number in an image
RESET_PROBABILITY = 0.001  # C-BET's p (paper, appendix "Hyperparameter Details")
MAX_ROLLOUTS = 8  # most rollouts in an iteration; the data of more would grow stale

Factors = Literal["float32", "bfloat16"]
CountedView = Literal["egocentric", "panoramic"]
Bootstrap = Literal["next", "before", "final"]
PolicyView = Literal["egocentric", "full", "rgb", "full-rgb"]
ViewSize = Annotated[int, Requirement("odd and in 3..31", lambda x: x % 2 and 3 <= x <= 31)]
Keys = Literal["exact", "ternary"]
Offsets = Literal["uniform", "normal"]
Axis = Literal["y", "z"]
Metres = Annotated[PositiveFloat, at_most(10)]

Heads = Annotated[int, at_least(1), at_most(2)]
Filters = Annotated[
    tuple[int, ...],
    Requirement("one or more numbers of at least 1", lambda x: x and min(x) >= 1),
    Requirement("at most 16 numbers of at most 65536", lambda x: len(x) <= 16 and max(x) <= 2**16),
]
Slots = Annotated[
    int,
    Requirement("a power of two of 16 or more", lambda x: x >= 16 and not x & (x - 1)),
    at_most(2**30),
]


@dataclass(frozen=True)
class NetworkSettings:
    """The policy's network."""

    conv_layers: Static[Layers] = 3  # 3x3, stride 2, padding 1, ELU
    channels: Static[Units] = 32  # filters of each convolution
    dense_layers: Static[Layers] = 2  # ReLU
    dense_units: Static[Units] = 1024
    lstm_layers: Static[Layers] = 2
    lstm_units: Static[Units] = 1024
    #: 2: separate values of the task's and the intrinsic reward, each with its discount; the
    #: intrinsic return continues past an episode's end (Burda et al., 2018)
    value_heads: Static[Heads] = 1
    factors: Static[Factors] = "float32"  # precision of matrix products; sums are float32
    #: views are divided by this: 255 for images (None: not divided, as MiniGrid's cell codes)
    brightest: Static[PositiveInt | None] = None

    def __post_init__(self) -> None:
        check_fields(self, "network.")


@dataclass(frozen=True)
class OptimizerSettings:
    """RMSProp as PyTorch computes it, with a linearly decaying learning rate."""

    learning_rate: PositiveFloat = 1e-4
    decay_frames: Annotated[int, at_least(0), at_most(MOST_FRAMES)] = (
        100_000_000  # the rate is 0 after max(frames, decay_frames)
    )
    rms_decay: Static[BelowOne] = 0.99
    rms_epsilon: PositiveFloat = 1e-5  # added outside the square root
    #: bound on the root mean square of an array's step, in learning rates (None: no bound)
    largest_step: Static[PositiveFloat | None] = None
    #: the policy skips batches in which it is already this far from the one that acted: mean
    #: KL(acting || learning) of a step (None: none); the rate's schedule does not count them
    target_kl: Static[PositiveFloat | None] = None
    max_gradient_norm: PositiveFloat = 40.0

    def __post_init__(self) -> None:
        check_fields(self, "optimizer.")


@dataclass(frozen=True)
class LossSettings:
    """V-trace and the three terms of the loss."""

    discount: BelowOne = 0.99
    #: discount of the intrinsic reward, if `network.value_heads` is 2, and in `rnd-normalized`
    intrinsic_discount: BelowOne = 0.99
    value_weight: NonNegativeFloat = 0.5
    entropy_weight: NonNegativeFloat = 0.0005
    #: transfer: weight the divergence from softmax(alpha x the frozen policy's logits), not the
    #: (published) negative entropy, which is the divergence from the uniform policy
    relative_entropy: Static[bool] = False
    forward_kl: Static[bool] = False  # transfer: that divergence is KL(frozen || policy)
    #: which view's value follows a time-out: the next episode's first one (published), the one
    #: before the last action, or the final one, which that action led to
    bootstrap: Static[Bootstrap] = "next"

    def __post_init__(self) -> None:
        check_fields(self, "loss.")


@dataclass(frozen=True)
class CountSettings:
    """Count tables of states and changes; a method has those that it needs."""

    #: probability p that a table is reset at a step (None: the method's)
    reset_probability: Switch[Probability] | None = None
    random_resets: bool = True  # no: the method's p is 0, as in the paper without pre-training
    #: reset an actor's counts when its episode ends, and at no other time (C-BET, Count, ablation)
    episodic: Static[bool] = False
    capacity: Static[Slots | None] = None  # slots in a table (None: enough for the method)
    shared: Static[bool] = False  # one table for all actors, instead of one for each
    states: Static[CountedView] = "egocentric"  # the view that identifies a state
    changes: Static[CountedView] = "panoramic"  # the view whose difference is a change
    #: how observations are identified: by exact value, or by a ternary hash code (images only)
    keys: Static[Keys] = "exact"
    #: w of the ternary code: uniform in (-1, 1) as in the published code, or standard normal as in
    #: the paper
    offsets: Static[Offsets] = "uniform"

    def __post_init__(self) -> None:
        check_fields(self, "counts.")


@dataclass(frozen=True)
class AuxiliarySettings:
    """The networks of methods, how they learn, and the views that NGU and RE3 remember."""

    channels: Static[Filters] = (32, 32, 128)  # filters of each convolution of an embedding
    hidden_units: Static[Units] = 256  # hidden layer of the inverse and the forward model
    forward_weight: NonNegativeFloat = 10.0  # weight of the forward model's loss
    inverse_weight: NonNegativeFloat = 0.1  # weight of the inverse model's loss
    prediction_weight: NonNegativeFloat = 0.1  # weight of RND's loss
    squared_norms: Static[bool] = False  # square norms in rewards and losses, as the paper does
    #: decay their learning rate as the policy's (the published code does not)
    decay_rate: Static[bool] = False
    #: newest views of an episode that NGU and RE3 remember, at least 10 (None: all of them; for
    #: other learners, which know no time limit: 640)
    episode_views: Static[PositiveInt | None] = None
    #: RND, Curiosity and RIDE see an episode's final view (no: the next one's first, as published)
    final_views: Static[bool] = False

    def __post_init__(self) -> None:
        check_fields(self, "auxiliary.")


@dataclass(frozen=True)
class ObservationSettings:
    """What policies see in gridworlds; counts read the 7x7 view and panorama all the same."""

    #: what the agent sees ahead, or the full grid, as numbers of things or drawn (rgb)
    view: Static[PolicyView] = "egocentric"
    view_size: Static[ViewSize] = 7  # width and height of what the agent sees ahead, in cells
    see_through_walls: Static[bool] = False  # nothing is hidden behind walls and closed doors

    def __post_init__(self) -> None:
        check_fields(self)
        if self.view == "full" and (self.view_size != 7 or self.see_through_walls):
            raise SettingsError("a full view has no view_size or walls in its way: leave them out")

    def __str__(self) -> str:
        size = "" if self.view == "full" else f" of {self.view_size} x {self.view_size} cells"
        return f"{self.view} views{size}{', through walls' * self.see_through_walls}"


@dataclass(frozen=True)
class HabitatSettings:
    """How scenes of rooms are played (paper, appendix on Habitat)."""

    simulator: str = "raycast"  # raycast, habitat_sim, or the path of a file with `open_scene`
    folder: str | None = None  # data set of the named scenes (None: paths, or the package's names)
    max_steps: PositiveInt = 500  # time limit of an episode
    random_starts: bool = False  # draw a new start for each episode
    #: all actors start at one place (no: each has its own for the whole run, as published)
    shared_start: bool = False
    agent_radius: Metres = 0.1  # metres
    agent_height: Metres = 1.5  # metres; the camera is at 0.88
    #: axis of a scene's file that points up (None: as its description says, else z in PLY files and
    #: in the scans of MP3D and HM3D, else y)
    up: Axis | None = None

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class TransferSettings:
    """The pre-trained policy that a task begins with.

    It biases the task's policy (paper, section 3.3), or is learnt on, all of it.
    """

    run: str  # directory of the pre-trained run
    frames: Annotated[int, at_least(0), at_most(MOST_FRAMES)]  # frames at that run's checkpoint
    network: NetworkSettings  # sizes of the network that was pre-trained
    #: the policy that the pre-trained run itself began with, if it had learnt a task
    transfer: "TransferSettings | None" = None
    fine_tune: bool = False  # learn a copy of it on, instead of adding its logits
    #: which of that run's seeds (None: each seed takes the one of the same index)
    seed_index: NonNegativeInt | None = None
    alpha: NonNegativeFloat = 1.0  # weight of its logits, which are added to the task's
    alpha_frames: Frames | None = None  # alpha decays linearly to 0 over these (None: constant)
    best: bool = False  # that checkpoint holds the best policies of a task

    def __post_init__(self) -> None:
        check_fields(self)
        if self.fine_tune and (self.alpha, self.alpha_frames) != (1.0, None):
            raise SettingsError("fine_tune adds no logits: leave alpha and alpha_frames out")


@dataclass(frozen=True)
class TrainSettings:
    """All settings of training, except its worlds."""

    method: Static[str] = "cbet"  # or another of `cbet_jax.intrinsic.METHODS`, or FILE.py:FUNCTION
    #: settings of a method from a file, NAME=VALUE
    own: Static[tuple[str, ...]] = ()
    #: weight of the intrinsic reward (None: the method's own)
    intrinsic_coefficient: NonNegativeFloat | None = None
    #: weight of the extrinsic reward, which is added to the intrinsic one: 0 in pre-training
    extrinsic_weight: NonNegativeFloat = 0.0
    frames: Frames = 50_000_000  # frames of each seed; rounded up to whole chunks
    worlds: Static[Worlds] = 40  # actors, for each seed
    batch: Static[Worlds] = 32  # sequences in an update
    unroll: Static[Steps] = 100  # steps in a sequence
    #: pre-training in gridworlds: begin all worlds in the first environment and keep them in
    #: step (no: their beginnings are spread over a cycle through the environments)
    lockstep: Static[bool] = False
    network: NetworkSettings = field(default_factory=NetworkSettings)
    optimizer: OptimizerSettings = field(default_factory=OptimizerSettings)
    loss: LossSettings = field(default_factory=LossSettings)
    counts: CountSettings = field(default_factory=CountSettings)
    auxiliary: AuxiliarySettings = field(default_factory=AuxiliarySettings)

    def __post_init__(self) -> None:
        check_fields(self)
        if self.rollouts > MAX_ROLLOUTS:
            raise SettingsError(
                f"worlds={self.worlds} and batch={self.batch} do not divide: it would take "
                f"{self.rollouts} rollouts (at most {MAX_ROLLOUTS}) to make whole batches; "
                "choose worlds as a multiple or a divisor of batch"
            )
        if self.iterations > LARGEST_INT:
            most = LARGEST_INT * self.iteration_frames
            raise SettingsError(f"frames must be at most {most} here, not {self.frames}")

    def for_episodes(self, longest: int) -> "TrainSettings":
        """Return settings that say how many views of an episode a method remembers."""
        views = self.auxiliary.episode_views or longest
        return replace(self, auxiliary=replace(self.auxiliary, episode_views=views))

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
        """Iterations that reach `frames`; a run ends with a whole chunk."""
        return -(-self.frames // self.iteration_frames)


@dataclass(frozen=True)
class RunSettings:
    """All that decides what a run computes: equal settings give equal numbers."""

    train: TrainSettings = field(default_factory=TrainSettings)
    environments: Static[tuple[str, ...]] = (
        "MultiRoom-N4-S5",
        "KeyCorridorS3R3",
        "BlockedUnlockPickup",
    )
    seeds: Static[Seeds] = 1  # trained side by side in one compiled program
    first_seed: Seed = 0  # the seeds are first_seed, first_seed + 1, ...
    chunk: Static[Iterations] = 5  # iterations before the host writes metrics
    explore: Static[bool] = True  # without a task: success does not end an episode
    transfer: TransferSettings | None = None  # policy that biases this one (None: no bias)
    #: how scenes of rooms are played (None: the environments are gridworlds)
    habitat: HabitatSettings | None = None
    observation: ObservationSettings = field(default_factory=ObservationSettings)

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.environments:
            raise SettingsError("envs must name at least one environment")
        for name in self.environments:  # its metrics go by its name
            if self.environments.count(name) > 1:
                raise SettingsError(f"environment {name!r} is named twice")
        check_seeds(self.first_seed, self.seeds)

    @property
    def stage(self) -> str:
        """The stage in words, such as "pre-training"."""
        stage = "pre-training" if self.explore else "transfer" if self.transfer else "tabula rasa"
        return f"{stage} in Habitat" if self.habitat else stage

    @property
    def player(self) -> str:
        """What its policies are called, such as "cbet", "transfer", "count tabula rasa"."""
        if self.explore:
            return self.train.method
        return self.stage if self.transfer else f"{self.train.method} {self.stage}"
