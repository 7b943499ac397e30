"""Furnishing a room: along its walls or in its middle, so that one can still walk through it."""

from typing import NamedTuple

import numpy as np
import shapely

from envs.habitat.apartments import fittings, furniture
from envs.habitat.apartments.furniture import Maker, Piece
from envs.habitat.apartments.geometry import Face, Lamp, Number, moved, turned
from envs.habitat.apartments.plans import kind
from envs.habitat.apartments.shell import DOOR_HEIGHT, Room, Span, Wall, leaf_faces, place

_TOUCH = 1e-3  # square metres that things side by side may share
_RADIUS = 0.22  # of a walker with some room to spare
_BEFORE_DOOR = 0.7  # metres that are kept free
_STEP = 0.12  # metres between places that are tried along a wall
_LOW = 1.0  # height of what may stand below a window
_MOST_CUT_OFF = 0.15  # square metres that a piece may put out of reach

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
_MOST_PICTURES = 4


class Furnished(NamedTuple):
    """What stands in a room."""

    faces: list[Face]
    lamps: list[Lamp]


class _Spot(NamedTuple):
    wall: Wall
    along: Number
    away: Number


class _Fill:
    """Which parts of a room are taken."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.taken = shapely.Polygon()
        doors = [(wall, span) for wall in room.walls for span in _doors(wall)]
        before = [rectangle(w, s.begin - 0.1, s.end + 0.1, 0.0, _BEFORE_DOOR) for w, s in doors]
        self.reserved = shapely.union_all(before)
        middles = [place(wall, (span.begin + span.end) / 2, 0.35) for wall, span in doors]
        self.doors = shapely.multipoints([(x, z) for x, _, z in middles])
        self.island = shapely.box(*room.inside).buffer(-_RADIUS)  # where a walker can get to

    def block(self, piece: shapely.Geometry) -> bool:
        """Takes a place, if nearly all that it leaves free can still be walked to."""
        free = self.island.difference(piece.buffer(_RADIUS, quad_segs=2))
        islands = [part for part in shapely.get_parts(free) if part.contains(self.doors)]
        if not islands or free.area - islands[0].area > _MOST_CUT_OFF:
            return False
        self.island, self.taken = islands[0], self.taken.union(piece)
        return True

    def take(self, piece: Piece, spot: _Spot) -> bool:
        """Takes a piece's place, if it is free and nothing becomes out of reach by it."""
        half = piece.width / 2
        begin, end = spot.along - half, spot.along + half
        cover = rectangle(spot.wall, begin, end, spot.away, spot.away + piece.depth)
        if _overlap(cover, self.taken) or _overlap(cover, self.reserved):
            return False
        if not spot.away and piece.height > _LOW and _overlaps(begin, end, spot.wall.windows):
            return False
        return self.block(cover)


def rectangle(wall: Wall, begin: Number, end: Number, near: Number, far: Number) -> shapely.Polygon:
    """Returns a rectangle between two places along a wall and two distances from it."""
    (x0, _, z0), (x1, _, z1) = place(wall, begin, near), place(wall, end, far)
    return shapely.box(min(x0, x1), min(z0, z1), max(x0, x1), max(z0, z1))


def _overlap(one: shapely.Geometry, other: shapely.Geometry) -> bool:
    return bool(one.intersects(other) and one.intersection(other).area > _TOUCH)


def _doors(wall: Wall) -> list[Span]:
    """Returns where a wall has doors, the apartment's own among them."""
    entrance = [] if wall.entrance is None else [wall.entrance]
    return [span for _, span in wall.doors] + entrance


def _overlaps(begin: Number, end: Number, spans: tuple) -> bool:
    return any(begin < span.end and end > span.begin for span in spans)


def furnish(room: Room, generator: np.random.Generator) -> Furnished:
    """Fills a room with what its kind needs, as far as it fits."""
    fill = _Fill(room)
    faces, lamps = _open_doors(fill, generator), []
    tall: list[tuple[int, float, float]] = []
    for make in _CONTENTS[kind(room.name)]:
        piece = make(generator)
        spot = _find_spot(fill, piece, generator)
        if spot is None:
            continue
        turns, at = spot.wall.turns, place(spot.wall, spot.along, spot.away)
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
    """Takes the first place that suits a piece, of all that there are in random order."""
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
    """Draws the doors that open into this room, where there is a wall to lean them against."""
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
    """Hangs pictures where the walls are free."""
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
            faces += moved(piece.faces, wall.turns, place(wall, along, 0.0, DOOR_HEIGHT - 0.5))
            hung += 1
            if hung >= _MOST_PICTURES:
                return faces
    return faces
