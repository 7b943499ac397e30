"""What the training program is made of, in a real gridworld: nothing here is run."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest
from jax.extend.core import ClosedJaxpr, Jaxpr

from cbet_jax.program import make_program, seed_keys
from envs.minigrid import make_world
from tests.support import tiny
from tests.support.families import others_slow

UNROLL = 12
UNITS = tiny.NETWORK.lstm_units
SETTINGS = replace(tiny.SETTINGS, worlds=6, batch=6, unroll=UNROLL)
MOVES = {
    "convert_element_type",
    "transpose",
    "reshape",
    "broadcast_in_dim",
    "copy",
    "squeeze",
    "layout_constraint",
}


@pytest.fixture(scope="module", params=others_slow(("float32", "bfloat16"), ("bfloat16",)))
def factors(request):
    return request.param


@pytest.fixture(scope="module")
def traced(factors):
    """The state's shapes, and every equation of the program that trains one seed."""
    jax.clear_caches()  # another test may have traced the LSTM's form for GPUs
    settings = replace(SETTINGS, network=replace(SETTINGS.network, factors=factors))
    world = make_world(("Unlock",), settings.worlds, explore=True)
    program = make_program(settings, world, seeds=1, iterations_per_chunk=2)
    state = jax.eval_shape(program.init, seed_keys(1))
    return state, [*equations(jax.make_jaxpr(program.advance)(state).jaxpr)]


def equations(jaxpr):
    """Yield all equations of a program, those of its loops and functions, too."""
    for equation in jaxpr.eqns:
        yield equation
        for inner in inner_programs(equation):
            yield from equations(inner)


def inner_programs(equation):
    """Yield the programs inside an equation, such as the body of a loop or of a function."""
    for value in jax.tree.leaves(tuple(equation.params.values()), is_leaf=is_program):
        if is_program(value):
            yield value.jaxpr if isinstance(value, ClosedJaxpr) else value


def is_program(parameter):
    return isinstance(parameter, Jaxpr | ClosedJaxpr)


def named(found, *names):
    return [equation for equation in found if equation.primitive.name in names]


def test_the_host_is_never_called(traced):
    _, found = traced
    assert len(found) > 1000
    asks = ("callback", "infeed", "outfeed", "debug")
    names = {equation.primitive.name for equation in found}
    assert not [name for name in names if any(ask in name for ask in asks)]


def test_each_loop_over_a_sequence_holds_one_matrix_product(traced):
    """That of the recurrent weights; the views' features are multiplied for all steps before."""
    _, found = traced
    sequence = UNROLL + 1  # the view after the last step, too
    loops = [scan for scan in named(found, "scan") if scan.params["length"] == sequence]
    forward, backward = sorted(loops, key=lambda scan: scan.params["reverse"])
    assert backward.params["reverse"]
    assert not forward.params["reverse"]
    (ahead,) = named(equations(forward.params["jaxpr"].jaxpr), "dot_general")
    (back,) = named(equations(backward.params["jaxpr"].jaxpr), "dot_general")
    assert ahead.outvars[0].aval.shape == (SETTINGS.batch, 4 * UNITS)
    assert back.outvars[0].aval.shape == (SETTINGS.batch, UNITS)
    rows = {p.outvars[0].aval.size // (4 * UNITS) for p in named(found, "dot_general")}
    assert sequence * SETTINGS.batch in rows


def test_all_but_the_factors_of_products_is_float32(traced, factors):
    """Parameters, the optimizer's state, targets: only what is multiplied is ever rounded."""
    state, found = traced
    floats = [x.dtype for x in jax.tree.leaves(state) if jnp.issubdtype(x.dtype, jnp.floating)]
    assert set(floats) == {jnp.dtype("float32")}
    assert len(jax.tree.leaves(state.learner)) > 20
    products = named(found, "dot_general")
    taken = {variable.aval.dtype.name for product in products for variable in product.invars}
    assert factors in taken
    assert {product.outvars[0].aval.dtype.name for product in products} == {"float32"}
    small = [e for e in found if any(_is_small(variable) for variable in e.outvars)]
    assert bool(small) == (factors == "bfloat16")
    computes = {e.primitive.name for e in small if not [*inner_programs(e)]} - MOVES
    assert not computes


def _is_small(variable) -> bool:
    return getattr(variable.aval, "dtype", None) == jnp.bfloat16
