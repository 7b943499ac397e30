"""Worlds: what a user imports, by name. Each name is imported when it is first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same names as below
    from envs.check import check_world
    from envs.errors import UnknownEnvironment, UnsupportedEnvironment
    from envs.gymnax import from_gymnax
    from envs.habitat.world import habitat_world
    from envs.minigrid import make_world
    from envs.navix import from_navix
    from envs.types import Step, World

_MODULE_OF = {
    "Step": "envs.types",
    "UnknownEnvironment": "envs.errors",
    "UnsupportedEnvironment": "envs.errors",
    "World": "envs.types",
    "check_world": "envs.check",
    "from_gymnax": "envs.gymnax",
    "from_navix": "envs.navix",
    "habitat_world": "envs.habitat.world",
    "make_world": "envs.minigrid",
}
__all__ = sorted(_MODULE_OF)

if not TYPE_CHECKING:  # type checkers know the names above, and no others

    def __getattr__(name: str) -> Any:
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
