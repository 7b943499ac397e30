"""Choose the next subgoal, in an easier world in which objects never block the way."""

from typing import NamedTuple

from envs.minigrid import cells as c
from envs.minigrid.level import OPEN_DOOR
from tests.envs.minigrid.solving.regions import Node, Regions, each, places, places_of


class Subgoal(NamedTuple):
    """Where to go, and what to carry there."""

    places: int  # go in front of any of these
    key: int  # what to carry; EMPTY to carry nothing


def next_subgoal(regions: Regions, node: Node) -> Subgoal | None:
    """Return what to do next: unlock a door, or come before the target.

    None proves that the level has no solution, because it has none even if objects do not block the
    way and the agent holds every key that it has reached.
    """
    return _Easier(regions, node).next_subgoal()


def operations_left(regions: Regions, node: Node, subgoal: Subgoal) -> int:
    """Estimate how many operations a subgoal takes, clearing the way included."""
    full = node.carrying != c.EMPTY
    blocked = _in_the_way(regions, node, subgoal.places)
    if subgoal.key == c.EMPTY:
        return 2 * blocked + full
    if node.carrying == subgoal.key:
        return 2 * blocked + 2
    keys = places_of(node.cells, subgoal.key)
    return 2 * (blocked + _in_the_way(regions, node, keys)) + 1 + full


def _in_the_way(regions: Regions, node: Node, wanted: int) -> int:
    """Count the objects to be moved, at least, to come before one of the places."""
    free, objects = regions.free(node), regions.objects(node)
    region, count = node.region, 0
    while not (region | regions.beside(region)) & wanted:
        grown = regions.flood(region | regions.beside(region) & objects, free)
        if grown == region:
            break  # a key that is in the agent's own box
        region, count = grown, count + 1
    return count


class _Easier:
    """The world in which objects are never in the way, opened up stage by stage.

    Stage 0 is what the agent can reach without unlocking a door; `doors[i]` are the locked
    doors beside stage i with a key in stage i, and together they lead to stage i + 1.
    """

    def __init__(self, regions: Regions, node: Node) -> None:
        self._regions, self._node = regions, node
        self._ground = regions.free(node) | regions.objects(node)
        self._locked = places(node.cells, (c.KIND_LOCKED,))
        self._stages = [regions.flood(node.region, self._ground)]
        self._doors: list[int] = []
        while not self._solved() and (doors := self._can_be_unlocked()):
            self._doors.append(doors)
            ground = self._ground | sum(self._doors)
            self._stages.append(regions.flood(self._stages[-1] | doors, ground))

    def next_subgoal(self) -> Subgoal | None:
        if not self._solved():
            return None
        if self._regions.task == OPEN_DOOR and self._locked & self._regions.target_door:
            return self._to_unlock(self._regions.target_door)
        return self._to_reach(self._regions.targets(self._node), len(self._doors))

    def _solved(self) -> bool:
        regions, reached = self._regions, self._stages[-1]
        if regions.task == OPEN_DOOR and self._locked & regions.target_door:
            return bool(regions.target_door & sum(self._doors))
        return bool((reached | regions.beside(reached)) & regions.targets(self._node))

    def _can_be_unlocked(self) -> int:
        reached = self._stages[-1]
        doors = self._regions.beside(reached) & self._locked & ~sum(self._doors)
        carried = self._regions.unpacked(self._node.carrying)

        def is_held(key: int) -> bool:
            return carried == key or bool(reached & places_of(self._node.cells, key))

        return sum(door for door in each(doors) if is_held(self._key(door)))

    def _key(self, door: int) -> int:
        return c.key(self._node.cells[door.bit_length() - 1] & 7)

    def _to_unlock(self, door: int) -> Subgoal:
        """Return what to do first, to unlock a door of any stage."""
        stage = next(number for number, doors in enumerate(self._doors) if door & doors)
        if not door & self._regions.beside(self._stages[0]):
            return self._to_reach(door, stage)
        if stage == 0:
            return Subgoal(door, self._key(door))
        keys = places_of(self._node.cells, self._key(door))
        return self._to_reach(keys & self._stages[stage], stage)

    def _to_reach(self, wanted: int, stage: int) -> Subgoal:
        """Return what to do first, to come to places in or beside a stage."""
        beside, here = self._regions.beside, self._stages[0]
        if wanted & (here | beside(here)):
            return Subgoal(wanted, c.EMPTY)
        doors = sum(self._doors[:stage])
        behind = self._regions.flood(wanted, self._ground)
        while not beside(behind) & beside(here) & doors:
            behind = self._regions.flood(behind | beside(behind) & doors, self._ground)
        ways = beside(behind) & beside(here)
        first = next(filter(None, (ways & doors for doors in self._doors)))
        return self._to_unlock(first & -first)
