"""One training program on many devices: seeds beside each other, worlds where seeds are too few.

Devices form a grid (`jax.sharding.Mesh`) of two axes. Along `SEEDS` each trains whole seeds, which
need nothing of each other. Along `WORLDS` the devices of one row share the worlds of a seed: the
compiler splits the acting loop, whose state says where it lies; of each batch every device learns
from as many sequences as the others, and their gradients are averaged. What is drawn at random
does not depend on the grid, so the numbers are one device's but for the order of sums.
"""

import contextlib
import math
import os
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from cbet_jax.config import SettingsError, TrainSettings

SEEDS, WORLDS = "seeds", "worlds"  # axes of the mesh
WAITING = (  # flags of XLA, in seconds
    "xla_cpu_collective_call_warn_stuck_timeout_seconds",
    "xla_cpu_collective_call_terminate_timeout_seconds",
)
PATIENCE = 30 * 24 * 3600
LARGE_LSTM = (
    512  # units of an LSTM: with so many, cores share its products at less cost than its worlds
)
FEWEST_SEQUENCES = 4  # of a batch, that a core of a CPU is given: products of fewer are too small

Specs = Any  # a tree of `PartitionSpec`


class Spread(NamedTuple):
    """How the worlds of one seed lie on the devices of a row; all three leave numbers as they are.

    `mean` is called inside `learn` alone.
    """

    actor: Callable[[Any], Any]  # says where the arrays of an `ActorState` lie
    learn: Callable[[Callable], Callable]  # of (learner, batches [updates, X, sequences, ...])
    mean: Callable[[Any], Any]  # over the row, of what each device has found in its sequences


ALONE = Spread(lambda actor: actor, lambda learn: learn, lambda found: found)


def use_cpu(devices: int | None = None) -> None:
    """Splits the CPU into devices, which must be done before any is used; later it does nothing.

    A core that is a device computes whole seeds or worlds. Cores that share each operation of
    a small network wait for each other most of the time.

    Args:
        devices: how many (None: one for each core that this process may use, unless the
            environment says how many).
    """
    flags = os.environ.get("XLA_FLAGS", "")
    # Devices wait for each other as long as it takes. XLA would end the process after 40
    # seconds, which may pass on a busy machine, or on one that sleeps.
    missing = (flag for flag in WAITING if flag not in flags)
    os.environ["XLA_FLAGS"] = " ".join([*flags.split(), *(f"--{f}={PATIENCE}" for f in missing)])
    said = "host_platform_device_count" in flags or jax.config.jax_num_cpu_devices >= 0
    if devices is None and said:
        return
    with contextlib.suppress(RuntimeError):
        jax.config.update("jax_num_cpu_devices", devices or cores())


def cores() -> int:
    """Returns how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory(mesh: Mesh | None) -> int:
    """Returns the bytes that the devices have together (None: the first one)."""
    stats = jax.local_devices()[0].memory_stats() or {}
    if "bytes_limit" in stats:
        return int(stats["bytes_limit"]) * (mesh.size if mesh else 1)
    of_host = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return of_host * jax.process_count()


def compiler_options(mesh: Mesh | None) -> dict[str, bool]:
    """Returns XLA's options: where every core is a device, cores share large products alone."""
    if mesh is None or jax.default_backend() != "cpu":
        return {}
    alone = len(mesh.local_devices) >= cores()  # other hosts' devices are not on this one's cores
    return {"xla_cpu_multi_thread_eigen": False} if alone else {}


def make_mesh(settings: TrainSettings, seeds: int, devices: int | None = None) -> Mesh | None:
    """Lays seeds and worlds out over devices.

    Args:
        settings: of the run.
        seeds: of the run.
        devices: how many (None: all that can be used; where several hosts train together, it is
            not asked).

    Returns:
        The devices, `[SEEDS, WORLDS]`; None for one device alone.

    Raises:
        SettingsError: there are not so many, or seeds and worlds do not divide by them.
    """
    found = jax.devices()
    if jax.process_count() > 1:
        found = of_each_host(found, settings, seeds)
        devices = len(found)
    elif devices is None:
        fewest = fewest_sequences(settings, found[0].platform)
        devices = most(settings, seeds, len(found), fewest)
    if not 0 < devices <= len(found):
        there = f"there {'is 1' if len(found) == 1 else f'are {len(found)}'}"
        raise SettingsError(f"devices must lie in 1..{len(found)} ({there}), not {devices}")
    if not fits(settings, seeds, devices):
        fitting = [n for n in range(1, len(found) + 1) if fits(settings, seeds, n)]
        raise SettingsError(
            f"{devices} devices do not divide {seeds} seeds of {settings.worlds} worlds and "
            f"batches of {settings.batch}; these do: {' '.join(map(str, fitting))}"
        )
    if devices == 1:
        return None
    rows = math.gcd(seeds, devices)
    return Mesh(np.array(found[:devices]).reshape(rows, -1), (SEEDS, WORLDS))


def of_each_host(found: Iterable[Any], settings: TrainSettings, seeds: int) -> list[Any]:
    """Returns those of several hosts' devices that are used best: as many of each host.

    A host that has fewer gives all. One of each is the least, even if seeds and worlds do not
    divide by them: no host can be left out.
    """
    by_host: dict[int, list[Any]] = {}
    for device in found:
        by_host.setdefault(device.process_index, []).append(device)
    of_each = range(1, max(map(len, by_host.values())) + 1)
    choices = [[d for host in by_host.values() for d in host[:number]] for number in of_each]
    fewest = fewest_sequences(settings, choices[0][0].platform)
    fitting = [choice for choice in choices if fits(settings, seeds, len(choice), fewest)]
    return fitting[-1] if fitting else choices[0]


def fewest_sequences(settings: TrainSettings, platform: str) -> int:
    """Returns how many sequences of a batch each of the devices has that share a seed.

    A large network's whole batch goes to one device of a CPU, whose cores share the operations.
    """
    if platform != "cpu":
        return 1
    large = settings.network.lstm_units >= LARGE_LSTM
    return settings.batch if large else FEWEST_SEQUENCES


def most(settings: TrainSettings, seeds: int, devices: int, fewest: int = 1) -> int:
    """Returns how many of `devices` are used best: for whole seeds first, then for worlds.

    Args:
        settings: of the run.
        seeds: of the run.
        devices: that there are.
        fewest: sequences of a batch that each of those has which share a seed.
    """
    rows = max(n for n in range(1, devices + 1) if seeds % n == 0)
    shared = [n for n in range(1, devices // rows + 1) if math.gcd(seeds, n * rows) == rows]
    return max(n * rows for n in shared if fits(settings, seeds, n * rows, fewest))


def fits(settings: TrainSettings, seeds: int, devices: int, fewest: int = 1) -> bool:
    """Returns whether every device gets whole seeds, or as many worlds and sequences as others.

    Args:
        settings: of the run.
        seeds: of the run.
        devices: all of them.
        fewest: sequences of a batch that each of those must get which share a seed.
    """
    in_a_row = devices // math.gcd(seeds, devices)
    divide = settings.worlds % in_a_row == 0 and settings.batch % in_a_row == 0
    return divide and (in_a_row == 1 or settings.batch // in_a_row >= fewest)


def spread(mesh: Mesh | None, worlds: int) -> Spread:
    """Returns how the worlds of one seed lie on the devices of a row."""
    if mesh is None or mesh.shape[WORLDS] == 1:
        return ALONE

    def learn(function: Callable) -> Callable:
        specs = P(), P(None, None, WORLDS)
        return jax.shard_map(
            function, in_specs=specs, out_specs=P(), axis_names={WORLDS}, check_vma=False
        )

    return Spread(
        actor=lambda actor: jax.tree.map(
            jax.lax.with_sharding_constraint, actor, actor_specs(actor, worlds)
        ),
        learn=learn,
        mean=lambda found: jax.lax.pmean(found, WORLDS),
    )


def over_seeds(mesh: Mesh | None, function: Callable) -> Callable:
    """Returns `function` of arrays `[seeds, ...]`, called by each row with its own seeds alone."""
    if mesh is None:
        return function
    specs = P(SEEDS)
    return jax.shard_map(
        function,
        mesh=mesh,
        in_specs=specs,
        out_specs=specs,
        axis_names={SEEDS},  # the compiler splits along the other
        check_vma=False,
    )


def actor_specs(actor: Any, worlds: int) -> Specs:
    """Returns how the arrays of an `ActorState` lie in a row.

    An array whose axis of worlds is as long as there are worlds is taken to have one entry for
    each; should that be a coincidence, it costs time and changes no number.
    """
    along = lambda axis: lambda leaf: _spec(leaf.shape, axis, worlds)  # noqa: E731
    recurrent = jax.tree.map(along(1), actor.recurrent)  # [layers, N, units]
    return jax.tree.map(along(0), actor)._replace(recurrent=recurrent)


def _spec(shape: tuple[int, ...], axis: int, worlds: int) -> P:
    return P(*[None] * axis, WORLDS) if shape[axis : axis + 1] == (worlds,) else P()


def state_shardings(mesh: Mesh, states: Any, worlds: int) -> Any:
    """Returns where the arrays of a training state lie.

    Args:
        mesh: the devices.
        states: of all seeds, `[seeds, ...]`: arrays or `jax.ShapeDtypeStruct`.
        worlds: of one seed.
    """
    state = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), states)
    specs = jax.tree.map(lambda _: P(), state)._replace(actor=actor_specs(state.actor, worlds))
    return jax.tree.map(lambda spec: NamedSharding(mesh, P(SEEDS, *spec)), specs)


def put(state: Any, shardings: Any) -> Any:
    """Returns arrays on the devices where they belong, from arrays that lie elsewhere."""
    return jax.tree.map(_put, state, shardings)


def _put(leaf: Any, sharding: NamedSharding) -> Any:
    if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(_put(jax.random.key_data(leaf), sharding))
    numbers = np.asarray(leaf)
    # Each host gives its own devices' parts; `device_put` reaches no others.
    return jax.make_array_from_callback(numbers.shape, sharding, lambda index: numbers[index])
