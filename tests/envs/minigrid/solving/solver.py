"""Find a shortest solution of a level: A* over MiniGrid's rules, on the host.

The state is everything that actions change: cells, the agent's position and direction, and what it
carries. Moves that can never shorten a solution are left out (`done`, closing a door, unpacking
the target, stepping into lava). The estimate of the remaining actions never exceeds the truth
(`Estimate`), so the solution found is a shortest one.
"""

import heapq
from functools import cache
from itertools import count

from envs.minigrid import cells as c
from envs.minigrid.export import Export, encoding_tables, unpack_box
from envs.minigrid.level import OPEN_DOOR, PICK_UP, REACH_GOAL, TASKS
from envs.minigrid.rules import DROP, FORWARD, LEFT, PICKUP, RIGHT, TOGGLE
from tests.envs.minigrid.solving.estimate import FAR, Estimate, Node, Puzzle

MAX_STATES = 2_000_000

_FREE = (c.KIND_EMPTY, c.KIND_FLOOR, c.KIND_OPEN, c.KIND_GOAL)


class SearchTooLongError(RuntimeError):
    """The search was abandoned, so nothing is known about the level."""


def solve(export: Export) -> list[int] | None:
    """Return the actions of a shortest solution, or None if there is none.

    Raises:
        SearchTooLongError: more than `MAX_STATES` states were visited.
    """
    puzzle, start = read(export)
    estimate = Estimate(puzzle, start)
    order = count()
    best = {start: 0}
    came_from: dict[Node, tuple[Node, int]] = {}
    queue = [(estimate(start), 0, next(order), start)]
    while queue:
        _, negative_length, _, node = heapq.heappop(queue)
        length = -negative_length
        if length > best[node]:
            continue
        for action, after, solved in _moves(puzzle, node):
            if solved:
                return [*_actions_to(node, came_from), action]
            if length + 1 < best.get(after, FAR):
                left = estimate(after)
                if left >= FAR:
                    continue
                best[after] = length + 1
                came_from[after] = (node, action)
                heapq.heappush(queue, (length + 1 + left, -length - 1, next(order), after))
        if len(best) > MAX_STATES:
            raise SearchTooLongError(f"gave up after {MAX_STATES} states")
    return None


def _actions_to(node: Node, came_from: dict[Node, tuple[Node, int]]) -> list[int]:
    actions = []
    while node in came_from:
        node, action = came_from[node]
        actions.append(action)
    return actions[::-1]


def _moves(puzzle: Puzzle, node: Node) -> list[tuple[int, Node, bool]]:
    """List the useful actions: the next state, and whether it solves the level."""
    cells, place, direction, carrying = node
    ahead = place + puzzle.steps[direction]
    front = cells[ahead]
    kind = front >> 3
    moves = [
        (LEFT, Node(cells, place, (direction - 1) % 4, carrying), False),
        (RIGHT, Node(cells, place, (direction + 1) % 4, carrying), False),
    ]
    if kind in _FREE:
        on_goal = puzzle.task == REACH_GOAL and kind == c.KIND_GOAL
        moves.append((FORWARD, Node(cells, ahead, direction, carrying), on_goal))
    if carrying == c.EMPTY and (kind in (c.KIND_KEY, c.KIND_BALL) or kind >= c.KIND_BOX):
        holds_target = puzzle.task == PICK_UP and front == puzzle.target
        after = Node(_with(cells, ahead, c.EMPTY), place, direction, front)
        moves.append((PICKUP, after, holds_target))
    if carrying != c.EMPTY and front == c.EMPTY:
        after = Node(_with(cells, ahead, carrying), place, direction, c.EMPTY)
        moves.append((DROP, after, False))
    unlocks = kind == c.KIND_LOCKED and carrying == c.key(front & 7)
    if kind == c.KIND_CLOSED or unlocks:
        after = Node(_with(cells, ahead, c.open_door(front & 7)), place, direction, carrying)
        moves.append((TOGGLE, after, puzzle.task == OPEN_DOOR and ahead == puzzle.target))
    if kind >= c.KIND_BOX and not (puzzle.task == PICK_UP and front == puzzle.target):
        after = Node(_with(cells, ahead, unpack_box(front)), place, direction, carrying)
        moves.append((TOGGLE, after, False))
    return moves


def _with(cells: bytes, place: int, cell: int) -> bytes:
    return cells[:place] + bytes([cell]) + cells[place + 1 :]


def read(export: Export) -> tuple[Puzzle, Node]:
    """Pack an export back into one byte per cell."""
    codes = _codes()
    width, height = export.grid.shape[:2]
    cells = bytes(
        codes[*export.grid[x, y].tolist(), *export.contents[x, y].tolist()]
        for y in range(height)
        for x in range(width)
    )
    task, target = TASKS.index(export.task), 0
    if export.target is not None and task == PICK_UP:
        target = codes[*export.target, 0, 0, 0]
    if export.target is not None and task == OPEN_DOOR:
        target = export.target[1] * width + export.target[0]
    carrying = c.EMPTY
    if export.carrying is not None:
        carrying = codes[*export.carrying, 0, *(export.carrying_contents or (0, 0))]
    x, y = export.agent_pos
    start = Node(cells, y * width + x, export.agent_dir, carrying)
    return Puzzle(width, (1, width, -1, -width), task, target), start


@cache
def _codes() -> dict[tuple[int, ...], int]:
    """Return the byte of each (type, colour, state, type inside, colour inside)."""
    triples, contents = encoding_tables()
    used = [cell for cell in range(c.NUM_KINDS << 3) if cell & 7 < len(c.COLORS)]
    return {(*triples[cell].tolist(), *contents[cell].tolist()): cell for cell in reversed(used)}
