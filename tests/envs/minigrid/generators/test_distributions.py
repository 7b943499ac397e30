"""Compare our levels with those of MiniGrid's own generators: two-sample tests.

Each feature of a level is a category. Both samples are compared with a chi-square test of
homogeneity that merges categories expected fewer than 5 times. Seeds are fixed. Several hundred
features are compared, each once and with one seed, so 1 % is the significance level of all
comparisons of this file together (Bonferroni): at 1 % for each world, chance would fail one in
three runs of new seeds. A wrong distribution is still far below it, see the last test.
"""

from collections import Counter

import jax
import numpy as np
import pytest
from scipy.stats import chi2_contingency

from envs.minigrid import cells as c
from envs.minigrid.export import Export
from envs.minigrid.generators import GENERATORS, obstructed_maze
from envs.minigrid.generators.catalogue import SINGLES
from envs.minigrid.level import MARGIN
from tests.support import minigrid_reference
from tests.support.families import ONE_PER_FAMILY, others_slow
from tests.support.play import exports, levels_of
from tests.support.worlds import MULTI_ENV

COMPARED = len(GENERATORS) + len(ONE_PER_FAMILY)  # worlds, some of them twice
FEW = (*MULTI_ENV, "DoorKey-6x6", "LavaCrossingS9N2", "LavaGapS6")  # the slow test: all
LEVEL = 0.01 / COMPARED  # of all features of a world


@pytest.mark.parametrize("name", others_slow(ONE_PER_FAMILY, FEW))
def test_levels_are_distributed_as_minigrids(name):
    compare(name, 500)


@pytest.mark.parametrize("name", others_slow(GENERATORS, ()))
def test_two_thousand_levels_are_distributed_as_minigrids(name):
    compare(name, 2000)


def test_the_comparison_tells_a_wrong_distribution():
    """Guard the tests above: levels of another room size must not pass."""
    ours = [features(level) for level in exports(levels_of("MultiRoom-N4-S5", KEY, 300))]
    env = minigrid_reference.MultiRoomEnv(minNumRooms=4, maxNumRooms=4, maxRoomSize=6)
    theirs = [features(level) for level in minigrid_levels(env, "reach the goal", 300)]
    values = p_values(ours, theirs)
    assert min(values.values()) < LEVEL / len(values)


def test_lava_is_in_the_environments_that_are_named_after_it():
    deadly = {name for name, generator in GENERATORS.items() if generator.deadly}
    assert deadly == {name for name in GENERATORS if name.startswith("Lava")}


def test_the_colours_of_a_box_and_of_a_key_are_drawn_apart():
    levels = jax.device_get(levels_of("UnlockPickup", KEY, 200))
    keys = levels.cells.max((1, 2), where=levels.cells >> 3 == c.KIND_KEY, initial=0) & 7
    assert len({*zip(keys.tolist(), (levels.target & 7).tolist(), strict=True)}) > 25  # of 36


def test_the_ball_of_a_maze_of_one_quarter_is_in_its_upper_right_room():
    levels = jax.device_get(levels_of("ObstructedMaze-2Dlhb", KEY, 100))
    _, y, x = np.nonzero(levels.cells == levels.target[:, None, None])
    assert len(x) == 100
    assert (x - MARGIN > 10).all()
    assert (y - MARGIN < 5).all()


@pytest.fixture
def maze_of(monkeypatch):
    """Return what a maze is sampled from."""
    mazes, generator = [], GENERATORS["ObstructedMaze-Full"]
    keep = lambda name, maze: mazes.append(maze) or generator  # noqa: E731
    monkeypatch.setattr(obstructed_maze, "_generator", keep)
    return lambda name: SINGLES[name](name) and mazes[-1]


@pytest.mark.parametrize("name", [name for name in SINGLES if name.startswith("Obstructed")])
def test_a_maze_begins_in_minigrids_room_and_hides_and_blocks_as_it_does(name, maze_of):
    maze, env = maze_of(name), minigrid_reference.make(name)
    assert maze.agent_room == getattr(env, "agent_room", (0, 0))
    assert (maze.key_in_box, maze.blocked) == (env.key_in_box, env.blocked)
    assert maze.keys_last == name.endswith("-v1")


def test_the_locked_doors_of_a_full_maze_have_all_six_colours(maze_of):
    """Those before and after that of the door to their room, as in MiniGrid."""
    rooms = maze_of("ObstructedMaze-Full").locked_rooms
    colors = [[color for _, color in room.doors] for room in rooms]
    assert colors == [[5, 1], [0, 2], [1, 3], [2, 4]]


KEY = jax.random.key(2)


def compare(name: str, count: int) -> None:
    """Sample `count` levels with both generators and test every feature."""
    ours = exports(levels_of(name, KEY, count))
    theirs = minigrid_levels(minigrid_reference.make(name), ours[0].task, count)
    assert ours[0].max_steps == theirs[0].max_steps
    assert ours[0].grid.shape == theirs[0].grid.shape
    values = p_values([features(level) for level in ours], [features(level) for level in theirs])
    wrong = {feature: p for feature, p in values.items() if p < LEVEL / len(values)}
    assert not wrong


def minigrid_levels(env, task: str, count: int) -> list[Export]:
    levels = []
    for index in range(count):
        env.reset(seed=1 if index == 0 else None)
        levels.append(minigrid_reference.export_from(env, task))
    return levels


def features(level: Export) -> dict[str, object]:
    """Return the features of one level: positions, colours, sizes and distances."""
    kinds, colors, states = np.moveaxis(level.grid, -1, 0)
    found: dict[str, object] = {
        "agent": level.agent_pos,
        "direction": level.agent_dir,
        "agent's column": level.agent_pos[0],
        "agent's row": level.agent_pos[1],
        "agent's room": room_size(kinds, level.agent_pos),
        "walls": int((kinds == c.TYPE_WALL).sum()),
        "doors": int((kinds == c.TYPE_DOOR).sum()),
    }
    for x, y in np.argwhere(level.contents[..., 0]).tolist():
        found[f"in the box at {x}, {y}"] = tuple(level.contents[x, y].tolist())
    for name in ("door", "key", "ball", "box", "goal", "lava"):
        places = np.argwhere(kinds == c.TYPES.index(name))
        found[f"{name} columns"] = tuple(sorted(x for x, _ in places.tolist())[:1])
        found[f"{name} rows"] = tuple(sorted(y for _, y in places.tolist())[:1])
        for index, (x, y) in enumerate(places.tolist()):
            found[f"{name} {index}"] = (x, y)
            found[f"{name} {index} colour"] = int(colors[x, y])
            found[f"{name} {index} state"] = int(states[x, y])
            found[f"{name} {index} to agent"] = abs(x - level.agent_pos[0]) + abs(
                y - level.agent_pos[1]
            )
        if name == "goal" and len(places):
            found["goal's room"] = room_size(kinds, places[0])
        if name == "door" and len(places):
            doors = colors[tuple(places.T)]
            found["repeated door colours"] = len(doors) - len(np.unique(doors))
    for x, y in np.argwhere(kinds == c.TYPE_DOOR).tolist():
        found[f"door at {x}, {y}"] = int(states[x, y])
    locked = np.argwhere((kinds == c.TYPE_DOOR) & (states == 2)).tolist()
    keys = np.argwhere(kinds == c.TYPE_KEY).tolist()
    if locked and keys:
        found["locked door and key"] = (*locked[0], *keys[0])
    if level.task == "open the door":
        found["door to open"] = level.target
    if level.task == "pick up the object":
        found["object to pick up"] = level.target
    return found


def room_size(kinds: np.ndarray, place) -> tuple[int, ...]:
    """Return the size of a room: how far the view from `place` reaches to walls and doors."""
    reach = []
    for dx, dy in ((1, 0), (0, 1), (-1, 0), (0, -1)):
        x, y = place
        while kinds[x, y] not in (c.TYPE_WALL, c.TYPE_DOOR, c.TYPE_LAVA):
            x, y = x + dx, y + dy
        reach.append(max(abs(x - place[0]), abs(y - place[1])))
    return reach[0] + reach[2], reach[1] + reach[3]


def p_values(ours: list[dict], theirs: list[dict]) -> dict[str, float]:
    """Return the p-value of every feature that is not the same in all levels."""
    names = sorted({name for level in ours + theirs for name in level})
    values = {}
    for name in names:
        table = contingency([o.get(name) for o in ours], [t.get(name) for t in theirs])
        if table.shape[1] > 1:
            values[name] = float(chi2_contingency(table).pvalue)
    return values


def contingency(ours: list, theirs: list) -> np.ndarray:
    """Count each category in both samples, with all rare ones in one category."""
    counts = [Counter(sample) for sample in (ours, theirs)]
    table = np.array([[count[value] for value in {*ours, *theirs}] for count in counts])
    rare = table.sum(0) < 10  # expected fewer than 5 times in each sample
    together = table[:, rare].sum(1, keepdims=True)
    table = np.concatenate([table[:, ~rare], together], axis=1)
    return table[:, table.sum(0) > 0]
