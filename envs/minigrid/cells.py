"""The cells of a gridworld, one byte each.

A byte packs `kind << 3 | colour`: five bits say what the cell is, three bits its colour.
The kind includes the state of a door and the contents of a box, so one `uint8` array holds
a whole level, and a step changes at most one byte of it. For example, a locked yellow door
is `5 << 3 | 4 == 44`: `kind_of(44) == KIND_LOCKED` and `color_of(44) == YELLOW`. Toggling it
with the yellow key makes it open, `3 << 3 | 4 == 28`.

    kind   0      1     2      3     4       5       6    7     8     9     10
           empty  wall  floor  open  closed  locked  key  ball  goal  lava  empty box
    kind   11 + c: box with a key of colour c        17 + c: box with a ball of colour c
    kind   31: unseen (only in views)

MiniGrid itself encodes a cell as a triple `(type, colour, state)`; `encode` returns it.
"""

from functools import partial

import jax.numpy as jnp
from jaxtyping import Array, Bool, UInt8, UInt16

# MiniGrid's colours (`COLOR_TO_IDX`).
COLORS = ("red", "green", "blue", "purple", "yellow", "grey")
RED, GREEN, BLUE, PURPLE, YELLOW, GREY = range(6)

# MiniGrid's types (`OBJECT_TO_IDX`).
TYPES = (
    "unseen", "empty", "wall", "floor", "door", "key", "ball", "box", "goal", "lava", "agent",
)  # fmt: skip
(
    UNSEEN, TYPE_EMPTY, TYPE_WALL, TYPE_FLOOR, TYPE_DOOR, TYPE_KEY, TYPE_BALL, TYPE_BOX,
    TYPE_GOAL, TYPE_LAVA, TYPE_AGENT,
) = range(11)  # fmt: skip

# Kinds.
(
    KIND_EMPTY, KIND_WALL, KIND_FLOOR, KIND_OPEN, KIND_CLOSED, KIND_LOCKED,
    KIND_KEY, KIND_BALL, KIND_GOAL, KIND_LAVA, KIND_BOX, KIND_BOX_KEY,
) = range(12)  # fmt: skip
KIND_BOX_BALL = KIND_BOX_KEY + len(COLORS)
NUM_KINDS = KIND_BOX_BALL + len(COLORS)
KIND_UNSEEN = 31

Cell = UInt8[Array, "*shape"]


def cell[Color: (int, Array)](kind: int, color: Color) -> Color:
    """Return the byte of a cell of `kind` and `color`."""
    return kind << 3 | color


EMPTY = cell(KIND_EMPTY, RED)
HIDDEN = cell(KIND_UNSEEN, RED)
WALL = cell(KIND_WALL, GREY)
GOAL = cell(KIND_GOAL, GREEN)
LAVA = cell(KIND_LAVA, RED)


# Each takes a colour, as `cell` does.
open_door, closed_door = partial(cell, KIND_OPEN), partial(cell, KIND_CLOSED)
locked_door, key = partial(cell, KIND_LOCKED), partial(cell, KIND_KEY)
ball, empty_box = partial(cell, KIND_BALL), partial(cell, KIND_BOX)


def box(color: int, contents: int = EMPTY) -> int:
    """Return the byte of a box. `contents` is `EMPTY` or the byte of a key or a ball."""
    inside, inside_color = contents >> 3, contents & 7
    if inside == KIND_EMPTY:
        return empty_box(color)
    return cell({KIND_KEY: KIND_BOX_KEY, KIND_BALL: KIND_BOX_BALL}[inside] + inside_color, color)


def kind_of(cells: Cell) -> Cell:
    return cells >> 3


def color_of(cells: Cell) -> Cell:
    return cells & 7


def is_door(cells: Cell) -> Bool[Array, "*shape"]:
    return (kind_of(cells) >= KIND_OPEN) & (kind_of(cells) <= KIND_LOCKED)


def is_box(cells: Cell) -> Bool[Array, "*shape"]:
    return kind_of(cells) >= KIND_BOX


def can_pick_up(cells: Cell) -> Bool[Array, "*shape"]:
    kind = kind_of(cells)
    return (kind == KIND_KEY) | (kind == KIND_BALL) | (kind >= KIND_BOX)


def can_enter(cells: Cell) -> Bool[Array, "*shape"]:
    kind = kind_of(cells)
    is_ground = (kind == KIND_EMPTY) | (kind == KIND_FLOOR) | (kind == KIND_OPEN)
    return is_ground | (kind == KIND_GOAL) | (kind == KIND_LAVA)


def is_opaque(cells: Cell) -> Bool[Array, "*shape"]:
    """Return which cells block the view: walls, closed doors and locked doors."""
    kind = kind_of(cells)
    return (kind == KIND_WALL) | (kind == KIND_CLOSED) | (kind == KIND_LOCKED)


def contents_of(cells: Cell) -> Cell:
    """Return the contents of boxes, `EMPTY` for other cells."""
    kind = kind_of(cells)
    key_inside = (kind - KIND_BOX_KEY) | (KIND_KEY << 3)
    ball_inside = (kind - KIND_BOX_BALL) | (KIND_BALL << 3)
    inside = jnp.where(kind >= KIND_BOX_BALL, ball_inside, key_inside)
    return jnp.where(kind >= KIND_BOX_KEY, inside, EMPTY).astype(cells.dtype)


def type_of(cells: Cell) -> Cell:
    """Return MiniGrid's type index (`OBJECT_TO_IDX`)."""
    kind = kind_of(cells)
    kind_to_type = jnp.where(kind >= KIND_OPEN, TYPE_DOOR, kind + 1)
    kind_to_type = jnp.where(kind >= KIND_KEY, kind - 1, kind_to_type)
    kind_to_type = jnp.where(kind >= KIND_GOAL, kind, kind_to_type)
    kind_to_type = jnp.where(kind >= KIND_BOX, TYPE_BOX, kind_to_type)
    return jnp.where(kind == KIND_UNSEEN, UNSEEN, kind_to_type).astype(cells.dtype)


def door_state_of(cells: Cell) -> Cell:
    """Return MiniGrid's state: 0 open, 1 closed, 2 locked, and 0 for cells without a door."""
    return jnp.where(is_door(cells), kind_of(cells) - KIND_OPEN, 0).astype(cells.dtype)


def encode_as_uint16(cells: Cell) -> UInt16[Array, "*shape"]:
    """Return MiniGrid's triple as one integer, `type << 7 | colour << 3 | state`.

    Each field has a spare sign bit, so differences of integers (modulo 2^16) are equal exactly
    where differences of triples are.
    """

    def widen(field: Cell) -> UInt16[Array, "*shape"]:
        return field.astype(jnp.uint16)

    return widen(type_of(cells)) << 7 | widen(color_of(cells)) << 3 | widen(door_state_of(cells))


def encode(cells: Cell) -> UInt8[Array, "*shape 3"]:
    """Return MiniGrid's triple (type, colour, state) of each cell, like `WorldObj.encode`."""
    return jnp.stack([type_of(cells), color_of(cells), door_state_of(cells)], axis=-1)
