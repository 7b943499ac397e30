"""Import a policy of the published code: `python -m experiments.import_torch model.tar DIR`.

DIR becomes a finished run: its policy can be evaluated, watched and (in gridworlds) transferred.
It cannot be trained further, since optimizer state and counts are not imported. Only this command
needs PyTorch (the extra `torch`).
"""

import hashlib
import math
import sys
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import tyro

from cbet_jax import config
from cbet_jax.runs import manifest, metrics_table
from cbet_jax.runs.directory import RunDirectory
from cbet_jax.runs.reading import reading
from envs.errors import UnknownEnvironment
from envs.habitat.simulator import ACTIONS, VIEW_SHAPE
from experiments.common import cli, gridworlds, habitat, invocation
from experiments.common.presets import FIVE_LAYERS
from experiments.common.screen import Screen, say

if TYPE_CHECKING:
    from cbet_jax.networks.published_weights import Policy, Tensors

MODULE = "experiments.import_torch"
POLICY, FLAGS, SCHEDULE = "actor_model_state_dict", "flags", "scheduler_state_dict"
ROOMS = "HabitatNav-"  # prefix of a scene's name; actions have the same order as ours
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


@dataclass(frozen=True)
class ImportOptions:
    """Turn a checkpoint of the published PyTorch code into a run."""

    source: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="model.tar")]
    #: the run's new directory
    directory: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]
    #: worlds or scene that it was trained in (none: as the checkpoint says)
    envs: tuple[str, ...] = ()
    #: how rooms are played from now on
    habitat: Annotated[config.HabitatSettings, tyro.conf.arg(name="")] = field(
        default_factory=config.HabitatSettings
    )


class PublishedCheckpoint(NamedTuple):
    """The parts that we read of a checkpoint."""

    tensors: "Tensors"  # the policy's parameters
    flags: Mapping[str, Any]  # the published code's settings
    updates: int  # updates of the policy

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
        from cbet_jax.networks.published_weights import WeightsError  # takes seconds

        directory = RunDirectory(options.directory)
        if directory.config.exists():
            raise config.SettingsError(f"{directory.root} already holds a run: choose another")
        stored = read(options.source)
        try:
            policy = converted(stored, worlds(stored, options.envs))
            settings = run_settings(stored, policy.network, options.envs, options.habitat)
        except (WeightsError, config.SettingsError) as error:
            raise config.SettingsError(f"{options.source} cannot be imported: {error}") from None
        with console.status("importing"):
            imported = origin(options.source, stored)
            state = whole_state(settings, policy)
            directory.create(settings)
            try:
                write(directory, settings, state, imported, ["python -m", MODULE, *arguments])
            except BaseException:
                directory.discard()
                raise
    evaluate = habitat.EVALUATE if settings.habitat else gridworlds.EVALUATE
    following = invocation.command_line(evaluate, directory.root)
    say(console, f"imported at {settings.train.frames:,} frames; next: {following}")


def read(path: Path) -> PublishedCheckpoint:
    """Read a checkpoint of the published code.

    Raises:
        SettingsError: the file is missing or no such checkpoint, or PyTorch is not installed.
        UnreadableError: it is damaged.
    """
    if not path.is_file():
        raise config.SettingsError(f"{path} is no file")
    content = load(path)
    parts = (POLICY, FLAGS, SCHEDULE)
    if not isinstance(content, Mapping) or not all(
        isinstance(content.get(part), Mapping) for part in parts
    ):
        raise config.SettingsError(
            f"{path} is no checkpoint of the published code, which has {', '.join(parts)}"
        )
    policy, flags, schedule = (content[part] for part in parts)
    updates = schedule.get("last_epoch")
    if type(updates) is not int:
        raise config.SettingsError(f"{path}: last_epoch is {updates!r}, no whole number")
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
        raise config.SettingsError(
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
        raise config.SettingsError(
            f"{path} is damaged, or no checkpoint of PyTorch's of tensors and plain settings only "
            f"({type(error).__name__})"
        ) from None


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


def converted(stored: PublishedCheckpoint, names: Sequence[str]) -> "Policy":
    """Convert the policy to one of ours, for worlds of these names.

    Raises:
        WeightsError: the policy does not fit these worlds.
    """
    from cbet_jax.networks.published_weights import convert  # imported here: it takes seconds
    from envs.minigrid import make_world

    if stored.in_rooms:
        return convert(stored.tensors, len(ACTIONS), VIEW_SHAPE, images=True)
    world = make_world(names[:1], 1, explore=True)
    return convert(stored.tensors, world.num_actions, world.view_shape)


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


def origin(source: Path, stored: PublishedCheckpoint) -> dict[str, Any]:
    """Return the policy's origin, for the run's manifest."""
    with open(source, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    found = {"file": source.name, "sha256": digest, "updates": stored.updates}
    return {**found, "flags": dict(stored.flags)}


def write(
    directory: RunDirectory,
    settings: config.RunSettings,
    state: Any,
    imported: dict[str, Any],
    command: Sequence[str],
) -> None:
    """Write a finished run.

    Args:
        directory: the run's directory, already created.
        settings: the run's settings.
        state: what `whole_state` returns.
        imported: the policy's origin.
        command: words of the command line.
    """
    from cbet_jax.runs import checkpoint  # imported here: it takes seconds

    iterations = settings.train.iterations
    rows = metrics_table.HEADER.encode()
    digest = metrics_table.rows_digest(rows)
    position = checkpoint.Position(iterations, settings.train.frames, len(rows), digest)
    with directory.lock():
        directory.metrics.write_bytes(rows)
        checkpoint.save(directory.checkpoints, state, position)
        manifest.Session(directory.manifest, command).record(directory.manifest, imported=imported)


def whole_state(settings: config.RunSettings, policy: "Policy") -> Any:
    """Return the state of a finished run; only its policy matters.

    In rooms it holds only the policy, because the rest needs simulators.

    Raises:
        SettingsError: the state does not fit into memory.
    """
    import jax  # imported here: it takes seconds
    import jax.numpy as jnp

    from cbet_jax.agent import make_agent
    from cbet_jax.program import seed_keys

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
