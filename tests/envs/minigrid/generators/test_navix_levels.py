"""Levels of navix's environments, beside what navix itself shows."""

from functools import cache, partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs.minigrid
from envs.minigrid import cells as c
from envs.minigrid import rules
from envs.minigrid.export import export
from envs.minigrid.generators import find, sample_levels
from envs.minigrid.generators.generator import empty_room
from envs.minigrid.level import PICK_UP, enlarge
from tests.envs.minigrid.solving.planner import plan
from tests.support.families import others_slow
from tests.support.play import CANVAS, QUICKLY, exports

navix = pytest.importorskip("navix")

from navix.environments.key_corridor import _UNOPENABLE  # noqa: E402

from envs.minigrid.generators import navix_levels  # noqa: E402
from envs.minigrid.generators.navix_levels import TASKS, to_level  # noqa: E402

REGISTERED = sorted(name for name in navix.registry() if name.startswith("Navix-"))
REASONS = {
    "Navix-Dynamic-Obstacles-": "balls move by themselves",
    "Navix-Fetch-": "picking up another object ends",
    "Navix-GoToDoor-": "mission is in words",
    "Navix-GoToObject-": "mission is in words",
    "Navix-PutNear-": "mission is in words",
    "Navix-Memory": "recall what the agent saw",
    "Navix-RedBlueDoors-": "two doors in order",
}
IMPORTED = [name for name in REGISTERED if not name.startswith(tuple(REASONS))]
# A goal and lava, and a key, a door and a box.
ALL_OR_SLOW = others_slow(IMPORTED, ("Navix-DistShift2-v0", "Navix-UnlockPickup-v0"))
COUNT = 16
FREE, WALL = (1, 0, 0), (2, 5, 0)  # MiniGrid's codes


class Shown(NamedTuple):
    """What navix shows after resets, and the levels made from it. Arrays `[COUNT, ...]`."""

    symbols: Any  # navix's observation of the whole grid: (type, colour, state) at [row, column]
    things: dict[str, Any]  # navix's entities
    level: Any
    ok: Any


@cache
def shown(name: str) -> Shown:
    environment = navix.make(name)

    @partial(jax.jit, compiler_options=QUICKLY)
    @jax.vmap
    def show(key):
        timestep = environment.reset(key)
        task = TASKS[environment.reward_fn]
        level, ok = to_level(timestep.state, task, environment.max_steps)
        return Shown(timestep.observation, timestep.state.entities, level, ok)

    return jax.device_get(show(jax.random.split(jax.random.key(3), COUNT)))


def expected_task(name: str) -> str:
    if name in ("Navix-Playground-v0", "Navix-Unlock-v0"):
        return "none" if "Playground" in name else "open the door"
    picks = "UnlockPickup" in name or "ObstructedMaze" in name
    return "pick up the object" if picks else "reach the goal"


@pytest.mark.parametrize("name", REGISTERED)
def test_every_environment_is_played_or_refused_with_its_reason(name):
    reasons = [reason for start, reason in REASONS.items() if name.startswith(start)]
    if reasons:
        with pytest.raises(envs.minigrid.UnsupportedEnvironment, match=reasons[0]) as error:
            find(name)
        assert name in str(error.value)
        assert "\n" not in str(error.value)
        return
    environment = navix.make(name)
    size = f"{environment.width}x{environment.height}"
    task = f"{expected_task(name)} within {environment.max_steps} steps"
    assert str(find(name)) == f"{name}: {size}, {task}"


def test_the_registry_is_navix_4s():
    assert (len(REGISTERED), len(IMPORTED)) == (83, 59)


@pytest.mark.parametrize("name", ALL_OR_SLOW)
def test_a_level_is_cell_by_cell_what_navix_shows(name):
    environment, seen = navix.make(name), shown(name)
    for i, level in enumerate(exports(seen.level)):
        things = jax.tree.map(lambda leaf, i=i: leaf[i], seen.things)
        player = things["player"]
        row, column = player.position[0]
        symbols = seen.symbols[i].copy()
        on_goal = "goal" in things and (things["goal"].position[0] == player.position[0]).all()
        if not on_goal:
            assert symbols[row, column, 0] == 10
            symbols[row, column] = FREE
        if "KeyCorridor" in name:
            for door in np.flatnonzero(things["door"].requires == _UNOPENABLE):
                symbols[tuple(things["door"].position[door])] = WALL
        np.testing.assert_array_equal(level.grid, symbols.transpose(1, 0, 2))
        np.testing.assert_array_equal(level.contents, in_boxes(things, level.contents.shape))
        assert level.agent_pos == (column, row)
        assert level.agent_dir == player.direction[0]
        assert level.target == target(name, things)
        assert (level.task, level.max_steps) == (expected_task(name), environment.max_steps)


def in_boxes(things: dict[str, Any], shape: tuple[int, ...]) -> np.ndarray:
    """Return (type, colour) of the key in each of navix's boxes."""
    contents = np.zeros(shape, np.uint8)
    if "box" not in things:
        return contents
    for (row, column), key_id in zip(things["box"].position, things["box"].pocket, strict=True):
        if column >= 0 and key_id != -1:
            key = list(things["key"].id).index(key_id)
            contents[column, row] = (5, things["key"].colour[key])
    return contents


def target(name: str, things: dict[str, Any]) -> tuple[int, int] | None:
    if expected_task(name) == "open the door":
        return tuple(things["door"].position[0][::-1])
    if expected_task(name) != "pick up the object":
        return None
    is_maze = "ObstructedMaze" in name  # its last ball is the one to find
    return (6, things["ball"].colour[-1]) if is_maze else (7, things["box"].colour[0])


@pytest.mark.parametrize("name", ALL_OR_SLOW)
def test_a_level_may_be_played_unless_its_target_has_a_double_and_can_be_solved(name):
    seen = shown(name)
    is_only_one = np.ones(COUNT, bool)
    if "ObstructedMaze" in name:
        colors = seen.things["ball"].colour
        is_only_one = (colors == colors[:, -1:]).sum(1) == 1
    np.testing.assert_array_equal(seen.ok, is_only_one)
    for i in np.flatnonzero(seen.ok)[:2] if expected_task(name) != "none" else ():
        level = jax.tree.map(lambda leaf, i=i: jnp.asarray(leaf[i]), seen.level)
        state = rules.start(enlarge(level, CANVAS, CANVAS))
        successes = []
        for action in plan(export(state)):
            state, outcome = one_step(state, jnp.int32(action))
            successes.append(bool(outcome.success))
        assert successes == [False] * (len(successes) - 1) + [True]
        assert outcome.reward == pytest.approx(1 - 0.9 * len(successes) / int(level.max_steps))


one_step = jax.jit(rules.step)


@pytest.mark.slow
def test_levels_that_may_not_be_played_are_left_out():
    name = "Navix-ObstructedMaze-1Dlhb-v0"
    assert not shown(name).ok.all()
    sample_many = jax.jit(lambda key: sample_levels(find(name), key, 200), compiler_options=QUICKLY)
    levels, ok = sample_many(jax.random.key(0))
    assert ok.all()
    assert ((levels.cells == levels.target[:, None, None]).sum((1, 2)) == 1).all()
    other, _ = sample_many(jax.random.key(1))
    assert (levels.cells != other.cells).any((1, 2)).mean() > 0.99


@pytest.mark.parametrize("name", ["Navix-FourRoms-v0", "navix-fourrooms"])
def test_an_unknown_name_is_answered_with_the_nearest_of_navixs(name):
    with pytest.raises(envs.minigrid.UnknownEnvironment, match="did you mean Navix-") as error:
        envs.minigrid.make(name)
    assert "\n" not in str(error.value)


def test_worlds_play_them_beside_ours():
    names = ("Navix-Empty-5x5-v0", "Navix-DistShift1-v0", "DoorKey-5x5")
    world = envs.minigrid.make_world(names, 4, explore=False)
    assert world.environments == names

    @partial(jax.jit, compiler_options=QUICKLY)
    def play(key):
        def step(state, action):
            return world.step(state, jnp.full(4, action))

        solution = jnp.array([2, 2, 1, 2, 2])  # of the empty room: along two walls to the goal
        return jax.lax.scan(step, world.init(key)[0], solution)[1]

    seen = play(jax.random.key(0))
    assert seen.success.tolist() == [[False] * 4] * 4 + [[True] * 4]
    assert seen.terminated[-1].all()
    assert seen.reward[-1] == pytest.approx(1 - 0.9 * 5 / 100)


@pytest.mark.slow
def test_gymnasiums_and_navixs_interfaces_play_them():
    pytest.importorskip("gymnasium")
    vector = envs.minigrid.gym_vector("Navix-Empty-5x5-v0", 2)
    vector.reset(seed=0)
    environment = envs.minigrid.make("Navix-Empty-5x5-v0")
    timestep = environment.reset(jax.random.key(0))
    for action in (2, 2, 1, 2, 2):
        assert timestep.is_transition()
        timestep = environment.step(timestep, jnp.int32(action))
        _, reward, ended, *_ = vector.step(np.full(2, action))
    assert timestep.is_termination()
    assert ended.all()
    assert reward == pytest.approx([float(timestep.reward)] * 2) == [1 - 0.9 * 5 / 100] * 2


@pytest.mark.parametrize(("beside", "playable"), [(c.EMPTY, True), (c.ball(c.RED), False)])
def test_a_level_may_not_be_played_if_two_objects_look_like_the_one_to_pick_up(
    beside, playable, monkeypatch
):
    grid = empty_room(3, 5).at[1, 2].set(c.ball(c.RED)).at[1, 3].set(beside)
    monkeypatch.setattr(navix_levels, "_grid", lambda state: grid)
    wanted = SimpleNamespace(position=jnp.array([1, 2]))
    player = SimpleNamespace(position=jnp.array([1, 1]), direction=jnp.int32(0))
    state = SimpleNamespace(mission=[wanted], get_player=lambda: player)
    level, ok = to_level(state, PICK_UP, 9)
    assert level.target == c.ball(c.RED)
    assert ok == playable
