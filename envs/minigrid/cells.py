"""One cell of a gridworld as one byte: what it is, its colour, and what is inside.

A cell is `kind << 3 | colour`. The kind tells an open door from a closed one and an
empty box from one that holds a red key, so a whole level, boxes and all, is one `uint8`
array, and a step changes at most one byte of it.

    kind   0      1     2      3     4       5       6    7     8     9     10
           empty  wall  floor  open  closed  locked  key  ball  goal  lava  empty box
    kind   11 + c: box with a key of colour c        17 + c: box with a ball of colour c
    kind   31: unseen (in views only)

MiniGrid's own encoding of a cell is a triple `(type, colour, state)`; `encode` gives it.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, UInt8, UInt16

# MiniGrid's colours (`COLOR_TO_IDX`).
COLORS = ("red", "green", "blue", "purple", "yellow", "grey")
RED, GREEN, BLUE, PURPLE, YELLOW, GREY = range(6)

# MiniGrid's types (`OBJECT_TO_IDX`).
TYPES = (
    "unseen", "empty", "wall", "floor", "door", "key", "ball", "box", "goal", "lava", "agent",
)  # fmt: skip
UNSEEN, TYPE_EMPTY, TYPE_WALL, TYPE_FLOOR, TYPE_DOOR, TYPE_KEY, TYPE_BALL, TYPE_BOX = range(8)
TYPE_GOAL, TYPE_LAVA = 8, 9

# Kinds.
(
    KIND_EMPTY, KIND_WALL, KIND_FLOOR, KIND_OPEN, KIND_CLOSED, KIND_LOCKED,
    KIND_KEY, KIND_BALL, KIND_GOAL, KIND_LAVA, KIND_BOX, KIND_BOX_KEY,
) = range(12)  # fmt: skip
KIND_BOX_BALL = KIND_BOX_KEY + len(COLORS)
NUM_KINDS = KIND_BOX_BALL + len(COLORS)
KIND_UNSEEN = 31

Cell = UInt8[Array, "*shape"]


def cell(kind: int, color: int = RED) -> int:
    """Returns the byte of a cell of `kind` and `color` (both plain integers)."""
    return kind << 3 | color


EMPTY = cell(KIND_EMPTY)
HIDDEN = cell(KIND_UNSEEN)
WALL = cell(KIND_WALL, GREY)
GOAL = cell(KIND_GOAL, GREEN)
LAVA = cell(KIND_LAVA, RED)


def open_door(color: int) -> int:
    return cell(KIND_OPEN, color)


def closed_door(color: int) -> int:
    return cell(KIND_CLOSED, color)


def locked_door(color: int) -> int:
    return cell(KIND_LOCKED, color)


def key(color: int) -> int:
    return cell(KIND_KEY, color)


def ball(color: int) -> int:
    return cell(KIND_BALL, color)


def box(color: int, contents: int = EMPTY) -> int:
    """Returns the byte of a box. `contents` is `EMPTY` or the byte of a key or a ball."""
    inside, inside_color = contents >> 3, contents & 7
    if inside == KIND_EMPTY:
        return cell(KIND_BOX, color)
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
    stands_free = (kind == KIND_EMPTY) | (kind == KIND_FLOOR) | (kind == KIND_OPEN)
    return stands_free | (kind == KIND_GOAL) | (kind == KIND_LAVA)


def hides_behind(cells: Cell) -> Bool[Array, "*shape"]:
    """True where nothing behind the cell can be seen: walls, closed and locked doors."""
    kind = kind_of(cells)
    return (kind == KIND_WALL) | (kind == KIND_CLOSED) | (kind == KIND_LOCKED)


def contents_of(cells: Cell) -> Cell:
    """Returns what is inside: the cell that a toggled box leaves behind, `EMPTY` elsewhere."""
    kind = kind_of(cells)
    key_inside = (kind - KIND_BOX_KEY) | (KIND_KEY << 3)
    ball_inside = (kind - KIND_BOX_BALL) | (KIND_BALL << 3)
    inside = jnp.where(kind >= KIND_BOX_BALL, ball_inside, key_inside)
    return jnp.where(kind >= KIND_BOX_KEY, inside, EMPTY).astype(cells.dtype)


def type_of(cells: Cell) -> Cell:
    """Returns MiniGrid's type index (`OBJECT_TO_IDX`)."""
    kind = kind_of(cells)
    kind_to_type = jnp.where(kind >= KIND_OPEN, TYPE_DOOR, kind + 1)
    kind_to_type = jnp.where(kind >= KIND_KEY, kind - 1, kind_to_type)
    kind_to_type = jnp.where(kind >= KIND_GOAL, kind, kind_to_type)
    kind_to_type = jnp.where(kind >= KIND_BOX, TYPE_BOX, kind_to_type)
    return jnp.where(kind == KIND_UNSEEN, UNSEEN, kind_to_type).astype(cells.dtype)


def door_state_of(cells: Cell) -> Cell:
    """Returns MiniGrid's state: 0 open, 1 closed, 2 locked, 0 for all that is no door."""
    return jnp.where(is_door(cells), kind_of(cells) - KIND_OPEN, 0).astype(cells.dtype)


def code(cells: Cell) -> UInt16[Array, "*shape"]:
    """Returns MiniGrid's triple as one integer, `type << 7 | colour << 3 | state`.

    The fields are wide enough for signs: the differences of two codes (modulo 2^16) are equal
    exactly where the differences of the triples are.
    """
    wide = lambda field: field.astype(jnp.uint16)  # noqa: E731
    return wide(type_of(cells)) << 7 | wide(color_of(cells)) << 3 | wide(door_state_of(cells))


def encode(cells: Cell) -> UInt8[Array, "*shape 3"]:
    """Returns MiniGrid's triple (type, colour, state) of each cell, as `WorldObj.encode` does."""
    return jnp.stack([type_of(cells), color_of(cells), door_state_of(cells)], axis=-1)
