"""Compare our worlds with Farama's `minigrid` at every step: views, rewards, success, state."""

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chisquare

from envs.minigrid import cells as c
from envs.minigrid import rules
from envs.minigrid.export import export
from envs.minigrid.generators import GENERATORS, find
from envs.minigrid.level import DIRECTIONS, MARGIN, unpack_position
from tests.support import minigrid_reference
from tests.support.families import ONE_PER_FAMILY, others_slow
from tests.support.handmade_levels import MAX_STEPS, random_levels
from tests.support.play import BATCH, Record, full_states, levels_of, plans_for, play

PLAYED = ("KeyCorridorS3R3", "BlockedUnlockPickup", "LavaCrossingS9N2")  # the slow test: all
STEPS = 300  # compared in each world, about
AFTER_SUCCESS = 25  # steps that a shortened episode continues
# Events of each family, besides success, that happen in at least every eighth episode.
HANDLED = {
    "MultiRoom-": ("opened", "closed"),
    "MultiRoomNoisyTV": ("opened", "picked up", "recoloured"),
    "KeyCorridor": ("opened", "unlocked", "picked up", "dropped"),
    "DoorKey": ("unlocked", "picked up", "dropped", "closed"),
    "Unlock": ("unlocked", "picked up", "dropped"),
    "BlockedUnlockPickup": ("unlocked", "picked up", "dropped"),
    "ObstructedMaze-1Dl": ("unlocked", "picked up", "dropped"),
    "ObstructedMaze-1Dlh": ("unpacked",),
    "ObstructedMaze-2Dlh": ("unpacked",),
    "Lava": ("died",),
}
HANDLES = (rules.PICKUP, rules.DROP, rules.TOGGLE)


@pytest.mark.parametrize("name", others_slow(ONE_PER_FAMILY, PLAYED))
def test_some_episodes_equal_minigrid(name):
    episodes = min(max(STEPS // GENERATORS[name].max_steps, 1), BATCH)
    play_and_compare(name, batches=1, episodes=episodes, whole=episodes)


@pytest.mark.slow
@pytest.mark.parametrize("name", GENERATORS)
def test_five_hundred_episodes_equal_minigrid(name):
    """A fifth of the episodes last to the time limit, the others end soon after success."""
    play_and_compare(name, batches=25, episodes=BATCH, whole=BATCH // 5)


@pytest.mark.parametrize("compared", [BATCH // 4, pytest.param(BATCH, marks=pytest.mark.slow)])
def test_every_kind_of_cell_behaves_as_in_minigrid(compared):
    """By default a quarter of the worlds that are played are compared, planned and random ones."""
    things: Counter[str] = Counter()
    for task, name in minigrid_reference.TASK_ENVIRONMENTS.items():
        levels = random_levels(np.random.default_rng(0), task, count=BATCH)
        plans = plans_for(levels, MAX_STEPS + 1, every=2)
        record = play(levels, jax.random.key(1), plans)
        env = minigrid_reference.make(name)
        for world in range(compared):
            compare(record, world, env, MAX_STEPS)
        things.update(what_happened(record))
    assert min(things[what] for what in things if what != "recoloured") >= 5, things


def test_the_noisy_ball_takes_all_colours_alike():
    levels = levels_of("MultiRoomNoisyTV-N7-S4", jax.random.key(0), BATCH)
    plans = np.full((140, BATCH), rules.DROP, np.int32)
    cells = play(levels, jax.random.key(1), plans).states.level.cells
    balls = cells[1:][cells[1:] >> 3 == c.KIND_BALL] & 7
    assert len(balls) == 139 * BATCH
    assert chisquare(np.bincount(balls, minlength=6)).pvalue > 0.01


def test_a_noisy_ball_that_is_carried_takes_all_colours_and_is_not_dropped():
    levels = jax.device_get(levels_of("MultiRoomNoisyTV-N7-S4", jax.random.key(0), BATCH))
    places, directions = levels.agent_position.copy(), levels.agent_direction.copy()
    for world, (cells, ball) in enumerate(
        zip(levels.cells, levels.noisy_ball.tolist(), strict=True)
    ):
        x, y = unpack_position(ball)
        beside = [(x - dx, y - dy) for dx, dy in DIRECTIONS]
        free = [cells[y + MARGIN, x + MARGIN] == c.EMPTY for x, y in beside]
        directions[world] = free.index(True)
        places[world] = beside[free.index(True)]
    levels = levels._replace(agent_position=places, agent_direction=directions)
    plans = np.full((140, BATCH), rules.DROP, np.int32)
    plans[0] = rules.PICKUP
    states = play(levels, jax.random.key(1), plans).states
    assert not (states.level.cells[1:] >> 3 == c.KIND_BALL).any()
    assert (states.carrying[1:] >> 3 == c.KIND_BALL).all()
    assert chisquare(np.bincount(states.carrying[2:].ravel() & 7, minlength=6)).pvalue > 0.01


@pytest.mark.parametrize("explore", [False, True])
def test_lava_and_time_limits_end_episodes_and_success_only_those_of_tasks(explore):
    def ends(**what):
        outcome = rules.Outcome(*[jnp.array(False)] * 5)._replace(**what)
        return tuple(map(bool, rules.episode_ends(outcome, explore=explore)))

    yes = jnp.array(True)
    assert ends(died=yes) == ends(died=yes, timed_out=yes) == (True, False)
    assert ends(success=yes) == (not explore, False)
    assert ends(timed_out=yes) == (False, True)


def play_and_compare(name: str, batches: int, episodes: int, whole: int) -> None:
    """Play episodes in both. Success ends none, but all except `whole` are shortened after it."""
    steps = find(name).max_steps
    env = minigrid_reference.make(name)
    things: Counter[str] = Counter()
    for batch in range(batches):
        key_level, key_play = jax.random.split(jax.random.key(batch))
        levels = levels_of(name, key_level, BATCH)
        plans = plans_for(levels, steps + 1, every=2 if whole == episodes else 1)
        plans[:, 1:whole:2] = -1
        record = play(levels, key_play, plans)
        assert record.outcomes.timed_out[:-1].sum(0).tolist() == [1] * BATCH
        success = record.outcomes.success
        ends = np.where(success.any(0), success.argmax(0) + AFTER_SUCCESS, steps)
        ends[:whole] = steps
        for world in range(episodes):
            compare(record, world, env, min(ends[world], steps))
        things.update(what_happened(record))
    used = {what for family in HANDLED if name.startswith(family) for what in HANDLED[family]}
    assert min(things[what] for what in used | {"succeeded"}) >= batches * BATCH // 8, things


def compare(record: Record, world: int, env, steps: int) -> None:
    """Replay `steps` of one recorded world in `minigrid` and compare every time step."""
    record = jax.tree.map(lambda leaf: leaf[: steps + 1], record)
    mine = jax.tree.map(lambda leaf: leaf[:, world], record)
    minigrid_reference.rebuild(export(jax.tree.map(lambda leaf: leaf[0], mine.states)), env)
    moments = [minigrid_reference.look(env, env.gen_obs()["image"])]
    succeeded, pairs, keys = False, set(), set()
    for step, action in enumerate(mine.actions[:-1].tolist()):
        handles = action in HANDLES
        if isinstance(env, minigrid_reference.MultiRoomNoisyTV):
            env.next_color = c.COLORS[_ball_color(mine.states, step + 1)]
        observation, reward, terminated, truncated, _ = env.step(action)
        moments.append(
            minigrid_reference.look(env, observation["image"], None if handles else moments[-1])
        )
        success = reward > 0
        assert mine.outcomes.success[step] == success
        assert mine.outcomes.reward[step] == pytest.approx(0 if succeeded else reward, abs=1e-6)
        assert mine.outcomes.died[step] == (terminated and not success)
        assert mine.outcomes.timed_out[step] == truncated
        succeeded |= success
        before, after = map(full_state, moments[-2:])
        if handles and before != after:
            pairs.add((before, after))
        if mine.outcomes.interaction[step].any():
            keys.add(tuple(mine.outcomes.interaction[step].tolist()))
        assert len(keys) == len(pairs), f"unique interactions differ at step {step}"
    theirs = [np.array(part) for part in zip(*moments, strict=True)]
    ours = [record.panorama[:, world], record.view[:, world], *full_states(record, world)]
    ours.append(mine.states.step_count)
    for field, part, other in zip(minigrid_reference.Moment._fields, ours, theirs, strict=True):
        differs = (part != other).reshape(len(part), -1).any(1)
        assert not differs.any(), f"{field} differs at step {differs.argmax()}"


def full_state(moment: minigrid_reference.Moment) -> tuple:
    """Return what distinguishes interactions: grid, agent and carried object."""
    return moment.grid.tobytes(), moment.agent, moment.carrying


def _ball_color(states: rules.State, moment: int) -> int:
    """Return the colour of the only ball, carried or not."""
    carried, cells = states.carrying[moment], states.level.cells[moment]
    return int(
        (carried if carried >> 3 == c.KIND_BALL else cells[cells >> 3 == c.KIND_BALL][0]) & 7
    )


def what_happened(record: Record) -> dict[str, int]:
    """Count the events in all worlds: a policy that does nothing would test nothing."""
    cells, carrying = record.states.level.cells, record.states.carrying
    before, after = cells[:-1] >> 3, cells[1:] >> 3
    toggled = (record.actions[:-1] == rules.TOGGLE)[..., None, None]
    empty = carrying == c.EMPTY
    closed, is_open = before == c.KIND_CLOSED, before == c.KIND_OPEN
    ball = (before == c.KIND_BALL) & (after == c.KIND_BALL)
    return {
        "opened": int((closed & (after == c.KIND_OPEN)).sum()),
        "unlocked": int(((before == c.KIND_LOCKED) & (after == c.KIND_OPEN)).sum()),
        "closed": int((is_open & (after == c.KIND_CLOSED)).sum()),
        "unpacked": int((toggled & (before >= c.KIND_BOX) & (before != after)).sum()),
        "picked up": int((empty[:-1] & ~empty[1:]).sum()),
        "dropped": int((~empty[:-1] & empty[1:]).sum()),
        "recoloured": int((ball & (cells[:-1] != cells[1:])).sum()),
        "died": int(record.outcomes.died.sum()),
        "succeeded": int(record.outcomes.success.sum()),
    }
