"""The floor plans of the nine apartments: rooms and the doors between them.

Rooms are rectangles in (x, z) whose edges run along the middle of the walls. North is -z.
"""

from typing import NamedTuple

from envs.habitat.apartments.geometry import Color, Number

WALL = 0.1  # metres; thickness of a wall
DOOR = 0.92  # metres; width of a door
PASSAGE = 1.7  # metres; width of an opening without a door

Rectangle = tuple[Number, Number, Number, Number]  # x0, z0, x1, z1


class Door(NamedTuple):
    """An opening in the wall between two rooms."""

    rooms: tuple[str, str]
    place: Number = 0.5  # along the shared wall, 0..1
    leaf: bool = True  # whether there is an open door; otherwise it is a wide opening


class Plan(NamedTuple):
    """An apartment. The kind of a room is its name without the digits at its end."""

    rooms: dict[str, Rectangle]
    entrance: tuple[str, int, float]  # room, wall (quarter turns from north), position along it
    doors: tuple[Door, ...] = ()
    height: Number = 2.5  # metres
    day: Number = 1.0  # brightness outside
    sky: Color = (0.62, 0.8, 1.0)


def kind(room: str) -> str:
    """Return the kind of a room, given its name."""
    return room.rstrip("0123456789")


PLANS: dict[str, Plan] = {
    "bedroom": Plan({"bedroom": (0, 0, 4.4, 3.8)}, ("bedroom", 2, 0.2)),
    "living_room": Plan({"living": (0, 0, 5.8, 4.6)}, ("living", 2, 0.8), day=1.2),
    "study": Plan({"study": (0, 0, 3.9, 4.3)}, ("study", 3, 0.85), day=0.5, sky=(0.95, 0.62, 0.4)),
    "office": Plan(
        {"office": (0, 0, 6.6, 5.2), "meeting": (6.6, 0, 10.6, 5.2)},
        ("office", 2, 0.4),
        (Door(("office", "meeting"), 0.8),),
        height=2.8,
        day=1.3,
        sky=(0.8, 0.86, 0.92),
    ),
    "hotel_suite": Plan(
        {"hotel": (0, 0, 5.0, 4.2), "hall": (0, 4.2, 2.2, 6.6), "bathroom": (2.2, 4.2, 5.0, 6.6)},
        ("hall", 2, 0.6),
        (Door(("hotel", "hall"), 0.5), Door(("hall", "bathroom"), 0.3)),
        day=0.15,
        sky=(0.16, 0.2, 0.4),
    ),
    "studio": Plan(
        {"living": (0, 0, 4.8, 4.4), "kitchen": (4.8, 0, 8.0, 4.4),
         "hall": (4.8, 4.4, 8.0, 6.0), "bathroom": (2.2, 4.4, 4.8, 6.6)},
        ("hall", 3, 0.5),
        (Door(("living", "kitchen"), 0.75, leaf=False), Door(("kitchen", "hall"), 0.6),
         Door(("hall", "bathroom"), 0.5)),
        height=2.7,
    ),
    "two_rooms": Plan(
        {"living": (0, 0, 5.2, 4.6), "kitchen": (5.2, 0, 8.6, 3.3), "hall": (5.2, 3.3, 8.6, 5.9),
         "bedroom": (0, 4.6, 5.2, 8.2), "bathroom": (5.2, 5.9, 8.6, 8.2)},
        ("hall", 3, 0.5),
        (Door(("living", "hall"), 0.5), Door(("kitchen", "hall"), 0.7),
         Door(("hall", "bathroom"), 0.4), Door(("bedroom", "hall"), 0.5)),
        day=0.8,
        sky=(0.75, 0.78, 0.82),
    ),
    "family_flat": Plan(
        {"living": (0, 0, 5.4, 4.8), "kitchen": (5.4, 0, 9.4, 4.8), "hall": (3.6, 4.8, 9.4, 6.2),
         "bedroom": (0, 4.8, 3.6, 9.0), "child": (3.6, 6.2, 6.8, 9.0),
         "bathroom": (6.8, 6.2, 9.4, 9.0)},
        ("hall", 3, 0.5),
        (Door(("living", "kitchen"), 0.6, leaf=False), Door(("living", "hall"), 0.5),
         Door(("bedroom", "hall"), 0.5), Door(("hall", "child"), 0.5),
         Door(("hall", "bathroom"), 0.4), Door(("kitchen", "hall"), 0.8)),
        day=1.1,
    ),
    "large_flat": Plan(
        {"living": (0, 0, 4.8, 4.4), "kitchen": (4.8, 0, 8.0, 4.4), "study": (8.0, 0, 10.6, 4.4),
         "hall": (0, 4.4, 10.6, 5.7), "bedroom1": (0, 5.7, 3.4, 9.4),
         "bathroom": (3.4, 5.7, 5.3, 9.4), "bedroom2": (5.3, 5.7, 8.1, 9.4),
         "child": (8.1, 5.7, 10.6, 9.4)},
        ("hall", 1, 0.5),
        (Door(("living", "kitchen"), 0.3, leaf=False), Door(("living", "hall"), 0.5),
         Door(("kitchen", "hall"), 0.7), Door(("study", "hall"), 0.3),
         Door(("hall", "bedroom1"), 0.6), Door(("hall", "bathroom"), 0.5),
         Door(("hall", "bedroom2"), 0.4), Door(("hall", "child"), 0.4)),
    ),
}  # fmt: skip
