"""Worlds of one's own, which a command line names by their files: `--envs my_world.py:make`."""

from pathlib import Path

from cbet_jax import own_code
from cbet_jax.config import SettingsError
from envs.minigrid.generators import own_worlds


def load(name: str) -> str:
    """Load a world, and let `envs.registry.find` know it.

    Args:
        name: `FILE.py:FUNCTION` or `package.module:function`, with or without a digest; the path of
            a file that is there is a scene of rooms, not code.

    Returns:
        Its name with the digest, which settings hold.

    Raises:
        SettingsError: there is no such function, or its file cannot be loaded, or it makes no
            world.
    """
    if Path(name).exists():
        return name
    full, make = own_code.load(name)
    try:
        own_worlds.add(full, make)
    except own_worlds.OwnWorldError as error:
        raise SettingsError(f"{own_code.plain(name)}: {error}") from None
    return full
