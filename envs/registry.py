"""All gridworlds by the names that the paper uses."""

from envs.errors import UnknownEnvironment
from envs.minigrid.generators import GENERATORS, find

__all__ = ["UnknownEnvironment", "find", "names"]


def names() -> tuple[str, ...]:
    """Return the names of all environments, the paper's first."""
    return tuple(GENERATORS)
