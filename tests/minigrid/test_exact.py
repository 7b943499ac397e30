"""Our worlds against Farama's `minigrid`, at every step: views, rewards, success, state."""

from collections import Counter

import jax
import numpy as np
import pytest

from envs.minigrid import cells as c
from envs.minigrid import dynamics
from envs.minigrid.export import export
from envs.minigrid.generators import GENERATORS
from tests.minigrid import reference
from tests.minigrid.handmade import MAX_STEPS, random_levels
from tests.minigrid.play import Record, draw_levels, full_states, play, solutions

BATCH = 50
# What happens in each world, besides success, at least once in four episodes.
HANDLED = {
    "MultiRoom-N4-S5": ("opened", "closed", "succeeded"),
    "KeyCorridorS3R3": ("opened", "closed", "unlocked", "picked up", "dropped", "succeeded"),
    "BlockedUnlockPickup": ("unlocked", "picked up", "dropped", "succeeded"),
}


@pytest.mark.parametrize("name", GENERATORS)
def test_twenty_episodes_equal_minigrid(name):
    play_and_compare(name, episodes=20)


@pytest.mark.slow
@pytest.mark.parametrize("name", GENERATORS)
def test_five_hundred_episodes_equal_minigrid(name):
    play_and_compare(name, episodes=500)


def test_every_kind_of_cell_behaves_as_in_minigrid():
    things: Counter[str] = Counter()
    for task, make in reference.TASK_ENVIRONMENTS.items():
        levels = random_levels(np.random.default_rng(0), task, count=25)
        plans = solutions(levels, MAX_STEPS, every=2)
        record = jax.device_get(play(levels, jax.random.key(1), plans, MAX_STEPS))
        for world in range(25):
            compare(record, world, make)
        things.update(what_happened(record))
    assert min(things.values()) >= 5, things


def play_and_compare(name: str, episodes: int) -> None:
    """Plays whole episodes (to the time limit: success ends none) in both."""
    steps = GENERATORS[name].max_steps
    for batch, first in enumerate(range(0, episodes, BATCH)):
        count = min(BATCH, episodes - first)
        key_level, key_play = jax.random.split(jax.random.key(batch))
        levels = draw_levels(name, key_level, count)
        plans = solutions(levels, steps, every=2)
        record = jax.device_get(play(levels, key_play, plans, steps))
        assert record.outcomes.timed_out.sum(0).tolist() == [1] * count
        for world in range(count):
            compare(record, world, reference.ENVIRONMENTS[name])
        things = what_happened(record)
        used = HANDLED[name]
        assert min(things[what] for what in used) >= count // 4, things


def compare(record: Record, world: int, make) -> None:
    """Plays one recorded world again in `minigrid` and compares every moment."""
    start = jax.tree.map(lambda leaf: leaf[0, world], record.states)
    env = reference.rebuild(export(start), make)
    actions = record.actions[:, world]
    outcomes = jax.tree.map(lambda leaf: leaf[:, world], record.outcomes)
    moments = [reference.look(env, env.gen_obs()["image"])]
    succeeded = False
    for step, action in enumerate(actions):
        observation, reward, terminated, truncated, _ = env.step(int(action))
        moments.append(reference.look(env, observation["image"]))
        success = reward > 0
        assert outcomes.success[step] == success
        assert outcomes.reward[step] == pytest.approx(0 if succeeded else reward, abs=1e-6)
        assert outcomes.died[step] == (terminated and not success)
        assert outcomes.timed_out[step] == truncated
        succeeded |= success
    theirs = [np.array(part) for part in zip(*moments, strict=True)]
    ours = [record.panorama[:, world], record.view[:, world], *full_states(record, world)]
    ours.append(record.states.step_count[:, world])
    for field, mine, other in zip(reference.Moment._fields, ours, theirs, strict=True):
        differs = (mine != other).reshape(len(mine), -1).any(1)
        assert not differs.any(), f"{field} differs at step {differs.argmax()}"


def what_happened(record: Record) -> dict[str, int]:
    """Counts, over all worlds, what the actions did: a policy that does nothing proves nothing."""
    cells, carrying = record.states.level.cells, record.states.carrying
    before, after = cells[:-1] >> 3, cells[1:] >> 3
    toggled = (record.actions == dynamics.TOGGLE)[..., None, None]
    empty = carrying == c.EMPTY
    closed, is_open = before == c.KIND_CLOSED, before == c.KIND_OPEN
    return {
        "opened": int((closed & (after == c.KIND_OPEN)).sum()),
        "unlocked": int(((before == c.KIND_LOCKED) & (after == c.KIND_OPEN)).sum()),
        "closed": int((is_open & (after == c.KIND_CLOSED)).sum()),
        "unpacked": int((toggled & (before >= c.KIND_BOX) & (before != after)).sum()),
        "picked up": int((empty[:-1] & ~empty[1:]).sum()),
        "dropped": int((~empty[:-1] & empty[1:]).sum()),
        "succeeded": int(record.outcomes.success.sum()),
    }
