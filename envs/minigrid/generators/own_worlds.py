"""Users' own worlds, by their names in settings: `my_world.py:make@1a2b3c4d`.

A function `make()` returns a gridworld: a map, several maps (`text_levels`), or a `Generator`. A
function `make(num_worlds)` returns a whole `World` with its own rules and views. So do the modules
of `PACKAGES`, by other packages' names (`XLand-MiniGrid-R4-9x9`).
"""

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import jax

from envs.check import first_problem
from envs.errors import UnknownEnvironment, UnsupportedEnvironment, in_a_line, is_own
from envs.minigrid.generators.generator import Generator, sample_levels
from envs.minigrid.generators.text_levels import text_levels
from envs.minigrid.level import MARGIN, MAX_SIDE, TASKS, Level
from envs.types import World

_generators: dict[str, Generator] = {}
_functions: dict[str, Callable[[int], Any]] = {}  # makers of whole worlds
PACKAGES = {"Craftax-": "envs.craftax", "XLand-": "envs.xland"}  # how names begin: modules


class OwnWorldError(ValueError):
    """A user's function makes no valid world. The message is one line."""


def add(name: str, make: Callable[..., Any]) -> None:
    """Register a user's function for `find` and `make_world`, in place of an earlier one.

    Args:
        name: the world's name in settings and tables, with a colon. A name with a digest (`@`) is
            registered once.
        make: called at once, or, if it takes the number of worlds, when these are made.

    Raises:
        OwnWorldError: the function makes no valid world, or the name has no colon.
    """
    if not is_own(name):
        raise OwnWorldError("its name needs a colon, as in maps:make")
    if "@" in name and (name in _generators or name in _functions):
        return
    needed = [
        parameter
        for parameter in inspect.signature(make).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if len(needed) > 1:
        raise OwnWorldError("it must take nothing, or the number of worlds")
    made = None if needed else _generator(name, make)
    _functions.pop(name, None)
    _generators.pop(name, None)
    if made is None:
        _functions[name] = make
    else:
        _generators[name] = made


def refuse_unnamed(names: Iterable[str]) -> None:
    """Refuse users' worlds (code) that no command line has named, by an UnnamedWorld error."""
    for name in names:
        if is_own(name) and name not in _generators and name not in _functions:
            raise UnnamedWorld(name)


class UnnamedWorld(UnknownEnvironment):
    """A user's world (code) that no command line has named."""

    def __init__(self, name: str) -> None:
        ValueError.__init__(
            self,
            f"the world {name} is a file, which is code: if you trust it, name it on the command "
            f"line, with --envs {name.partition('@')[0]} (or --env); in Python, first call "
            "envs.minigrid.generators.own_worlds.add(name, function)",
        )


def find_own(name: str) -> Generator:
    """Return the generator of a user's own gridworld.

    Raises:
        UnknownEnvironment: the world was not added.
        UnsupportedEnvironment: the world is not a gridworld.
    """
    refuse_unnamed([name])
    if is_whole_world(name):
        raise UnsupportedEnvironment(
            name, "it has rules of its own, and this needs a gridworld's levels"
        )
    return _generators[name]


def is_whole_world(name: str) -> bool:
    """Return whether a name refers to a `World` with rules of its own."""
    return name in _functions or name.startswith(tuple(PACKAGES))


def whole_world(names: Sequence[str], num_worlds: int) -> World:
    """Return the world with rules of its own among the names, which must be the only one.

    Raises:
        UnsupportedEnvironment: other names are given, or the world breaks the contract.
    """
    name = next(filter(is_whole_world, names))
    if len(names) > 1:
        raise UnsupportedEnvironment(
            name, "it has rules of its own, so it is played alone, not in turn with others"
        )
    world = unchecked_world(name, num_worlds)
    if problem := first_problem(world):
        raise UnsupportedEnvironment(name, problem)
    return world


def unchecked_world(name: str, num_worlds: int) -> World:
    """Return a user's world without checking it.

    Raises:
        UnsupportedEnvironment: the world cannot be made.
    """
    try:
        make = _functions[name] if is_own(name) else _maker_of_package(name)
        world = make(num_worlds)
    except (Exception, SystemExit) as error:
        raise UnsupportedEnvironment(name, in_a_line(error)) from None
    if not isinstance(world, World):
        raise UnsupportedEnvironment(name, f"it must return a World, not {type(world).__name__}")
    if world.num_worlds != num_worlds:
        found = world.num_worlds
        raise UnsupportedEnvironment(name, f"it has {found} worlds, not the {num_worlds} asked for")
    return world


def _maker_of_package(name: str) -> Callable[[int], Any]:
    module = next(PACKAGES[start] for start in PACKAGES if name.startswith(start))
    return partial(import_module(module).make, name)


def _generator(name: str, make: Callable[[], Any]) -> Generator:
    try:
        made = make()
    except (Exception, SystemExit) as error:
        raise OwnWorldError(in_a_line(error)) from None
    if isinstance(made, str):
        made = (made,)
    if isinstance(made, Sequence) and made and all(isinstance(text, str) for text in made):
        try:
            return text_levels(name, made)
        except ValueError as error:
            raise OwnWorldError(str(error)) from None
    if not isinstance(made, Generator):
        empty = isinstance(made, Sequence) and not made
        found = "an empty list" if empty else type(made).__name__
        raise OwnWorldError(
            f"without a parameter it must return a map, several maps or a Generator, not {found}"
        )
    try:
        _check(made)
    except OwnWorldError:
        raise
    except (Exception, SystemExit) as error:
        raise OwnWorldError(f"its levels fail: {in_a_line(error)}") from None
    return made._replace(name=name)


def _check(generator: Generator) -> None:
    """Raise an error for a generator that fails, or whose levels have wrong shapes."""
    sides = generator.width, generator.height
    if not 3 <= min(sides) <= max(sides) <= MAX_SIDE:
        raise OwnWorldError(f"a grid has 3 to {MAX_SIDE} cells along a side")
    if not hasattr(generator.max_steps, "__index__") or generator.max_steps < 1:
        raise OwnWorldError("max_steps must be a whole number of at least 1")
    if generator.task not in range(len(TASKS)):
        named = ", ".join(f"{number} ({task})" for number, task in enumerate(TASKS))
        raise OwnWorldError(f"its task must be one of {named}, not {generator.task}")
    count, key = 2, jax.random.key(0)
    _, levels, ready = jax.eval_shape(
        lambda key: generator.advance(generator.begin(count), key, count), key
    )
    if not isinstance(levels, Level):
        raise OwnWorldError(f"its levels must be a Level, not {type(levels).__name__}")
    rows, columns = generator.height + 2 * MARGIN, generator.width + 2 * MARGIN
    if levels.cells.shape[1] > rows or levels.cells.shape[2] > columns:
        height, width = (side - 2 * MARGIN for side in levels.cells.shape[1:])
        raise OwnWorldError(
            f"its levels have {width} x {height} cells, more than its width and height, "
            f"{generator.width} x {generator.height}"
        )
    if ready.shape != (count,) or ready.dtype != bool:
        raise OwnWorldError("beside each level there must be one bool: whether it may be played")
    jax.eval_shape(partial(sample_levels, generator, count=count), key)  # joins them in a batch
