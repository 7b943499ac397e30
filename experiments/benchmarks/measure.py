"""How the benchmark measures: in turn, several rounds, so that a noisy machine hits all alike."""

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn

from cbet_jax.config import Factors, NetworkSettings

ROUND_SECONDS = 0.5  # that a task is timed for in each round, at least
PRODUCTS = ("dot_general", "conv_general_dilated")
MATRIX_SHAPE = (1024, 1024, 4096)  # rows, inner, columns of the product that sets the ceiling


class Task(NamedTuple):
    """Something to time."""

    run: Callable[[], None]  # returns when its results are there
    amount: float  # how much it does, in `unit`s
    unit: str  # of the amount: its speed is in units a second


def speeds(tasks: Mapping[str, Task], rounds: int) -> dict[str, float]:
    """Times every task once a round, in turn, and returns each one's median speed.

    The first call of each, which may compile, is not timed. Short tasks are called as often
    as it takes to fill `ROUND_SECONDS`, so that what the last task left in the caches does
    not count.
    """
    calls = {name: _calls(task) for name, task in tasks.items()}
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(rounds):
        for name, task in tasks.items():
            seconds[name].append(_seconds(task, calls[name]))
    return {
        name: task.amount * calls[name] / float(np.median(seconds[name]))
        for name, task in tasks.items()
    }


def _calls(task: Task) -> int:
    task.run()
    return max(1, round(ROUND_SECONDS / _seconds(task, 1)))


def _seconds(task: Task, calls: int) -> float:
    began = time.perf_counter()
    for _ in range(calls):
        task.run()
    return time.perf_counter() - began


def repeated(advance: Callable[[Any], Any], state: Any) -> Callable[[], None]:
    """Returns a function that moves `state` on by one call of `advance`, which may donate it."""
    cell = [state]

    def run() -> None:
        cell[0] = jax.block_until_ready(advance(cell[0]))

    return run


def first_result(program: Callable[[Any], tuple[Any, Any]]) -> Callable[[Any], Any]:
    """Returns a function that gives the first of the two results of `program`."""
    return lambda state: program(state)[0]


def matrix_product(
    shape: tuple[int, int, int] = MATRIX_SHAPE, factors: Factors = "float32"
) -> Task:
    """Returns the plain matrix product that other speeds are compared with; sums are float32.

    Args:
        shape: rows, inner, columns.
        factors: precision of what is multiplied.
    """
    rows, inner, columns = shape
    left = jax.random.normal(jax.random.key(0), (rows, inner)).astype(factors)
    right = jax.random.normal(jax.random.key(1), (inner, columns)).astype(factors)
    product = jax.jit(partial(jnp.matmul, preferred_element_type=jnp.float32))
    return Task(
        run=lambda: jax.block_until_ready(product(left, right)),
        amount=2.0 * rows * inner * columns,
        unit="FLOP",
    )


def forward_flops(
    settings: NetworkSettings, view_shape: tuple[int, int, int], actions: int
) -> float:
    """Returns the floating-point operations of the policy network for one view.

    Two for each weight and each place it is used at. A frame of training takes four times
    as many: forward to act, forward and (twice as much) backward to learn.
    """
    height, width, channels = view_shape
    products = 0
    for _ in range(settings.conv_layers):
        height, width = (height + 1) // 2, (width + 1) // 2
        products += height * width * 9 * channels * settings.channels
        channels = settings.channels
    features = height * width * channels
    for _ in range(settings.dense_layers):
        products += features * settings.dense_units
        features = settings.dense_units
    for _ in range(settings.lstm_layers):
        products += 4 * settings.lstm_units * (features + settings.lstm_units)
        features = settings.lstm_units
    return 2.0 * (products + features * (actions + 1))


def seconds_to_compile(compile_all: Callable[[], Any]) -> float:
    """Returns how long that compiles, nothing cached."""
    cached = jax.config.jax_enable_compilation_cache
    jax.config.update("jax_enable_compilation_cache", False)
    jax.clear_caches()
    began = time.perf_counter()
    compile_all()
    seconds = time.perf_counter() - began
    jax.config.update("jax_enable_compilation_cache", cached)
    return seconds


def product_bytes(function: Callable[..., Any], *arguments: Any) -> float:
    """Returns the bytes that a program's matrix products and convolutions read and write.

    Each reads both factors and writes its result, whatever the caches still hold of them. One
    in a loop counts at every turn; the caller's loops have a known length.

    Args:
        function: the program.
        *arguments: of it, or their shapes.
    """
    products = _products(jax.make_jaxpr(function)(*arguments).jaxpr)
    return float(sum(turns * _bytes(product) for product, turns in products))


def _products(jaxpr: Jaxpr, turns: int = 1) -> Iterator[tuple[JaxprEqn, int]]:
    """Yields every product, and how often it is computed."""
    for equation in jaxpr.eqns:
        if equation.primitive.name in PRODUCTS:
            yield equation, turns
        for inner in inside(equation):
            yield from _products(inner, turns * equation.params.get("length", 1))


def inside(equation: JaxprEqn) -> Iterator[Jaxpr]:
    """Yields the programs that an equation is made of: a loop's body, a function's, ..."""
    for value in jax.tree.leaves(tuple(equation.params.values()), is_leaf=_is_jaxpr):
        if _is_jaxpr(value):
            yield value.jaxpr if isinstance(value, ClosedJaxpr) else value


def _is_jaxpr(value: Any) -> bool:
    return isinstance(value, Jaxpr | ClosedJaxpr)


def _bytes(equation: JaxprEqn) -> int:
    arrays: list[Any] = [variable.aval for variable in (*equation.invars, *equation.outvars)]
    return sum(array.size * array.dtype.itemsize for array in arrays)
