"""All environments by the names that the paper uses."""

from envs.errors import UnknownEnvironment
from envs.minigrid.generators import GENERATORS, find

__all__ = ["UnknownEnvironment", "find", "names"]


def names() -> tuple[str, ...]:
    """Returns the names of all environments, in the paper's order."""
    return tuple(GENERATORS)
