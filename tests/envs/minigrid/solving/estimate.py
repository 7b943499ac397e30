"""A lower bound of the number of actions that a level still takes, for the solver.

A place is `y * width + x`; a place with a direction is `4 * place + direction`.
"""

from typing import NamedTuple

from envs.minigrid import cells as c
from envs.minigrid.level import OPEN_DOOR, PICK_UP, REACH_GOAL

FAR = 1 << 20  # cannot be reached
_SOLID = (c.KIND_WALL, c.KIND_LAVA)
_DOORS = (c.KIND_OPEN, c.KIND_CLOSED, c.KIND_LOCKED)


class Node(NamedTuple):
    """A state of the world, with places numbered `y * width + x`."""

    cells: bytes
    place: int
    direction: int
    carrying: int


class Puzzle(NamedTuple):
    """What never changes while a level is solved."""

    width: int
    steps: tuple[int, int, int, int]  # what a step in each direction adds to a place
    task: int
    target: int  # PICK_UP: the byte of the object; OPEN_DOOR: the place of the door


class Estimate:
    """Counts the actions of an easier world, a lower bound.

    In that world objects do not block the way, doors cost their toggle only on the way to the next
    object, and dropping costs the drop and the turn away from the dropped object. If one locked
    door separates the agent from its target, then key, door and target (and an object in front of
    the door) must be handled in this order.
    """

    def __init__(self, puzzle: Puzzle, start: Node) -> None:
        self._puzzle, self._size = puzzle, len(start.cells)
        kinds = [cell >> 3 for cell in start.cells]
        self._passable = {place for place, kind in enumerate(kinds) if kind not in _SOLID}
        self._doors = [place for place, kind in enumerate(kinds) if kind in _DOORS]
        self._tables: dict[tuple, list[int]] = {}
        self._lock, self._key, self._before_lock = -1, -1, -1
        self._find_lock(start)

    def __call__(self, node: Node) -> int:
        doors = bytes(node.cells[place] >> 3 for place in self._doors)
        stages = self._stages(node)
        here = node.place * 4 + node.direction
        return FAR if stages is None else self._table(stages, doors)[here]

    def _find_lock(self, start: Node) -> None:
        """Find the only locked door that separates the agent from its target."""
        if self._puzzle.task != PICK_UP or self._puzzle.target not in start.cells:
            return
        locked = [place for place in self._doors if start.cells[place] >> 3 == c.KIND_LOCKED]
        if len(locked) != 1:
            return
        key = c.key(start.cells[locked[0]] & 7)
        if start.cells.count(key) + (start.carrying == key) != 1:
            return
        here = start.place * 4 + start.direction
        stages = (("pick", start.cells.index(self._puzzle.target)),)
        self._lock = locked[0]
        if self._distances(self._seeds(stages), b"", closed_lock=True)[here] < FAR:
            self._lock = -1  # another way leads there
            return
        self._key = key
        self._before_lock = self._agents_side(start)

    def _agents_side(self, start: Node) -> int:
        """Return the place before the locked door that the agent can come to."""
        here = start.place * 4 + start.direction
        for step in self._puzzle.steps:
            beside = self._lock + step
            seeds = {beside * 4 + d: 0 for d in range(4)}
            if self._distances(seeds, b"", closed_lock=True)[here] < FAR:
                return beside
        return -1

    def _stages(self, node: Node) -> tuple | None:
        """Return what is to be handled, in order; None if it cannot be done any more."""
        puzzle, cells = self._puzzle, node.cells
        if puzzle.task == REACH_GOAL:
            return (("enter", cells.find(c.GOAL)),) if c.GOAL in cells else None
        if puzzle.task == OPEN_DOOR:
            return (("toggle", puzzle.target),)
        target = cells.find(puzzle.target)
        if target < 0:
            return () if self._lock < 0 else None
        last = (("drop", 0), ("pick", target)) if node.carrying != c.EMPTY else (("pick", target),)
        if self._lock < 0 or cells[self._lock] >> 3 != c.KIND_LOCKED:
            return last
        unlock = (("toggle", self._lock), ("drop", 0), ("pick", target))
        if node.carrying == self._key:
            return unlock
        take_key = (("pick", cells.find(self._key)), *unlock)
        if node.carrying != c.EMPTY:
            return (("drop", 0), *take_key)
        before = cells[self._before_lock]
        if before != self._key and before >> 3 in (c.KIND_KEY, c.KIND_BALL):
            return (("pick", self._before_lock), ("drop", 0), *take_key)
        return take_key

    def _table(self, stages: tuple, doors: bytes) -> list[int]:
        """Return the least actions from every place and direction through all stages."""
        if (stages, doors) not in self._tables:
            closed_lock = self._lock >= 0 and ("toggle", self._lock) in stages
            spread = self._distances(self._seeds(stages), doors, closed_lock=closed_lock)
            self._tables[stages, doors] = spread
        return self._tables[stages, doors]

    def _seeds(self, stages: tuple) -> dict[int, int]:
        """Return where the first stage can be done, and the least actions from there on."""
        if not stages:
            return {place * 4 + d: 0 for place in self._passable for d in range(4)}
        (what, place), later = stages[0], stages[1:]
        if what == "enter":
            return {place * 4 + d: 0 for d in range(4)}
        after = self._table(later, b"") if later else None
        if what == "drop":
            return self._drop_seeds(after or [])
        facing = ((place - step) * 4 + d for d, step in enumerate(self._puzzle.steps))
        return {
            node: 1 + (after[node] if after else 0)
            for node in facing
            if node // 4 in self._passable
        }

    def _drop_seeds(self, after: list[int]) -> dict[int, int]:
        ground = self._passable - set(self._doors)
        seeds = {}
        for place in self._passable:
            for d, step in enumerate(self._puzzle.steps):
                if place + step in ground:
                    turned = min(after[place * 4 + (d + 1) % 4], after[place * 4 + (d - 1) % 4])
                    seeds[place * 4 + d] = 2 + turned
        return seeds

    def _distances(self, seeds: dict[int, int], doors: bytes, *, closed_lock: bool) -> list[int]:
        """Return the least actions from everywhere to a seed, the seed's own included."""
        passable = self._passable - ({self._lock} if closed_lock else set())
        closed = {
            place
            for place, kind in zip(self._doors, doors, strict=False)  # no kinds: all stand open
            if kind == c.KIND_CLOSED
        }
        least = [FAR] * (4 * self._size)
        buckets: dict[int, list[int]] = {}
        for node, cost in seeds.items():
            if cost < least[node] and node // 4 in passable:
                least[node] = cost
                buckets.setdefault(cost, []).append(node)
        while buckets:
            cost = min(buckets)
            for node in buckets.pop(cost):
                if least[node] < cost:
                    continue
                place, d = divmod(node, 4)
                ways = (
                    (place * 4 + (d + 1) % 4, cost + 1),
                    (place * 4 + (d - 1) % 4, cost + 1),
                    ((place - self._puzzle.steps[d]) * 4 + d, cost + 1 + (place in closed)),
                )
                for before, total in ways:
                    if total < least[before] and before // 4 in passable:
                        least[before] = total
                        buckets.setdefault(total, []).append(before)
        return least
