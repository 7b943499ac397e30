"""MiniGrid's worlds as JAX values: levels, rules, views, and navix's interface to them.

    environment = envs.minigrid.make("KeyCorridorS3R3")     # a navix environment
    timestep = environment.reset(jax.random.key(0))
    timestep = environment.step(timestep, 2)
    envs.minigrid.panorama(timestep.state)                  # uint8[4, 7, 7, 3]
    envs.minigrid.export(timestep.state)                    # numpy, in MiniGrid's own terms

After `import envs.minigrid`, `navix.make("CBET-KeyCorridorS3R3-v0")` works too. Learners take
many worlds at once, from `make_world`. Wherever a name is asked for, navix's name of one of its
own environments, such as `Navix-FourRooms-v0`, has its levels played by our rules.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from jaxtyping import Array, UInt8

from envs.errors import UnknownEnvironment, UnsupportedEnvironment
from envs.minigrid import views
from envs.minigrid.export import Export, export, world_of
from envs.minigrid.generators import GENERATORS, Generator, find
from envs.minigrid.navix_registration import register_with_navix
from envs.minigrid.world import gridworld
from envs.types import World

if TYPE_CHECKING:
    from envs.minigrid.navix_environment import CbetEnvironment

__all__ = [
    "NAMES",
    "Export",
    "UnknownEnvironment",
    "UnsupportedEnvironment",
    "export",
    "from_navix",
    "make",
    "make_world",
    "panorama",
]

NAMES = tuple(GENERATORS)

register_with_navix()


def make(name: str, *, explore: bool = False, **options: Any) -> "CbetEnvironment":
    """Builds one environment, with navix's interface (imports navix, which takes seconds).

    Args:
        name: one of `NAMES`, or navix's name of one of its own environments.
        explore: success does not end the episode.
        **options: fields of `navix.Environment`, such as `max_steps` or `gamma`.

    Raises:
        UnknownEnvironment: no environment has that name.
        UnsupportedEnvironment: it is one of navix's that cannot be played by our rules.
    """
    from envs.minigrid import navix_environment

    return navix_environment.make(name, explore=explore, **options)


def make_world(
    names: Sequence[str], num_worlds: int, *, explore: bool, levels_per_world: int | None = None
) -> World:
    """Builds worlds that are played side by side, as learners take them.

    Args:
        names: environments (of `NAMES`, or of navix's own) that each world walks through, one
            an episode.
        num_worlds: how many worlds.
        explore: success does not end the episode.
        levels_per_world: how many levels of each environment wait for each world. Where each
            plays a single episode, one is enough; left out, as many as training may need.

    Raises:
        UnknownEnvironment: no environment has one of the names.
        UnsupportedEnvironment: one is navix's and cannot be played by our rules.
    """
    generators = [find(name) for name in names]
    return gridworld(generators, num_worlds, explore=explore, levels_per_world=levels_per_world)


def from_navix(name: str) -> Generator:
    """Returns a generator of the levels of one of navix's own environments (imports navix).

    Args:
        name: its name in `navix.registry()`, such as `Navix-FourRooms-v0`.

    Raises:
        UnknownEnvironment: navix has no such environment; the message names the nearest.
        UnsupportedEnvironment: it cannot be played by our rules; the message says why.
    """
    from envs.minigrid.generators import navix_environments

    return navix_environments.from_navix(name)


def panorama(state: Any) -> UInt8[Array, "4 7 7 3"]:
    """Returns the views to the right, down, left and up from where the agent stands.

    Args:
        state: a `dynamics.State`, or the state of a navix `Timestep` of ours.
    """
    return views.panorama(world_of(state))
