"""Compare every environment imported from navix with what navix itself shows."""

from functools import cache, partial
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
from envs.minigrid.level import MARGIN, enlarge
from experiments import minigrid_pretrain
from tests.envs.minigrid.solving.solver import solve
from tests.support.families import others_slow
from tests.support.play import QUICKLY, exports

navix = pytest.importorskip("navix")

from navix import rewards, transitions  # noqa: E402
from navix.environments.key_corridor import _UNOPENABLE  # noqa: E402

from envs.minigrid.generators.navix_environments import AIMS, from_navix  # noqa: E402
from envs.minigrid.generators.navix_levels import to_level  # noqa: E402

REGISTERED = sorted(name for name in navix.registry() if not name.startswith("CBET-"))
REASONS = {
    "Navix-Dynamic-Obstacles-": "balls move by themselves",
    "Navix-Fetch-": "names an object in words",
    "Navix-GoToDoor-": "names a door in words",
    "Navix-GoToObject-": "names an object in words",
    "Navix-PutNear-": "names two objects in words",
    "Navix-Memory": "recall what was seen",
    "Navix-RedBlueDoors-": "two doors in order",
}
IMPORTED = [name for name in REGISTERED if not name.startswith(tuple(REASONS))]
# Together they have every kind of object and every task. KeyCorridor has doors without a key.
COMPARED_BY_DEFAULT = (
    "Navix-DistShift2-v0",
    "Navix-FourRooms-7x7-v0",
    "Navix-KeyCorridorS3R2-v0",
    "Navix-ObstructedMaze-1Dlhb-v0",
    "Navix-Unlock-v0",
    "Navix-UnlockPickup-v0",
)
ONE_OF_EACH_CLASS = (
    "Navix-BlockedUnlockPickup-v0",
    "Navix-DistShift2-v0",
    "Navix-DoorKey-Random-5x5-v0",
    "Navix-Empty-Random-5x5-v0",
    "Navix-FourRooms-7x7-v0",
    "Navix-KeyCorridorS3R2-v0",
    "Navix-LavaCrossingS9N2-v0",
    "Navix-LavaGapS5-v0",
    "Navix-LockedRoom-v0",
    "Navix-MultiRoom-N2-S4-v0",
    "Navix-ObstructedMaze-1Dlhb-v0",
    "Navix-ObstructedMaze-2Dlh-v0",
    "Navix-Playground-v0",
    "Navix-Unlock-v0",
    "Navix-UnlockPickup-v0",
)
ALL_OR_SLOW = others_slow(IMPORTED, COMPARED_BY_DEFAULT)
COUNT, STEPS = 16, 60
FREE, WALL = (1, 0, 0), (2, 5, 0)  # MiniGrid's codes


class Shown(NamedTuple):
    """What navix shows after resets, and the levels made from it. Arrays `[COUNT, ...]`."""

    symbols: Any  # navix's observation of the whole grid: (type, colour, state) at [row, column]
    things: dict[str, Any]  # navix's entities
    level: Any
    ok: Any
    on_free_cells: Any  # whether the agent was only ever on cells that can be entered


@cache
def shown(name: str) -> Shown:
    environment = navix.make(name)

    @partial(jax.jit, compiler_options=QUICKLY)
    @jax.vmap
    def show(key):
        timestep = environment.reset(key)
        level, ok = to_level(timestep.state, *AIMS[environment.reward_fn], environment.max_steps)
        return Shown(timestep.observation, timestep.state.entities, level, ok, _walk(level, key))

    return jax.device_get(show(jax.random.split(jax.random.key(3), COUNT)))


def _walk(level, key):
    def step(state, action):
        x, y = state.level.agent_position + MARGIN
        return rules.step(state, action)[0], c.can_enter(state.level.cells[y, x])

    actions = jax.random.choice(key, jnp.array([0, 1, 2, 2, 2, 3, 4, 5]), (STEPS,))
    return jax.lax.scan(step, rules.start(level), actions)[1].all()


def expected_task(name: str) -> str:
    if name == "Navix-Playground-v0":
        return "none"
    if name == "Navix-Unlock-v0":
        return "open the door"
    picks = "UnlockPickup" in name or "ObstructedMaze" in name
    return "pick up the object" if picks else "reach the goal"


@pytest.mark.parametrize("name", REGISTERED)
def test_every_registered_environment_is_imported_or_refused_with_its_reason(name):
    reasons = [reason for start, reason in REASONS.items() if name.startswith(start)]
    if reasons:
        with pytest.raises(envs.minigrid.UnsupportedEnvironment, match=reasons[0]) as error:
            from_navix(name)
        assert name in str(error.value)
        assert "\n" not in str(error.value)
        return
    generator, environment = from_navix(name), navix.make(name)
    size = f"{environment.width}x{environment.height}"
    task = f"{expected_task(name)} within {environment.max_steps} steps"
    assert str(generator) == f"{name}: {size}, {task}"


def test_the_registry_is_navix_4s():
    assert len(REGISTERED) == 83
    assert len(IMPORTED) == 59


def test_every_kind_of_object_and_every_task_is_compared_by_default():
    def kinds(names):
        return {kind for name in names for kind in objects(name)}

    assert kinds(COMPARED_BY_DEFAULT) == kinds(ONE_OF_EACH_CLASS)
    tasks = {expected_task(name) for name in COMPARED_BY_DEFAULT}
    assert tasks == {expected_task(name) for name in IMPORTED} - {"none"}


@cache
def objects(name: str) -> set[str]:
    """Return the kinds of objects in the levels of an environment."""
    return set(jax.eval_shape(navix.make(name).reset, jax.random.key(0)).state.entities)


@pytest.mark.slow
def test_one_environment_of_each_class_is_known():
    classes = {type(navix.make(name)) for name in IMPORTED}
    assert {type(navix.make(name)) for name in ONE_OF_EACH_CLASS} == classes
    assert len(ONE_OF_EACH_CLASS) == len(classes)


@pytest.mark.parametrize("name", ALL_OR_SLOW)
def test_a_level_is_cell_by_cell_what_navix_shows(name):
    environment = navix.make(name)
    seen = shown(name)
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
        assert (level.carrying, level.step_count) == (None, 0)


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
def test_a_level_may_be_played_unless_its_target_has_a_double(name):
    seen = shown(name)
    is_only_one = np.ones(COUNT, bool)
    if "ObstructedMaze" in name:
        colors = seen.things["ball"].colour
        is_only_one = (colors == colors[:, -1:]).sum(1) == 1
    np.testing.assert_array_equal(seen.ok, is_only_one)
    assert seen.on_free_cells.all()


@pytest.mark.parametrize("name", ALL_OR_SLOW)
def test_a_level_can_be_solved(name):
    if expected_task(name) == "none":
        assert "goal" not in shown(name).things
        return
    levels = shown(name).level
    for i in np.flatnonzero(shown(name).ok)[:2]:
        level = jax.tree.map(lambda leaf, i=i: jnp.asarray(leaf[i]), levels)
        state = rules.start(enlarge(level, 25 + 2 * MARGIN, 25 + 2 * MARGIN))
        successes = []
        for action in solve(export(state)):
            state, outcome = one_step(state, jnp.int32(action))
            successes.append(bool(outcome.success))
        assert successes == [False] * (len(successes) - 1) + [True]
        assert outcome.reward == pytest.approx(1 - 0.9 * len(successes) / int(level.max_steps))


one_step = jax.jit(rules.step)


def test_sampled_levels_are_navixs_own():
    name = "Navix-DistShift2-v0"  # has only one level
    levels, ok = sample_levels(find(name), jax.random.key(0), 3)
    assert ok.all()
    for drawn, read in zip(levels, shown(name).level, strict=True):
        np.testing.assert_array_equal(drawn, read[:3])


def test_levels_that_may_not_be_played_are_left_out():
    name = "Navix-ObstructedMaze-1Dlhb-v0"
    assert not shown(name).ok.all()
    sample_many = jax.jit(lambda key: sample_levels(find(name), key, 200), compiler_options=QUICKLY)
    levels, ok = sample_many(jax.random.key(0))
    assert ok.all()
    assert ((levels.cells == levels.target[:, None, None]).sum((1, 2)) == 1).all()
    again, _ = sample_many(jax.random.key(0))
    other, _ = sample_many(jax.random.key(1))
    np.testing.assert_array_equal(levels.cells, again.cells)
    assert (levels.cells != other.cells).any((1, 2)).mean() > 0.99


@cache
def first_state(name: str) -> Any:
    reset = jax.jit(lambda key: navix.make(name).reset(key).state.replace(cache=None))
    return reset(jax.random.key(0))


def changed(state: Any, thing: str, **fields: Any) -> Any:
    changes = {field: jnp.asarray(value) for field, value in fields.items()}
    return state.replace(
        entities=state.entities | {thing: state.entities[thing].replace(**changes)}
    )


@pytest.mark.parametrize(
    ("name", "thing", "fields", "may_be_played"),
    [
        ("Navix-DistShift2-v0", "player", {"position": [[1, 7]]}, True),  # on the goal
        ("Navix-DistShift2-v0", "player", {"position": [[0, 0]]}, False),  # in a wall
        ("Navix-DistShift2-v0", "player", {"position": [[1, 3]]}, False),  # in lava
        ("Navix-DistShift2-v0", "player", {"position": [[0, -1]]}, False),  # nowhere
        ("Navix-DistShift2-v0", "goal", {"position": [[1, 3]]}, False),  # in lava
        ("Navix-DistShift2-v0", "goal", {"position": [[0, 3]]}, False),  # in a wall
        ("Navix-DistShift2-v0", "goal", {"position": [[0, -1]]}, False),  # nowhere
        ("Navix-Unlock-v0", "key", {"colour": [7]}, False),  # not the door's colour
        ("Navix-Unlock-v0", "key", {"id": [9]}, False),  # opens nothing: the door is a wall
        ("Navix-Unlock-v0", "door", {"open": [True]}, False),  # nothing left to do
        ("Navix-Unlock-v0", "door", {"requires": [-1]}, True),  # closed, not locked
    ],
)
def test_malformed_levels_may_not_be_played(name, thing, fields, may_be_played):
    environment = navix.make(name)
    state = changed(first_state(name), thing, **fields)
    read = jax.jit(
        lambda state: to_level(state, *AIMS[environment.reward_fn], environment.max_steps),
        compiler_options=QUICKLY,
    )
    assert bool(read(state)[1]) == may_be_played


@pytest.mark.parametrize(
    ("kind", "options", "reason"),
    [
        ("Room", {"reward_fn": rewards.time_cost}, "none of our tasks"),
        ("Room", {"reward_fn": rewards.on_door_open}, "one door, and it has 0"),
        ("Playground", {"reward_fn": rewards.on_box_pickup}, "one box, and it has 12"),
        ("Playground", {"transitions_fn": transitions.stochastic_transition}, "by themselves"),
    ],
)
def test_an_environment_of_somebodys_own_is_refused_for_what_it_does(
    kind, options, reason, monkeypatch
):
    fields = {"height": 19, "width": 19, "reward_fn": rewards.free}
    fields |= {"transitions_fn": transitions.deterministic_transition} | options

    def make(**more):
        return getattr(navix.environments, kind).create(**fields, **more)

    name = f"Mine-{reason}"
    monkeypatch.setitem(navix.registry(), name, make)
    with pytest.raises(envs.minigrid.UnsupportedEnvironment, match=reason):
        from_navix(name)


def test_importing_twice_gives_the_same_generator():
    assert from_navix("Navix-Empty-5x5-v0") is find("Navix-Empty-5x5-v0")


@pytest.mark.parametrize("name", ["Navix-FourRoms-v0", "navix-fourrooms", "Navix-CBET-Unlock-v0"])
def test_an_unknown_name_is_answered_with_the_nearest_of_navixs(name):
    with pytest.raises(envs.minigrid.UnknownEnvironment, match="did you mean Navix-") as error:
        envs.minigrid.make(name)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["Navix-Fetch-5x5-N2-v0", "Navix-FourRoms-v0"])
def test_the_command_line_refuses_in_one_line(name, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        minigrid_pretrain.main(["--preset", "smoke", "--envs", name])
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert name in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_worlds_play_imported_levels_beside_ours():
    names = ("Navix-Empty-5x5-v0", "Navix-DistShift1-v0", "DoorKey-5x5")
    world = envs.minigrid.make_world(names, 4, explore=False)
    assert world.environments == names

    @partial(jax.jit, compiler_options=QUICKLY)
    def play(key):
        def step(state, action):
            state, seen = world.step(state, jnp.full(4, action))
            return state, seen

        solution = jnp.array([2, 2, 1, 2, 2])  # of the empty room: along two walls to the goal
        return jax.lax.scan(step, world.init(key)[0], solution)[1]

    seen = play(jax.random.key(0))
    assert seen.success.tolist() == [[False] * 4] * 4 + [[True] * 4]
    assert seen.terminated[-1].all()
    assert seen.reward[-1] == pytest.approx(1 - 0.9 * 5 / 100)


def test_navixs_interface_plays_imported_levels():
    environment = envs.minigrid.make("Navix-Empty-5x5-v0")
    timestep = jax.jit(environment.reset, compiler_options=QUICKLY)(jax.random.key(0))
    step = jax.jit(environment.step, compiler_options=QUICKLY)
    for action in (2, 2, 1, 2, 2):
        assert timestep.is_transition()
        timestep = step(timestep, jnp.int32(action))
    assert timestep.is_termination()
    assert timestep.reward == pytest.approx(1 - 0.9 * 5 / 100)
