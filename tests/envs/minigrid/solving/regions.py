"""A simplified world for planning: only the region in which the agent can walk matters.

Sets of places are integers: place `y * width + x` is the bit `1 << place`. The *region* of
the agent is the set of places between which it can walk without moving anything.

Three simplifications do not change whether a level can be solved. Closed doors count as open. A
box counts as its contents, and an empty box as an empty cell, unless it is the box to pick up (the
agent can toggle any box in front of it). All useless objects are the same.

The remaining decisions are what to carry where, and these can be undone: a picked object can be
dropped again, and a dropped one picked up. Unlocking a door cannot be undone, but takes nothing
away. So no operation is ever a mistake.
"""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from envs.minigrid import cells as c
from envs.minigrid.export import unpack_box
from envs.minigrid.level import OPEN_DOOR, PICK_UP, REACH_GOAL
from envs.minigrid.rules import DROP, FORWARD, PICKUP, TOGGLE
from tests.envs.minigrid.solving.puzzle import Puzzle

_FREE = (c.KIND_EMPTY, c.KIND_FLOOR, c.KIND_OPEN, c.KIND_CLOSED, c.KIND_GOAL)
_OBJECTS = (c.KIND_KEY, c.KIND_BALL, c.KIND_BOX)
_DOORS = (c.KIND_OPEN, c.KIND_CLOSED, c.KIND_LOCKED)
_OF_NO_USE = c.cell(c.KIND_BALL, len(c.COLORS))  # a ball of no colour: never a target


class Node(NamedTuple):
    """A state of the simplified world."""

    cells: bytes
    region: int
    carrying: int
    near: int  # where the agent was last


class Operation(NamedTuple):
    """An action that changes the world, or enters the goal, and where to do it."""

    action: int
    places: int  # what to have in front: any of these
    walk: int  # where the agent may walk to get there
    stand: int  # where it may stand then


class Regions:
    """The rules of one simplified world."""

    def __init__(self, puzzle: Puzzle) -> None:
        self.task = puzzle.task
        self._width = puzzle.width
        self._object = puzzle.target if puzzle.task == PICK_UP else -1
        self._door = puzzle.target if puzzle.task == OPEN_DOOR else -1
        self.target_door = 1 << puzzle.target if puzzle.task == OPEN_DOOR else 0

    def start(self, cells: bytes, place: int, carrying: int) -> Node:
        """Simplify a world."""
        unpacked = cells.translate(bytes(self.unpacked(cell) for cell in range(256)))
        node = self._sorted(Node(unpacked, 0, carrying, 1 << place))
        return node._replace(region=self.flood(node.near, self.free(node)))

    def unpacked(self, cell: int) -> int:
        """Return the cell that replaces a cell: a box counts as its contents."""
        return unpack_box(cell) if cell >> 3 >= c.KIND_BOX and cell != self._object else cell

    def free(self, node: Node) -> int:
        """Return where nothing stands in the way; the door to open has to stay shut."""
        return places(node.cells, _FREE) & ~self.target_door

    def objects(self, node: Node) -> int:
        return places(node.cells, _OBJECTS)

    def targets(self, node: Node) -> int:
        """Return the places of what the task is about."""
        if self.task == REACH_GOAL:
            return places(node.cells, (c.KIND_GOAL,))
        if self.task == OPEN_DOOR:
            return self.target_door & places(node.cells, _DOORS)
        return places_of(node.cells, self._object) if self.task == PICK_UP else 0

    def finish(self, node: Node) -> Operation | None:
        """Return the operation that fulfils the task, if it can be done right now."""
        region, targets = node.region, self.targets(node)
        if self.task == REACH_GOAL:
            goals = region & targets
            entered = goals and region & (region - 1)  # there is a place to enter it from
            return Operation(FORWARD, goals, region & ~goals, region) if entered else None
        in_front = targets & self.beside(region)
        if self.task == PICK_UP and in_front and node.carrying == c.EMPTY:
            return Operation(PICKUP, in_front, region, region)
        if self.task == OPEN_DOOR and in_front:
            door = node.cells[self._door]
            if door >> 3 == c.KIND_CLOSED or node.carrying == c.key(door & 7):
                return Operation(TOGGLE, in_front, region, region)
        return None

    def unlock(self, node: Node) -> Operation | None:
        """Return an operation that unlocks a door, if one can be done right now."""
        if node.carrying >> 3 != c.KIND_KEY:
            return None
        doors = places_of(node.cells, c.locked_door(node.carrying & 7)) & self.beside(node.region)
        return Operation(TOGGLE, doors & -doors, node.region, node.region) if doors else None

    def picks(self, node: Node) -> list[Operation]:
        """List every way to pick something up."""
        if node.carrying != c.EMPTY:
            return []
        in_front = each(self.objects(node) & self.beside(node.region))
        return [Operation(PICKUP, place, node.region, node.region) for place in in_front]

    def drops(self, node: Node) -> Iterator[tuple[int, Operation]]:
        """Yield every way to drop what is carried, near ones first, with a risk.

        The risk is 0 if it cannot block anything, 1 next to an object or a door, and 2 if it may
        split the region: then the agent chooses the part in which it stays.
        """
        region = node.region
        left = region & places_of(node.cells, c.EMPTY) if node.carrying != c.EMPTY else 0
        narrow = self._narrow(region)
        busy = self.beside(places(node.cells, _OBJECTS + _DOORS))
        reached = node.near & region or region & -region
        while left:
            for place in each(reached & left & narrow):
                for part in self._parts(region, place):
                    yield 2, Operation(DROP, place, region, part)
            for place in each(reached & left & ~narrow):
                if region != place:
                    yield int(place & busy > 0), Operation(DROP, place, region, region ^ place)
            left &= ~reached
            reached |= self.beside(reached) & region

    def after(self, node: Node, operation: Operation) -> Node:
        """Return what an operation (other than the last) leads to."""
        action, place = operation.action, operation.places
        index = place.bit_length() - 1
        before, carrying = node.cells[index], node.carrying
        now = c.open_door(before & 7)
        if action == PICKUP:
            now, carrying = c.EMPTY, before
        if action == DROP:
            now, carrying = self.unpacked(carrying), c.EMPTY
        cells = node.cells[:index] + bytes([now]) + node.cells[index + 1 :]
        after = Node(cells, operation.stand, carrying, place)
        if action == DROP and now != c.EMPTY:
            return after
        if action == TOGGLE:
            after = self._sorted(after)
        return after._replace(region=self.flood(after.region | place, self.free(after)))

    def beside(self, region: int) -> int:
        """Return the region grown by one step, without the region itself."""
        wide = region << 1 | region >> 1 | region << self._width | region >> self._width
        return wide & ~region

    def flood(self, region: int, ground: int) -> int:
        """Return the region grown over `ground` as far as it goes."""
        width = self._width
        while True:
            wide = region << 1 | region >> 1 | region << width | region >> width
            grown = region | wide & ground
            if grown == region:
                return region
            region = grown

    def _sorted(self, node: Node) -> Node:
        """Make all useless objects the same: balls, and keys without a door to unlock."""
        useful = {c.key(cell & 7) for cell in node.cells if cell >> 3 == c.KIND_LOCKED}
        useful.add(self._object)
        alike = bytes(
            _OF_NO_USE if cell >> 3 in (c.KIND_KEY, c.KIND_BALL) and cell not in useful else cell
            for cell in range(256)
        )
        return node._replace(cells=node.cells.translate(alike), carrying=alike[node.carrying])

    def _narrow(self, region: int) -> int:
        """Return the places of a region that join parts of it, as far as their neighbours tell.

        Around every place the corners are followed from side to side; where two or more sides
        are free and not joined to the next one by a corner, the place may part the region.
        """
        width = self._width
        up, down, left, right = region << width, region >> width, region << 1, region >> 1
        starts = (
            up & ~(right & region << width - 1),
            right & ~(down & region >> width + 1),
            down & ~(left & region >> width - 1),
            left & ~(up & region << width + 1),
        )
        once = twice = 0
        for start in starts:
            once, twice = once | start, twice | once & start
        return twice & region

    def _parts(self, region: int, place: int) -> list[int]:
        """Return what taking away a place leaves of a region, part by part."""
        parts: list[int] = []
        for side in each(self.beside(place) & region):
            if not any(side & part for part in parts):
                parts.append(self.flood(side, region ^ place))
        return parts


def places(cells: bytes, kinds: tuple[int, ...]) -> int:
    """Return where cells of these kinds are."""
    return int(cells[::-1].translate(_digits(kinds)), 2)


def places_of(cells: bytes, cell: int) -> int:
    """Return where this very cell is."""
    return int(cells[::-1].translate(_digits_of(cell)), 2)


def each(region: int) -> Iterator[int]:
    """Yield the places of a set one by one."""
    while region:
        place = region & -region
        yield place
        region ^= place


@cache
def _digits(kinds: tuple[int, ...]) -> bytes:
    return bytes(b"01"[cell >> 3 in kinds] for cell in range(256))


@cache
def _digits_of(cell: int) -> bytes:
    return bytes(b"01"[cell == other] for other in range(256))
