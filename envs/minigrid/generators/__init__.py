"""Generators of levels, and the catalogue of environments by name."""

from envs.minigrid.generators.catalogue import FAMILIES, GENERATORS, find
from envs.minigrid.generators.generator import (
    MAX_CALLS,
    Generator,
    placeholder_level,
    sample_levels,
)
from envs.names import NAMES, TRANSFER

__all__ = [
    "FAMILIES",
    "GENERATORS",
    "MAX_CALLS",
    "NAMES",
    "TRANSFER",
    "Generator",
    "find",
    "placeholder_level",
    "sample_levels",
]
