"""MiniGrid's environments in JAX: levels, rules, views, and navix's interface to them.

    environment = envs.minigrid.make("KeyCorridorS3R3")     # a navix environment
    timestep = environment.reset(jax.random.key(0))         # compiled, as `step` is
    timestep = environment.step(timestep, 2)
    envs.minigrid.rgb(timestep.state)                       # a picture
    envs.minigrid.panorama(timestep.state)                  # uint8[4, 7, 7, 3]
    envs.minigrid.export(timestep.state)                    # numpy, in MiniGrid's encoding

Learners use `make_world`, which steps many worlds at once. Navix's names (`Navix-FourRooms-v0`) are
taken, too: navix's levels, MiniGrid's rules.
"""

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from envs.errors import UnknownEnvironment, UnsupportedEnvironment
from envs.minigrid.export import Export, export
from envs.minigrid.generators import NAMES, find, own_worlds
from envs.minigrid.gymnax_environment import GymnaxEnvironment
from envs.minigrid.render import whole_grid as rgb
from envs.minigrid.views import panorama
from envs.minigrid.world import gridworld
from envs.names import register, with_time_limit
from envs.types import World

if TYPE_CHECKING:
    from envs.minigrid.gymnasium_vector import GridworldVectorEnv
    from envs.minigrid.navix_environment import CbetEnvironment
    from envs.minigrid.stoa_environment import StoaEnvironment

__all__ = [
    "NAMES",
    "Export",
    "UnknownEnvironment",
    "UnsupportedEnvironment",
    "export",
    "gym_vector",
    "gymnax_env",
    "make",
    "make_world",
    "panorama",
    "rgb",
    "stoa_env",
]


register()


def make(name: str, *, explore: bool = False, **options: Any) -> "CbetEnvironment":
    """Build one environment with navix's interface. Imports navix, which takes seconds.

    Its `reset` and `step` are compiled; `jax.vmap` and `jax.lax.scan` take them, too.

    Args:
        name: one of `NAMES`, another size of its families, or one of navix's.
        explore: whether episodes continue after success.
        **options: fields of `navix.Environment`, such as `max_steps` or `gamma`.

    Raises:
        UnknownEnvironment: no environment has that name.
        UnsupportedEnvironment: the world's rules or task are not MiniGrid's.
    """
    from envs.minigrid import navix_environment

    return navix_environment.make(name, explore=explore, **options)


def make_world(
    names: Sequence[str],
    num_worlds: int,
    *,
    explore: bool,
    staggered: bool = False,
    levels_per_world: int | None = None,
    **view_options: Any,
) -> World:
    """Build a batch of worlds for a learner.

    Args:
        names: environments that each world cycles through, one per episode: members of `NAMES`, or
            your own. A world with rules of its own (your `World`) must be the only one; it ignores
            `explore`, `staggered` and `levels_per_world`, and refuses view options.
        num_worlds: size of the batch.
        explore: whether episodes continue after success.
        staggered: whether worlds start in different environments and at different steps of an
            episode (False: at the first step of the first environment).
        levels_per_world: pool size per world and environment (None: enough for training; 1: enough
            for single episodes).
        **view_options: what policies see (`Step.policy_view`): `view`, which is `egocentric`,
            `full` (the encoded grid), `rgb` or `full-rgb`, `view_size`, `see_through_walls`, and
            `grid`, the size of full views. `observations.observer_of` describes them.

    Raises:
        UnknownEnvironment: a name is unknown.
        UnsupportedEnvironment: rules are not MiniGrid's; your `World` fails, or is not alone.
        ValueError: policies cannot see so, or there are no names, worlds or levels.
    """
    if isinstance(names, str) or not names or not all(isinstance(name, str) for name in names):
        raise ValueError(f"names must be a list of environments, not {names!r}")
    if not hasattr(num_worlds, "__index__") or not 1 <= num_worlds < 2**31:
        raise ValueError(f"num_worlds must be a whole number, at least 1, not {num_worlds!r}")
    num_worlds, pool = operator.index(num_worlds), levels_per_world
    if pool is not None and (not hasattr(pool, "__index__") or pool < 1):
        raise ValueError(f"levels_per_world must be at least 1, not {pool!r}, and a whole number")
    if any(map(own_worlds.is_whole_world, names)):
        if view_options:
            raise UnsupportedEnvironment(names[0], "it has views of its own: leave the view out")
        return own_worlds.whole_world(names, num_worlds)
    generators = [find(name) for name in names]
    return gridworld(
        generators,
        num_worlds,
        explore=explore,
        staggered=staggered,
        levels_per_world=levels_per_world,
        **view_options,
    )


def gym_vector(
    name: str,
    num_envs: int,
    *,
    explore: bool = False,
    autoreset_mode: str = "NextStep",
    panorama: bool = False,
    render_mode: str | None = None,
    arrays: str = "numpy",
    max_steps: int | None = None,
    **view_options: Any,
) -> "GridworldVectorEnv":
    """Build a `gymnasium.vector.VectorEnv` of one environment.

    Args:
        name: one of `NAMES`, another size of its families, or one of navix's.
        num_envs: size of the batch.
        explore: whether episodes continue after success.
        autoreset_mode: gymnasium's `NextStep`, `SameStep` or `Disabled`.
        panorama: whether `info` holds each agent's views to the right, down, left and up.
        render_mode: `rgb_array` (pictures highlight the 7x7 view), or None.
        arrays: type of observations and panoramas: `numpy`, or `dlpack` for JAX arrays on the
            device, which `torch.from_dlpack` reads without a copy.
        max_steps: time limit of episodes (None: the environment's; `name?max_steps=500` is the
            same).
        **view_options: what agents see, as of `make_world`. Beside a panorama, `info` then holds
            the 7x7 view, `egocentric`.

    Raises:
        ValueError: a mode, a view or `arrays` is unknown, or `num_envs` or `max_steps` is below 1.
        UnknownEnvironment: no environment has that name.
        UnsupportedEnvironment: the world's rules or task are not MiniGrid's.
    """
    from envs.minigrid import gymnasium_vector

    return gymnasium_vector.GridworldVectorEnv(
        find(with_time_limit(name, max_steps)),
        num_envs,
        explore=explore,
        autoreset_mode=autoreset_mode,
        panorama=panorama,
        render_mode=render_mode,
        arrays=arrays,
        **view_options,
    )


def gymnax_env(
    name: str,
    *,
    explore: bool = False,
    api: str = "0",
    max_steps: int | None = None,
    **view_options: Any,
) -> GymnaxEnvironment:
    """Build one environment with gymnax's interface: pure `reset` and `step`, to be vmapped.

    Args:
        name: one of `NAMES`, another size of its families, or one of navix's.
        explore: whether episodes continue after success.
        api: whether `step` returns one `done` (`0`) or `terminated` and `truncated` (`1.0`).
        max_steps: as of `gym_vector`.
        **view_options: what agents see, as of `make_world`.

    Raises:
        UnknownEnvironment: no environment has that name.
        UnsupportedEnvironment: the world's rules or task are not MiniGrid's.
        ValueError: `api` is unknown, or agents cannot see so.
    """
    generator = find(with_time_limit(name, max_steps))
    return GymnaxEnvironment(generator, explore=explore, api=api, **view_options)


def stoa_env(name: str, *, explore: bool = False) -> "StoaEnvironment":
    """Build one environment with Stoa's interface, for Stoix. Needs the package stoa-env.

    Args:
        name: as of `gymnax_env`.
        explore: whether episodes continue after success.

    Raises:
        ImportError: stoa is not installed.
        UnknownEnvironment: no environment has that name.
        UnsupportedEnvironment: the world has rules or a task of its own.
    """
    from envs.minigrid.stoa_environment import StoaEnvironment

    return StoaEnvironment(gymnax_env(name, explore=explore))
