"""Import a policy of the published code: `python -m experiments.import_torch model.tar DIR`.

DIR becomes a run that has finished: its policy can be evaluated, watched and (in gridworlds)
transferred as that of any pre-trained run. The published code's optimizer state and counts are not
imported, so the run cannot be trained further. Only this command needs PyTorch (the extra
`torch`).
"""

import hashlib
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import tyro

from cbet_jax.agent import make_agent
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
from cbet_jax.networks.published_weights import Policy, Tensors, WeightsError, convert
from cbet_jax.program import seed_keys
from cbet_jax.runs import checkpoint, manifest, metrics_table
from cbet_jax.runs.checkpoint import Position
from cbet_jax.runs.directory import RunDirectory
from envs.errors import UnknownEnvironment
from envs.habitat.simulator import ACTIONS, VIEW_SHAPE
from envs.minigrid import make_world
from envs.minigrid.generators import find
from experiments.common import cli, gridworlds, habitat, invocation
from experiments.common.presets import FIVE_LAYERS
from experiments.common.screen import Screen, say

MODULE = "experiments.import_torch"
POLICY, FLAGS, SCHEDULE = "actor_model_state_dict", "flags", "scheduler_state_dict"
ROOMS = "HabitatNav-"  # before the name of a scene; its actions are ours, in our order
METHODS = {
    **{name: name for name in ("cbet", "count", "curiosity", "ride", "rnd")},
    "vanilla": "none",
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


@dataclass(frozen=True)
class ImportOptions:
    """Make a run of a checkpoint that the published PyTorch code has written."""

    source: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="model.tar")]
    #: a new directory, of the run that is made of it
    directory: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]
    #: worlds it was trained in, or its scene (default: as the checkpoint says)
    envs: tuple[str, ...] = ()
    #: of a policy for rooms: how they are played from now on
    habitat: Annotated[HabitatSettings, tyro.conf.arg(name="")] = field(
        default_factory=HabitatSettings
    )


class PublishedCheckpoint(NamedTuple):
    """The parts of a checkpoint that are read."""

    tensors: Tensors  # of the policy
    flags: Mapping[str, Any]  # the published code's settings
    updates: int  # of the policy, so far

    @property
    def in_rooms(self) -> bool:
        """Whether the policy was trained in Habitat."""
        return str(self.flags.get("env", "")).startswith(ROOMS)


def main(arguments: Sequence[str] | None = None) -> None:
    """Import the checkpoint that the command line names."""
    arguments = sys.argv[1:] if arguments is None else arguments
    console = Screen()
    with cli.user_errors(UnknownEnvironment):
        options: ImportOptions = cli.parse(ImportOptions, arguments, MODULE)
        stored = read(options.source)
        try:
            policy = converted(stored, worlds(stored, options.envs))
        except WeightsError as error:
            raise SettingsError(f"{options.source} cannot be imported: {error}") from None
        settings = run_settings(stored, policy.network, options.envs, options.habitat)
        directory = RunDirectory(options.directory)
        with console.status("importing"):
            imported = origin(options.source, stored)
            state = whole_state(settings, policy)
            directory.create(settings)
            write(directory, settings, state, imported, ["python -m", MODULE, *arguments])
    evaluate = habitat.EVALUATE if settings.habitat else gridworlds.EVALUATE
    line = f"imported at {settings.train.frames:,} frames; "
    line += f"next: {invocation.command_line(evaluate, directory.root)}"
    say(console, line)


def read(path: Path) -> PublishedCheckpoint:
    """Read a checkpoint of the published code.

    Raises:
        SettingsError: the file is missing or no such checkpoint, or PyTorch is not installed.
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
        SettingsError: the file holds something else, or PyTorch is not installed.
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


def worlds(stored: PublishedCheckpoint, chosen: Sequence[str]) -> tuple[str, ...]:
    """Return the worlds that the policy was trained in, by the paper's names, or its scene.

    Args:
        stored: the checkpoint.
        chosen: names that the command line gives instead.

    Raises:
        UnknownEnvironment: we have no such world. SettingsError: it is not one scene.
    """
    flagged = str(stored.flags.get("env", "")).split(",")
    if stored.in_rooms:
        scenes = chosen or [name.removeprefix(ROOMS) for name in flagged]
        if len(scenes) != 1 or not scenes[0]:
            raise SettingsError(f"it walked about {' '.join(scenes)}: name one scene with --envs")
        return tuple(scenes)
    names = chosen or [n.removeprefix("MiniGrid-").removesuffix("-v0") for n in flagged]
    for name in names:
        find(name)
    return tuple(names)


def converted(stored: PublishedCheckpoint, names: Sequence[str]) -> Policy:
    """Return the policy as one of ours, to play in worlds of these names.

    Raises:
        WeightsError: it was not made for such worlds.
    """
    if stored.in_rooms:
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
        chosen: worlds that the command line names, instead of the checkpoint's.
        played: how scenes are played, if it was trained in one (None: as by default).

    Raises:
        SettingsError: no run of ours is such a run, or its policy is only half of one.
        UnknownEnvironment: we have no such world.
    """
    flags, rooms = stored.flags, stored.in_rooms
    if flags.get("checkpoint"):
        raise SettingsError(
            f"it learnt a task biased by {flags['checkpoint']}, without which its policy is not "
            "whole: import that one, and transfer it"
        )
    name = str(flags.get("model"))
    if name not in METHODS:
        raise SettingsError(f"it learnt by {name!r}; known: {', '.join(METHODS)}")
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
    habitat_settings = played if rooms else None
    environments = worlds(stored, chosen)
    return RunSettings(train, environments, chunk=1, explore=explores, habitat=habitat_settings)


def _taken[S](flags: Mapping[str, Any], settings: S, names: Mapping[str, str]) -> S:
    """Return settings with the values of flags in place of the defaults."""
    found = {name: flags[flag] for name, flag in names.items() if flag in flags}
    for name, value in found.items():
        wanted = float if isinstance(getattr(settings, name), float | None) else int
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise SettingsError(f"its flag {names[name]} is {value!r}, which is no number")
        if not math.isfinite(value):
            raise SettingsError(f"its flag {names[name]} is {value}, which is not finite")
        found[name] = wanted(value)
    return replace(settings, **found)  # type: ignore[type-var]


def origin(source: Path, stored: PublishedCheckpoint) -> dict[str, Any]:
    """Return where the policy is from, for the run's manifest."""
    with open(source, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    plain = bool | int | float | str | None
    flags = {
        str(name): value if isinstance(value, plain) else str(value)
        for name, value in stored.flags.items()
    }
    return {"file": source.name, "sha256": digest, "updates": stored.updates, "flags": flags}


def write(
    directory: RunDirectory,
    settings: RunSettings,
    state: Any,
    imported: dict[str, Any],
    command: Sequence[str],
) -> None:
    """Write a run that is at its end.

    Args:
        directory: of the run, which is made.
        settings: of the run.
        state: as `whole_state` returns it.
        imported: where the policy is from, for the manifest.
        command: words of the command line.
    """
    iterations = settings.train.iterations
    rows = metrics_table.HEADER.encode()
    position = Position(iterations, settings.train.frames, len(rows), metrics_table.digest_of(rows))
    with directory.lock():
        directory.metrics.write_bytes(rows)
        checkpoint.save(directory.checkpoints, state, position)
        manifest.Session(directory.manifest, command).record(imported=imported)


def whole_state(settings: RunSettings, policy: Policy) -> Any:
    """Return the state of a run at its end, without the parts that only learning needs.

    Of a run in rooms it is the policy alone: the rest would take simulators to make.

    Raises:
        SettingsError: it does not fit into memory.
    """
    params = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], policy.params)  # of one seed
    keys = seed_keys(settings.seeds, settings.first_seed)
    if settings.habitat:
        agent = make_agent(settings.train.network, None, len(ACTIONS), VIEW_SHAPE)
        return {"learner": {"policy": params, "fixed": jax.vmap(agent.init)(keys).fixed}}
    state = gridworlds.build(settings).init(keys)
    return state._replace(
        learner=state.learner._replace(policy=params),
        iteration=jnp.full_like(state.iteration, settings.train.iterations),
    )


if __name__ == "__main__":
    main()
