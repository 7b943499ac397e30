"""Build the floors, walls, ceilings, doorways and windows of an apartment."""

from typing import NamedTuple

import numpy as np

from envs.habitat.apartments.fronts import panelled, window
from envs.habitat.apartments.furniture import door_leaf
from envs.habitat.apartments.geometry import (
    Color,
    Corner,
    Face,
    Lamp,
    Material,
    Number,
    Vector,
    add,
    box,
    moved,
    turned,
)
from envs.habitat.apartments.pattern import shaded
from envs.habitat.apartments.plans import DOOR, PASSAGE, WALL, Door, Plan, Rectangle, kind
from envs.habitat.apartments.surfaces import lamp, plain, wood

DOOR_HEIGHT = 2.05
_SILL, _LINTEL = 0.95, 2.05  # metres; bottom and top of a window
_WINDOW = 1.35  # metres; width of a window
_TRIM: Color = (0.9, 0.89, 0.85)
_BRIGHT_WALLS = {"living": 2, "office": 2, "hall": 0}  # walls with windows; otherwise one


class Span(NamedTuple):
    """A part of a wall, in metres from its left end, seen from inside the room."""

    begin: Number
    end: Number


class Wall(NamedTuple):
    """One side of a room."""

    turns: int  # quarter turns to the left from the north wall, which faces +z
    corner: Corner  # x and z of its left end, seen from inside
    length: Number
    doors: tuple[tuple[Door, Span], ...]
    windows: tuple[Span, ...]
    entrance: Span | None  # the closed door that leads out of the apartment


class Room(NamedTuple):
    """A room with its walls."""

    name: str
    inside: Rectangle
    walls: tuple[Wall, ...]


def build(plan: Plan) -> list[Room]:
    """Return all rooms of a plan with their walls, doors and windows."""
    rooms = []
    for name, outline in plan.rooms.items():
        walls, bright = [], _BRIGHT_WALLS.get(kind(name), 1)
        for turns in range(4):
            wall = _wall(plan, name, turns)
            if wall.windows:
                wall = wall if bright else wall._replace(windows=())
                bright = max(0, bright - 1)
            walls.append(wall)
        rooms.append(Room(name, _inset(outline), tuple(walls)))
    return rooms


def point_at(wall: Wall, along: Number, away: Number = 0.0, height: Number = 0.0) -> Vector:
    """Return the point at given distances from the left end of a wall.

    Args:
        wall: the wall.
        along: metres along the wall.
        away: metres from the wall into the room.
        height: metres above the floor.
    """
    x, _, z = turned((along, 0.0, away), wall.turns)
    return add((x, height, z), (wall.corner[0], 0.0, wall.corner[1]))


def _inset(outline: Rectangle) -> Rectangle:
    x0, z0, x1, z1 = outline
    return x0 + WALL / 2, z0 + WALL / 2, x1 - WALL / 2, z1 - WALL / 2


def _wall(plan: Plan, name: str, turns: int) -> Wall:
    x0, z0, x1, z1 = _inset(plan.rooms[name])
    corner = ((x0, z0), (x0, z1), (x1, z1), (x1, z0))[turns]
    length = (x1 - x0, z1 - z0)[turns % 2]
    wall = Wall(turns, corner, length, (), (), None)
    doors, shared, entrance = [], [], None
    if plan.entrance[:2] == (name, turns):
        entrance = _within(length, plan.entrance[2], DOOR)
        shared.append(entrance)
    for other, outline in plan.rooms.items():
        common = _common(plan.rooms[name], outline, turns) if other != name else None
        if common is None:
            continue
        shared.append(_along(wall, common))
        for door in plan.doors:
            if {name, other} == set(door.rooms):
                doors.append((door, _along(wall, _opening(door, common))))
    windows = _windows(wall, shared, small=kind(name) == "bathroom")
    return wall._replace(doors=tuple(doors), windows=windows, entrance=entrance)


def _within(length: Number, part: Number, width: Number) -> Span:
    """Return the span of something of a given width at a position (0..1) of a wall."""
    margin = 0.1 + width / 2
    centre = margin + part * max(0.0, length - 2 * margin)
    return Span(centre - width / 2, centre + width / 2)


def _common(room: Rectangle, other: Rectangle, turns: int) -> Span | None:
    """Return the part of a room's side (in x or z) behind which another room is."""
    side = (1, 0, 3, 2)[turns]
    if room[side] != other[(side + 2) % 4]:
        return None
    axis = turns % 2
    begin, end = max(room[axis], other[axis]), min(room[axis + 2], other[axis + 2])
    return Span(begin, end) if end > begin else None


def _opening(door: Door, common: Span) -> Span:
    """Return the span of a door, in x or z."""
    margin = WALL / 2
    free = common.end - common.begin - WALL
    span = _within(free, door.place, DOOR if door.leaf else PASSAGE)
    return Span(common.begin + margin + span.begin, common.begin + margin + span.end)


def _along(wall: Wall, span: Span) -> Span:
    """Convert a span in x or z to one from the left end of the wall."""
    start = wall.corner[wall.turns % 2]
    if wall.turns in (0, 3):  # the wall runs along +x or +z
        return Span(span.begin - start, span.end - start)
    return Span(start - span.end, start - span.begin)


def _windows(wall: Wall, shared: list[Span], small: bool) -> tuple[Span, ...]:
    """Return windows for the parts of a wall with no room behind them."""
    free, begin = [], 0.0
    for span in [*sorted(shared), Span(wall.length, wall.length)]:
        if span.begin - begin > _WINDOW + 0.5:
            free.append(Span(begin, span.begin))
        begin = max(begin, span.end)
    width = _WINDOW * (0.55 if small else 1.0)
    windows = []
    for span in free:
        number = max(1, int((span.end - span.begin) / 2.7))
        step = (span.end - span.begin) / number
        for index in range(number):
            centre = span.begin + (index + 0.5) * step
            windows.append(Span(centre - width / 2, centre + width / 2))
    return tuple(windows)


def room_faces(
    room: Room, plan: Plan, floor: Material, wall_look: Material, ceiling: Material
) -> list[Face]:
    """Return the faces of a room: floor, walls, ceiling, door frames and windows.

    Args:
        room: the room.
        plan: the plan of its apartment.
        floor: material of the floor.
        wall_look: material of the walls.
        ceiling: material of the ceiling.
    """
    x0, z0, x1, z1 = room.inside
    width, depth = x1 - x0, z1 - z0
    faces = [
        Face((x0, 0.0, z1), (width, 0, 0), (0, 0, -depth), floor),
        Face((x0, plan.height, z0), (width, 0, 0), (0, 0, depth), ceiling),
    ]
    for wall in room.walls:
        local = _wall_faces(wall, plan.height, wall_look)
        for _, span in wall.doors:
            local += _frame(span)
        for span in wall.windows:
            local += _window(span, plan)
        if wall.entrance is not None:
            local += [*_frame(wall.entrance), *_closed_door(wall.entrance)]
        faces += moved(local, wall.turns, point_at(wall, 0.0))
    return faces


def _wall_faces(wall: Wall, height: Number, look: Material) -> list[Face]:
    """Return the faces of a wall around its doors, in the coordinates of the wall."""
    faces, begin = [], 0.0

    def part(start: Number, end: Number, low: Number) -> Face:
        size: tuple[Vector, Vector] = ((end - start, 0, 0), (0, height - low, 0))
        return Face((start, low, 0), *size, look, shift=(start, low))

    for _, span in sorted(wall.doors, key=lambda item: item[1]):
        faces += [part(begin, span.begin, 0.0), part(span.begin, span.end, DOOR_HEIGHT)]
        begin = span.end
    return [*faces, part(begin, wall.length, 0.0)]


def _frame(span: Span) -> list[Face]:
    """Return the frame around a doorway."""
    trim, wide, thick = plain(_TRIM), 0.08, 0.02
    top = DOOR_HEIGHT + wide
    return [
        *box((span.begin - wide, 0, 0), (span.begin, top, thick), trim, ("bottom", "back")),
        *box((span.end, 0, 0), (span.end + wide, top, thick), trim, ("bottom", "back")),
        *box((span.begin, DOOR_HEIGHT, 0), (span.end, top, thick), trim, ("back",)),
    ]


def doorway_faces(wall: Wall, span: Span) -> list[Face]:
    """Return the inner faces of a doorway: sill, sides and top."""
    trim, height = plain(shaded(_TRIM, 0.92)), DOOR_HEIGHT
    width, deep = span.end - span.begin, WALL
    faces = [
        Face((span.begin, 0, 0), (width, 0, 0), (0, 0, -deep), wood((0.45, 0.32, 0.2))),
        Face((span.begin, height, -deep), (width, 0, 0), (0, 0, deep), trim),
        Face((span.begin, 0, 0), (0, 0, -deep), (0, height, 0), trim),
        Face((span.end, 0, -deep), (0, 0, deep), (0, height, 0), trim),
    ]
    return moved(faces, wall.turns, point_at(wall, 0.0))


def leaf_faces(wall: Wall, span: Span, at_end: bool, color: Color) -> list[Face]:
    """Return a door that is open into the room.

    Args:
        wall: the wall of the doorway.
        span: the doorway.
        at_end: whether the hinge is at the end of the span rather than at its beginning.
        color: colour of the door.
    """
    leaf = door_leaf(span.end - span.begin, DOOR_HEIGHT, color)
    hinge = span.end + 0.04 if at_end else span.begin
    return moved(leaf, wall.turns, point_at(wall, hinge))


def _closed_door(span: Span) -> list[Face]:
    color = (0.34, 0.22, 0.15)
    low, high = (span.begin, 0.0, 0.0), (span.end, DOOR_HEIGHT, 0.015)
    return box(low, high, plain(color), ("bottom", "back"), front=panelled(color))


def _window(span: Span, plan: Plan) -> list[Face]:
    trim = plain(_TRIM)
    ground = shaded((0.28, 0.42, 0.22), min(1.0, plan.day + 0.1))
    view = window(shaded(plan.sky, min(1.0, 0.4 + plan.day)), ground)
    low, high = (span.begin, _SILL, 0.0), (span.end, _LINTEL, 0.03)
    sill = box(
        (span.begin - 0.05, _SILL - 0.04, 0), (span.end + 0.05, _SILL, 0.12), trim, ("back",)
    )
    return [*box(low, high, trim, ("back",), front=view), *sill]


def window_lamps(room: Room, plan: Plan) -> list[Lamp]:
    """Return the daylight that comes in through the windows."""
    lamps = []
    for wall in room.walls:
        towards = turned((0.0, 0.0, 1.0), wall.turns)
        for span in wall.windows:
            for part in (0.25, 0.75):
                along = span.begin + part * (span.end - span.begin)
                strength = plan.day * (span.end - span.begin) * 1.5
                at = point_at(wall, along, 0.1, (_SILL + _LINTEL) / 2)
                lamps.append(Lamp(at, scaled(plan.sky, strength), towards))
    return lamps


def ceiling_lamp(room: Room, plan: Plan, color: Color, strength: Number) -> tuple[list[Face], Lamp]:
    """Return the faces and the light of a lamp in the middle of the ceiling.

    Args:
        room: the room.
        plan: the plan of its apartment.
        color: colour of the light.
        strength: brightness of the light.
    """
    x0, z0, x1, z1 = room.inside
    x, z, y = (x0 + x1) / 2, (z0 + z1) / 2, plan.height
    low, high = (x - 0.2, y - 0.09, z - 0.2), (x + 0.2, y, z + 0.2)
    power = strength * (1.2 + 0.09 * (x1 - x0) * (z1 - z0))
    light = Lamp((x, y - 0.3, z), scaled(color, power))
    return box(low, high, lamp(shaded(color, 1.1)), ("top",)), light


def scaled(color: Color, by: Number) -> Color:
    """Return a light's colour times its strength."""
    red, green, blue = (float(np.float64(channel) * by) for channel in color)
    return red, green, blue
