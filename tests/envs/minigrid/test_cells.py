"""One byte a cell, against MiniGrid's objects."""

import jax.numpy as jnp
import numpy as np
import pytest
from minigrid.core.world_object import Ball, Box, Door, Floor, Goal, Key, Lava, Wall

from envs.minigrid import cells as c
from envs.minigrid.export import encoding_tables, unpack_box
from tests.support.handmade_levels import every_cell
from tests.support.minigrid_reference import build_object

OBJECTS = [
    *((c.open_door(i), Door(name, is_open=True)) for i, name in enumerate(c.COLORS)),
    *((c.closed_door(i), Door(name)) for i, name in enumerate(c.COLORS)),
    *((c.locked_door(i), Door(name, is_locked=True)) for i, name in enumerate(c.COLORS)),
    *((c.key(i), Key(name)) for i, name in enumerate(c.COLORS)),
    *((c.ball(i), Ball(name)) for i, name in enumerate(c.COLORS)),
    *((c.box(i), Box(name)) for i, name in enumerate(c.COLORS)),
    *((c.box(i, c.key(2)), Box(name, Key("blue"))) for i, name in enumerate(c.COLORS)),
    *((c.box(i, c.ball(4)), Box(name, Ball("yellow"))) for i, name in enumerate(c.COLORS)),
    *((c.cell(c.KIND_FLOOR, i), Floor(name)) for i, name in enumerate(c.COLORS)),
    (c.WALL, Wall()),
    (c.GOAL, Goal()),
    (c.LAVA, Lava()),
]


@pytest.mark.parametrize(("cell", "thing"), OBJECTS)
def test_a_cell_is_encoded_and_behaves_as_minigrids_object(cell, thing):
    byte = jnp.uint8(cell)
    assert tuple(c.encode(byte).tolist()) == thing.encode()
    assert bool(c.can_enter(byte)) == thing.can_overlap()
    assert bool(c.can_pick_up(byte)) == thing.can_pickup()
    assert bool(c.is_opaque(byte)) == (not thing.see_behind())
    inside = thing.contains
    content = tuple(c.encode(c.contents_of(byte)).tolist())
    assert content == (inside.encode() if inside else (c.TYPE_EMPTY, 0, 0))


def test_no_two_cells_share_a_byte_or_a_code():
    cells = every_cell()
    triples, contents = encoding_tables()
    codes = {(*triples[cell].tolist(), *contents[cell].tolist()) for cell in cells}
    assert len(codes) == len(set(cells)) == len(cells)


def test_every_cell_survives_the_way_to_minigrid_and_back():
    triples, contents = encoding_tables()
    for cell in every_cell()[1:]:
        built = build_object(triples[cell], contents[cell])
        assert built is not None
        assert built.encode() == tuple(triples[cell].tolist())


def test_contents_are_the_same_on_the_host_and_on_the_device():
    cells = every_cell()
    on_device = np.asarray(c.contents_of(jnp.array(cells, jnp.uint8)))
    assert [unpack_box(cell) for cell in cells] == on_device.tolist()
