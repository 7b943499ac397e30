"""Find some solution of a level quickly, or prove that there is none, on the host.

The plan is made subgoal by subgoal (`subgoals`) in a world without walking (`regions`). No
operation there is ever a mistake, so no subgoal has to be undone. Each subgoal is searched for
greedily; if that fails, the same search continues until it has tried everything. Then the
operations are turned into actions.
"""

import heapq
from collections.abc import Iterator
from itertools import count

from envs.minigrid import cells as c
from envs.minigrid.export import Export, unpack_box
from envs.minigrid.level import PICK_UP
from envs.minigrid.rules import DROP, FORWARD, LEFT, PICKUP, RIGHT, TOGGLE
from tests.envs.minigrid.solving.puzzle import Moment, Puzzle, read
from tests.envs.minigrid.solving.regions import Node, Operation, Regions
from tests.envs.minigrid.solving.subgoals import Subgoal, next_subgoal, operations_left

MAX_STATES = 50_000

_SHUT = (c.KIND_CLOSED, c.KIND_BOX)  # what a toggle turns into free ground


def plan(export: Export) -> list[int] | None:
    """Return actions that solve the level with the last of them, or None if there are none.

    The plan is not the shortest, and ignores the level's time limit.
    """
    puzzle, start = read(export)
    operations = _operations(Regions(puzzle), start)
    return None if operations is None else _Walker(puzzle, start).walk(operations)


def _operations(regions: Regions, start: Moment) -> list[Operation] | None:
    """Return the operations that fulfil the task, or None if there are none."""
    node = regions.start(start.cells, start.place, start.carrying)
    done: list[Operation] = []
    while (last := regions.finish(node)) is None:
        if unlocking := regions.unlock(node):
            done.append(unlocking)
            node = regions.after(node, unlocking)
            continue
        subgoal = next_subgoal(regions, node)
        found = _search(regions, node, subgoal) if subgoal else None
        if found is None:
            return None
        node = found[0]
        done += found[1]
    return [*done, last]


def _search(regions: Regions, root: Node, subgoal: Subgoal) -> tuple[Node, list[Operation]] | None:
    """Find a way to something irrevocable: the subgoal, or any door that can be unlocked.

    States that seem closest to the subgoal are tried first. Return the final state and the
    operations, or None if everything was tried, which proves that there is no solution.
    """
    came_from: dict[Node, tuple[Node, Operation]] = {}
    queue: list[tuple[int, int, int, Node, Operation]] = []
    seen = {root[:3]}
    order = count()
    node = root
    while not (regions.finish(node) or regions.unlock(node)):
        left = operations_left(regions, node, subgoal)
        for risk, operation in _choices(regions, node, subgoal):
            heapq.heappush(queue, (left, risk, next(order), node, operation))
        while node[:3] in seen:
            if not queue:
                return None
            *_, before, operation = heapq.heappop(queue)
            node = regions.after(before, operation)
        seen.add(node[:3])
        came_from[node] = before, operation
        assert len(seen) <= MAX_STATES, "the search took too long: nothing is known of the level"
    end, operations = node, []
    while node is not root:
        node, operation = came_from[node]
        operations.append(operation)
    return end, operations[::-1]


def _choices(regions: Regions, node: Node, subgoal: Subgoal) -> Iterator[tuple[int, Operation]]:
    """Yield picks and drops, with the risk that they are useless."""
    for operation in regions.picks(node):
        picked = node.cells[operation.places.bit_length() - 1]
        yield int(picked != subgoal.key), operation
    yield from regions.drops(node)


class _Walker:
    """Turns operations into actions, and plays them on the real level."""

    def __init__(self, puzzle: Puzzle, start: Moment) -> None:
        self._puzzle = puzzle
        self._cells = bytearray(start.cells)
        self._at, self._carrying = start.place * 4 + start.direction, start.carrying
        self._actions: list[int] = []

    def walk(self, operations: list[Operation]) -> list[int]:
        for operation in operations:
            for action in self._way(operation):
                self._act(action)
            if self._needs_toggle(operation.action):
                self._act(TOGGLE)
            self._act(operation.action)
        return self._actions

    def _needs_toggle(self, action: int) -> bool:
        """Return whether a box must be toggled first, to reach its contents."""
        front = self._cells[self._ahead(self._at)]
        is_target = self._puzzle.task == PICK_UP and front == self._puzzle.target
        return action in (PICKUP, DROP) and front >> 3 >= c.KIND_BOX and not is_target

    def _ahead(self, at: int) -> int:
        return at // 4 + self._puzzle.steps[at % 4]

    def _way(self, operation: Operation) -> list[int]:
        """Return the fewest actions to where the operation can be done."""
        came_from: dict[int, tuple[int, tuple[int, ...]]] = {}
        queue: list[tuple[int, int, int, tuple[int, ...]]] = [(0, self._at, self._at, ())]
        while True:
            cost, at, before, actions = heapq.heappop(queue)
            if at in came_from:
                continue
            came_from[at] = before, actions
            place, direction = divmod(at, 4)
            ahead = self._ahead(at)
            if operation.places >> ahead & operation.stand >> place & 1:
                return self._actions_to(at, came_from)
            for action, turned in ((LEFT, (direction - 1) % 4), (RIGHT, (direction + 1) % 4)):
                heapq.heappush(queue, (cost + 1, place * 4 + turned, at, (action,)))
            if operation.walk >> ahead & 1:
                shut = self._cells[ahead] >> 3 in _SHUT
                step = (TOGGLE, FORWARD) if shut else (FORWARD,)
                heapq.heappush(queue, (cost + len(step), ahead * 4 + direction, at, step))

    def _actions_to(self, at: int, came_from: dict[int, tuple[int, tuple[int, ...]]]) -> list[int]:
        actions: list[int] = []
        while at != self._at:
            at, step = came_from[at]
            actions += step[::-1]
        return actions[::-1]

    def _act(self, action: int) -> None:
        """Play one action that is known to have an effect."""
        place, direction = divmod(self._at, 4)
        ahead = self._ahead(self._at)
        front = self._cells[ahead]
        if action in (LEFT, RIGHT):
            turn = 1 if action == RIGHT else -1
            self._at = place * 4 + (direction + turn) % 4
        elif action == FORWARD:
            self._at = ahead * 4 + direction
        elif action == PICKUP:
            self._cells[ahead], self._carrying = c.EMPTY, front
        elif action == DROP:
            self._cells[ahead], self._carrying = self._carrying, c.EMPTY
        elif action == TOGGLE:
            is_box = front >> 3 >= c.KIND_BOX
            self._cells[ahead] = unpack_box(front) if is_box else c.open_door(front & 7)
        self._actions.append(action)
