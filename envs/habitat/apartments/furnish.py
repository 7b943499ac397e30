"""Furnish a room along its walls or in its middle, and keep it walkable."""

from typing import NamedTuple

import numpy as np
import shapely

from envs.habitat.apartments import fittings, furniture
from envs.habitat.apartments.furniture import Maker, Piece
from envs.habitat.apartments.geometry import Face, Lamp, Number, moved, turned
from envs.habitat.apartments.plans import kind
from envs.habitat.apartments.shell import DOOR_HEIGHT, Room, Span, Wall, leaf_faces, point_at

_MAX_OVERLAP = 1e-3  # square metres that neighbouring pieces may share
_RADIUS = 0.22  # metres; the agent's radius with some tolerance
_DOOR_CLEARANCE = 0.7  # metres in front of a door that are kept free
_STEP = 0.12  # metres between the spots that are tried along a wall
_LOW = 1.0  # metres; height of pieces that may be below a window
_MAX_CUT_OFF = 0.15  # square metres that a piece may make unreachable

_CONTENTS: dict[str, tuple[Maker, ...]] = {
    "living": (furniture.sofa, furniture.television, furniture.bookcase, furniture.armchair,
               furniture.plant, fittings.round_table, furniture.chest),
    "kitchen": (fittings.kitchen, fittings.dining_table, furniture.plant),
    "bedroom": (furniture.bed, furniture.wardrobe, furniture.chest, furniture.plant),
    "child": (furniture.single_bed, furniture.toys, furniture.desk, furniture.bookcase),
    "study": (furniture.desk, furniture.bookcase, furniture.bookcase, furniture.armchair,
              furniture.plant),
    "bathroom": (fittings.bathtub, fittings.washbasin, fittings.toilet,
                 furniture.washing_machine),
    "hall": (furniture.hall_stand, furniture.plant),
    "office": (furniture.desk, furniture.desk, furniture.desk, furniture.desk, furniture.cabinet,
               furniture.cabinet, furniture.plant, furniture.bookcase, fittings.round_table),
    "meeting": (fittings.meeting_table, furniture.whiteboard, furniture.plant,
                furniture.television),
    "hotel": (furniture.bed, furniture.desk, furniture.armchair, furniture.wardrobe,
              furniture.plant),
}  # fmt: skip
_MAX_PICTURES = 4


class Furnished(NamedTuple):
    """The contents of a room."""

    faces: list[Face]
    lamps: list[Lamp]


class _Spot(NamedTuple):
    wall: Wall
    along: Number
    away: Number


class _Fill:
    """Which parts of a room are occupied."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.taken = shapely.Polygon()
        doors = [(wall, span) for wall in room.walls for span in _doors(wall)]
        in_front = [
            rectangle(wall, span.begin - 0.1, span.end + 0.1, 0.0, _DOOR_CLEARANCE)
            for wall, span in doors
        ]
        self.reserved = shapely.union_all(in_front)
        middles = [point_at(wall, (span.begin + span.end) / 2, 0.35) for wall, span in doors]
        self.doors = shapely.multipoints([(x, z) for x, _, z in middles])
        self.island = shapely.box(*room.inside).buffer(-_RADIUS)  # where the agent can walk

    def block(self, piece: shapely.Geometry) -> bool:
        """Occupy an area if nearly all of the rest stays reachable; return whether it did."""
        free = self.island.difference(piece.buffer(_RADIUS, quad_segs=2))
        islands = [part for part in shapely.get_parts(free) if part.contains(self.doors)]
        if not islands or free.area - islands[0].area > _MAX_CUT_OFF:
            return False
        self.island, self.taken = islands[0], self.taken.union(piece)
        return True

    def take(self, piece: Piece, spot: _Spot) -> bool:
        """Place a piece if the spot is free and the rest stays reachable; return whether it did."""
        half = piece.width / 2
        begin, end = spot.along - half, spot.along + half
        cover = rectangle(spot.wall, begin, end, spot.away, spot.away + piece.depth)
        if _overlap(cover, self.taken) or _overlap(cover, self.reserved):
            return False
        if not spot.away and piece.height > _LOW and _overlaps(begin, end, spot.wall.windows):
            return False
        return self.block(cover)


def rectangle(wall: Wall, begin: Number, end: Number, near: Number, far: Number) -> shapely.Polygon:
    """Return the rectangle between two positions along a wall and two distances from it.

    Args:
        wall: the wall.
        begin: position of one side along the wall, in metres.
        end: position of the other side along the wall, in metres.
        near: distance of the near side from the wall, in metres.
        far: distance of the far side from the wall, in metres.
    """
    (x0, _, z0), (x1, _, z1) = point_at(wall, begin, near), point_at(wall, end, far)
    return shapely.box(min(x0, x1), min(z0, z1), max(x0, x1), max(z0, z1))


def _overlap(one: shapely.Geometry, other: shapely.Geometry) -> bool:
    return bool(one.intersects(other) and one.intersection(other).area > _MAX_OVERLAP)


def _doors(wall: Wall) -> list[Span]:
    """Return the spans of all doors in a wall, including the apartment's entrance."""
    entrance = [] if wall.entrance is None else [wall.entrance]
    return [span for _, span in wall.doors] + entrance


def _overlaps(begin: Number, end: Number, spans: tuple) -> bool:
    return any(begin < span.end and end > span.begin for span in spans)


def furnish(room: Room, generator: np.random.Generator) -> Furnished:
    """Fill a room with the pieces of its kind that fit."""
    fill = _Fill(room)
    faces, lamps = _open_doors(fill, generator), []
    tall: list[tuple[int, float, float]] = []
    for make in _CONTENTS[kind(room.name)]:
        piece = make(generator)
        spot = _find_spot(fill, piece, generator)
        if spot is None:
            continue
        turns, at = spot.wall.turns, point_at(spot.wall, spot.along, spot.away)
        faces += moved(piece.faces, turns, at)
        for lamp in piece.lamps:
            x, y, z = turned(lamp.position, turns)
            lamps.append(lamp._replace(position=(x + at[0], y, z + at[2])))
        if not spot.away and piece.height > _LOW:
            half = piece.width / 2
            tall.append((turns, spot.along - half, spot.along + half))
    faces += _hang_pictures(room, tall, generator)
    return Furnished(faces, lamps)


def _find_spot(fill: _Fill, piece: Piece, generator: np.random.Generator) -> _Spot | None:
    """Place a piece at the first suitable spot, in random order; return it, or None."""
    spots = []
    for wall in fill.room.walls:
        depth = fill.room.walls[(wall.turns + 1) % 4].length
        half = piece.width / 2
        aways = (0.0,)
        if piece.stands_free:
            aways = tuple(np.arange(0.5, depth - piece.depth - 0.4, 2 * _STEP).tolist())
        spots += [
            _Spot(wall, float(along), away)
            for along in np.arange(half, wall.length - half + 1e-9, _STEP)
            for away in aways
            if piece.depth + away <= depth
        ]
    for index in generator.permutation(len(spots)).tolist():
        if fill.take(piece, spots[index]):
            return spots[index]
    return None


def _open_doors(fill: _Fill, generator: np.random.Generator) -> list[Face]:
    """Return the open doors of this room that fit against a wall."""
    color = (0.88, 0.86, 0.8) if generator.random() < 0.5 else (0.55, 0.38, 0.22)
    faces = []
    for wall in fill.room.walls:
        for door, span in wall.doors:
            if not door.leaf or door.rooms[0] != fill.room.name:
                continue
            at_end = span.end > wall.length / 2
            begin = span.end if at_end else span.begin - 0.05
            leaf = rectangle(wall, begin, begin + 0.05, 0.0, span.end - span.begin)
            if fill.block(leaf):
                faces += leaf_faces(wall, span, at_end, color)
    return faces


def _hang_pictures(
    room: Room, tall: list[tuple[int, float, float]], generator: np.random.Generator
) -> list[Face]:
    """Return pictures for the free parts of the walls."""
    faces: list[Face] = []
    if kind(room.name) == "bathroom":
        return faces
    hung = 0
    for wall in room.walls:
        taken = [(span.begin - 0.15, span.end + 0.15) for span in _doors(wall)]
        taken += [(span.begin - 0.1, span.end + 0.1) for span in wall.windows]
        taken += [(begin, end) for turns, begin, end in tall if turns == wall.turns]
        for along in generator.permutation(np.arange(0.7, wall.length - 0.6, 0.4)).tolist():
            piece = furniture.hanging(generator)
            begin, end = along - piece.width / 2, along + piece.width / 2
            if any(begin < last and end > first for first, last in taken):
                continue
            taken.append((begin - 0.5, end + 0.5))
            faces += moved(piece.faces, wall.turns, point_at(wall, along, 0.0, DOOR_HEIGHT - 0.5))
            hung += 1
            if hung >= _MAX_PICTURES:
                return faces
    return faces
