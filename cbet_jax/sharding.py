"""Sharding of one training program over many devices: by seeds, and by the worlds of a seed.

Devices form a grid (`jax.sharding.Mesh`) of two axes. Along `SEEDS` each row trains whole seeds,
which never communicate. Along `WORLDS` the devices of a row share the worlds of a seed: the
compiler splits the acting loop, whose state is annotated with its sharding, and learning is
data-parallel, each device taking an equal part of every batch. Random numbers do not depend on
the grid, so every grid computes what one device computes, except for the order of sums.
"""

import os
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from jaxtyping import PyTree

from cbet_jax.config import TrainSettings
from cbet_jax.intrinsic.interface import Memory
from cbet_jax.learner import LearnerState
from cbet_jax.rollout import ActorState
from cbet_jax.types import ArrayTree, Metrics, SameType, Trajectory, unchanged

SEEDS, WORLDS = "seeds", "worlds"  # axes of the mesh

type Players = tuple[ActorState, Memory]  # with the intrinsic method's memory
# Learns from batches [updates, X, sequences, ...] in order, with the traced numbers of settings.
type Learn = Callable[[LearnerState, Trajectory, TrainSettings], tuple[LearnerState, Metrics]]


class DataParallel(NamedTuple):
    """How the devices of a row share the worlds of a seed; results stay the same."""

    constrain: Callable[[Players], Players]  # says how their arrays are sharded
    shard_learner: Callable[[Learn], Learn]
    mean: SameType  # averages over the row's `devices`; only inside a sharded learner


ONE_DEVICE = DataParallel(unchanged, unchanged, unchanged)


def data_parallel(mesh: Mesh | None, worlds: int) -> DataParallel:
    """Return how the devices of a row share the worlds of a seed."""
    if mesh is None or mesh.shape[WORLDS] == 1:
        return ONE_DEVICE

    def constrain(players: Players) -> Players:
        specs = player_specs(players, worlds)
        return jax.tree.map(jax.lax.with_sharding_constraint, players, specs)

    def shard_learner(learn: Learn) -> Learn:
        specs = P(), P(None, None, WORLDS), P()
        return jax.shard_map(
            learn, in_specs=specs, out_specs=P(), axis_names={WORLDS}, check_vma=False
        )

    def mean(tree: ArrayTree) -> ArrayTree:
        flat, restore = ravel_pytree(tree)  # devices would wait for each other at every array
        return restore(jax.lax.pmean(flat, WORLDS))

    mean.devices = mesh.shape[WORLDS]  # type: ignore[attr-defined]
    return DataParallel(constrain, shard_learner, mean)


def over_seeds[X, Y](mesh: Mesh | None, function: Callable[[X], Y]) -> Callable[[X], Y]:
    """Return `function` of arrays `[seeds, ...]`, called by each row with its own seeds only."""
    if mesh is None:
        return function
    specs = P(SEEDS)
    return jax.shard_map(
        function,
        mesh=mesh,
        in_specs=specs,
        out_specs=specs,
        axis_names={SEEDS},  # the compiler splits along the other axis
        check_vma=False,
    )


def player_specs(players: PyTree, worlds: int) -> PyTree:
    """Return how the arrays of actors and memories are sharded: a `PartitionSpec` for each.

    An array is split if its axis of worlds is as long as there are worlds. Where that is a
    coincidence, it costs time but changes no result.
    """

    def along(axis: int) -> Callable[[jax.Array], P]:
        split = P(*[None] * axis, WORLDS)
        return lambda leaf: split if leaf.shape[axis : axis + 1] == (worlds,) else P()

    actor, memory = jax.tree.map(along(0), players)
    recurrent = jax.tree.map(along(1), players[0].recurrent)  # [layers, N, units]
    return actor._replace(recurrent=recurrent), memory


def state_shardings(mesh: Mesh, states: PyTree, worlds: int) -> PyTree[NamedSharding]:
    """Return how the arrays of training states are sharded.

    Args:
        mesh: the devices.
        states: `TrainState` of arrays `[seeds, ...]`, or of their `jax.ShapeDtypeStruct`.
        worlds: worlds of one seed.
    """
    state = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), states)
    actor, memory = player_specs((state.actor, state.memory), worlds)
    specs = jax.tree.map(lambda _: P(), state)._replace(actor=actor, memory=memory)
    return jax.tree.map(lambda spec: NamedSharding(mesh, P(SEEDS, *spec)), specs)


def to_devices(leaf: jax.Array, sharding: NamedSharding) -> jax.Array:
    """Move an array to the devices that a sharding names."""
    if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(to_devices(jax.random.key_data(leaf), sharding))
    numbers = np.asarray(leaf)
    # Each host gives the parts of its own devices; `device_put` reaches no others.
    return jax.make_array_from_callback(numbers.shape, sharding, lambda index: numbers[index])


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def compiler_options(mesh: Mesh | None) -> dict[str, bool]:
    """Return XLA's options for a mesh: where every core is a device, cores share no products."""
    if mesh is None or mesh.local_devices[0].platform != "cpu":
        return {}
    every_core = len(mesh.local_devices) >= cores()  # devices of other hosts use no core here
    return {"xla_cpu_multi_thread_eigen": False} if every_core else {}
