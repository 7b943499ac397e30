"""The rewards in learners of one's own are the package's."""

import inspect
import itertools
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import cbet_jax
from cbet_jax import Batch, Seen, SettingsError, TrainSettings
from cbet_jax.config import AuxiliarySettings, CountSettings
from cbet_jax.intrinsic import make_intrinsic
from cbet_jax.intrinsic.interface import Experience
from cbet_jax.types import Trajectory, Transition, unchanged
from envs.minigrid import make_world
from experiments import new_method
from tests.support.families import others_slow
from tests.support.own_method import own_method

ENVS, STEPS, ACTIONS, VIEW = 3, 40, 7, (7, 7, 3)
SETTINGS = TrainSettings(frames=1000, auxiliary=AuxiliarySettings(channels=(4,), hidden_units=8))


@pytest.fixture(scope="module")
def walk():
    """The steps of a random walk, `[STEPS + 1, ENVS, ...]`, and its actions."""
    world = make_world(("LavaGapS5",), ENVS, explore=True)
    action = jnp.asarray(np.random.default_rng(1).integers(ACTIONS, size=(STEPS, ENVS)), jnp.int32)

    @jax.jit
    def walk_on(key):
        state, first = world.init(key)
        return first, jax.lax.scan(world.step, state, action)[1]

    first, steps = walk_on(jax.random.key(0))
    return jax.tree.map(lambda a, b: np.concatenate([a[None], b]), first, steps), action


def observed(step, t):
    return Seen(step.view[t], step.panorama[t])


def played(bonus, walk, key):
    """All rewards of a walk, step by step."""
    steps, action = walk
    done = steps.terminated | steps.truncated
    state, rewards = jax.jit(bonus.init)(key, observed(steps, 0)), []
    step = jax.jit(bonus.step)
    for t in range(STEPS):
        here, then = observed(steps, t), observed(steps, t + 1)
        state, reward = step(state, jax.random.fold_in(key, t), here, action[t], then, done[t + 1])
        rewards.append(reward)
    return state, np.stack(rewards)


@pytest.mark.parametrize("method", ["cbet", "count"])
def test_counts_give_the_rewards_of_the_formula(method, walk):
    """Counted by hand, without resets: 0.005 / (N(s') + N(c)), and 0.005 / sqrt(N(s'))."""
    settings = replace(SETTINGS, counts=CountSettings(random_resets=False))
    bonus = cbet_jax.bonus(method, ENVS, VIEW, ACTIONS, settings=settings)
    _, rewards = played(bonus, walk, jax.random.key(3))
    steps, _ = walk
    for env in range(ENVS):
        states, changes = {}, {}
        for t in range(STEPS):
            view = steps.view[t + 1, env].tobytes()
            change = (steps.panorama[t + 1, env] - steps.panorama[t, env]).tobytes()
            states[view], changes[change] = states.get(view, 0) + 1, changes.get(change, 0) + 1
            both = 1 / (states[view] + changes[change])
            expected = both if method == "cbet" else 1 / np.sqrt(states[view])
            np.testing.assert_allclose(rewards[t, env], 0.005 * expected, rtol=1e-5)


NETWORKS = ("rnd", "ride", "curiosity", "noveld", "e3b", "ngu-episodic")


@pytest.mark.parametrize("method", others_slow(NETWORKS, ("e3b",)))
def test_methods_with_networks_reward_and_learn_as_in_the_package(method, walk):
    """Each step is rewarded as the package rewards it, running means with the steps so far."""
    bonus = cbet_jax.bonus(method, ENVS, VIEW, ACTIONS, settings=SETTINGS)
    key, (steps, action) = jax.random.key(3), walk
    state, rewards = played(bonus, walk, key)
    own = replace(SETTINGS, method=method, worlds=ENVS, batch=ENVS)
    intrinsic = make_intrinsic(own, ACTIONS)
    expected = jax.jit(lambda: one_by_one(intrinsic, *whole_walk(intrinsic, walk, key)))()
    np.testing.assert_allclose(rewards, expected, rtol=1e-3, atol=1e-6)
    assert rewards.std() > 0
    done = steps.terminated | steps.truncated
    batch = Batch(observed(steps, slice(0, -1)), action, observed(steps, slice(1, None)), done[1:])
    losses = []
    update = jax.jit(bonus.update)
    for _ in range(20):
        state, metrics = update(state, batch)
        losses.append(float(metrics["intrinsic_loss"]))
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("method", others_slow(("e3b", "re3"), ("re3",)))
def test_running_means_are_of_what_was_played(method, walk):
    """Without an update, too: they are what the package's learner finds in the whole walk."""
    bonus = cbet_jax.bonus(method, ENVS, VIEW, ACTIONS, settings=SETTINGS)
    key = jax.random.key(3)
    state, _ = played(bonus, walk, key)
    own = replace(SETTINGS, method=method, worlds=ENVS, batch=ENVS)
    intrinsic = make_intrinsic(own, ACTIONS)
    expected = jax.jit(lambda: intrinsic.adapt(*whole_walk(intrinsic, walk, key), unchanged))()
    fixed = state.params.fixed, expected.fixed
    for ours, theirs in zip(*map(jax.tree.leaves, fixed), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-6)


@pytest.mark.slow
def test_the_first_rewards_are_not_too_large(walk):
    bonus = cbet_jax.bonus("rnd-normalized", ENVS, VIEW, ACTIONS, settings=SETTINGS)
    _, rewards = played(bonus, walk, jax.random.key(3))
    assert rewards.max() == 1.0  # of few values there is next to no deviation
    assert rewards[STEPS // 2 :].max() < 1.0


def one_by_one(intrinsic, params, walked):
    """Rewards of a trajectory, `[STEPS, ENVS]`; each step is adapted to, then rewarded."""

    def rewarded(params, t):
        def some(leaves, number):
            return jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, t, number), leaves)

        both, one = some((walked.view, walked.first), 2), some((walked.steps, walked.signal), 1)
        step = Trajectory(*both, *one, ())
        params = intrinsic.adapt(params, step, unchanged)
        return params, intrinsic.coefficient * intrinsic.reward_and_loss(params, step)[0][0]

    return jax.lax.scan(rewarded, params, jnp.arange(STEPS))[1]


def whole_walk(intrinsic, walk, key):
    """The method's parameters, and the walk as the package's learner sees it."""
    steps, action = walk
    steps = jax.tree.map(jnp.asarray, steps)
    first = jax.tree.map(lambda leaf: leaf[0], steps)
    later = jax.tree.map(lambda leaf: leaf[1:], steps)
    params, memory = intrinsic.init(key, first)
    later = later._replace(success=later.success & False)  # a bonus is not told of it
    keys = jax.vmap(partial(jax.random.fold_in, key))(jnp.arange(STEPS))
    experience = Experience(steps.view[:-1], action, later)
    _, signal = intrinsic.observe(params, memory, keys, experience)
    done = steps.terminated | steps.truncated
    nothing = jnp.zeros(action.shape)
    transition = Transition(action, nothing[..., None], nothing, done[1:], nothing > 0)
    return params, Trajectory(steps.view, done, transition, signal, ())


def test_a_view_alone_is_counted_with_its_own_changes():
    bonus = cbet_jax.bonus("cbet", 1, (1, 1, 3), 2, settings=SETTINGS)
    views = np.array([1, 2, 3, 5], np.uint8)[:, None, None, None, None] * np.ones(3, np.uint8)
    key, step = jax.random.key(0), jax.jit(bonus.step)
    state, rewards = jax.jit(bonus.init)(key, views[0]), []
    for here, then in itertools.pairwise(views):
        state, reward = step(state, key, here, np.array([0]), then, np.array([False]))
        rewards.append(float(reward[0]))
    np.testing.assert_allclose(rewards, [0.005 / 2, 0.005 / 3, 0.005 / 2], rtol=1e-6)


def test_a_method_of_ones_own_is_named_by_its_file(walk, tmp_path):
    file = tmp_path / "my_bonus.py"
    new_method.main(["my_bonus", "--out", str(file)])
    bonus = cbet_jax.bonus(f"{file}:make", ENVS, VIEW, ACTIONS, settings=SETTINGS)
    rewards = played(bonus, walk, jax.random.key(0))[1]
    np.testing.assert_allclose(rewards[0], 0.005)  # first views of their episodes
    assert rewards.min() < 0.002


def test_a_method_that_holds_arrays_begins_in_a_program(tmp_path):
    file = tmp_path / "my_bonus.py"
    file.write_text(
        "import jax.numpy as jnp\nfrom cbet_jax.intrinsic.interface import Intrinsic\n"
        "def make(settings, actions):\n    weights = jnp.arange(actions) + 1.0\n"
        "    return Intrinsic('mine', 0.1, lambda params, played: weights[played.steps.action])\n"
    )
    bonus = cbet_jax.bonus(f"{file}:make", 1, VIEW, 7, settings=SETTINGS)
    view, key = jnp.zeros((1, *VIEW), jnp.uint8), jax.random.key(0)
    state = jax.jit(bonus.init)(key, view)
    _, reward = jax.jit(bonus.step)(state, key, view, jnp.array([2]), view, jnp.array([False]))
    np.testing.assert_allclose(reward, [0.1 * 3])


def test_a_file_that_holds_arrays_is_first_loaded_in_a_program(tmp_path):
    """They are numbers then, too, for later programs and for none."""
    file = tmp_path / "my_bonus.py"
    file.write_text(
        "import jax.numpy as jnp\nfrom cbet_jax.intrinsic.interface import Intrinsic\n"
        "WEIGHTS = jnp.arange(7) + 1.0\ndef make(settings, actions):\n"
        "    return Intrinsic('mine', 0.1, lambda params, played: WEIGHTS[played.steps.action])\n"
    )

    def first_reward(key, view):
        bonus = cbet_jax.bonus(f"{file}:make", 1, VIEW, 7, settings=SETTINGS)
        state = bonus.init(key, view)
        return bonus.step(state, key, view, jnp.array([2]), view, jnp.array([False]))[1]

    key, view = jax.random.key(0), jnp.zeros((1, *VIEW), jnp.uint8)
    for play in (jax.jit(first_reward), first_reward):
        np.testing.assert_allclose(play(key, view), [0.1 * 3])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("coefficient=float('nan')", "its coefficient must be a finite number of at least 0"),
        ("observe=lambda params, memory, keys, seen: (1, 2, 3)", "observe must return"),
        ("reward=lambda params, played: jnp.zeros(3)", "reward must return float32"),
    ],
)
def test_a_method_that_does_not_fit_is_refused_in_words(wrong, said, tmp_path):
    file = tmp_path / "my_bonus.py"
    file.write_text(
        "import jax.numpy as jnp\nfrom cbet_jax.intrinsic.interface import Intrinsic\n"
        f"def make(settings, actions):\n    return Intrinsic('mine', 0.1, None)._replace({wrong})\n"
    )
    bonus = cbet_jax.bonus(f"{file}:make", 1, VIEW, 7, settings=SETTINGS)
    with pytest.raises(SettingsError, match=said):
        bonus.init(jax.random.key(0), jnp.zeros((1, *VIEW), jnp.uint8))


def test_a_loss_that_reads_what_update_does_not_know_is_no_number(tmp_path):
    file = tmp_path / "my_bonus.py"
    file.write_text(
        "import jax.numpy as jnp\nfrom cbet_jax.intrinsic.interface import Intrinsic, Params\n"
        "def observe(params, memory, keys, seen):\n"
        "    return memory, seen.action.astype(jnp.float32)\n"
        "def reward(params, played):\n"
        "    loss = (params.learnt['mine'] - played.signal) ** 2\n"
        "    return played.signal, (loss.mean(), {})\n"
        "def make(settings, actions):\n"
        "    init = lambda key, first: (Params({'mine': jnp.zeros(())}, {}), ())\n"
        "    return Intrinsic('mine', 0.1, reward, init=init, observe=observe)\n"
    )
    bonus = cbet_jax.bonus(f"{file}:make", 1, VIEW, 7, settings=SETTINGS)
    views = jnp.zeros((1, *VIEW), jnp.uint8)
    state = bonus.init(jax.random.key(0), views)
    batch = Batch(views[None], jnp.ones((1, 1), int), views[None], jnp.zeros((1, 1), bool))
    assert np.isnan(bonus.update(state, batch)[1]["intrinsic_loss"])


def test_wrong_names_and_shapes_are_refused():
    with pytest.raises(SettingsError, match="cbet"):
        cbet_jax.bonus("cbett", 1, VIEW, 7)
    with pytest.raises(SettingsError, match=r"num_envs must be in 1\.\..*, not 0"):
        cbet_jax.bonus("cbet", 0, (7, 7, 3), 7)
    with pytest.raises(SettingsError, match=r"num_actions must be in 1\.\..*, not 0"):
        cbet_jax.bonus("cbet", 1, VIEW, 0)
    bonus = inspect.unwrap(cbet_jax.bonus)("cbet", np.int64(1), VIEW, 7)  # numpy's are numbers, too
    with pytest.raises(ValueError, match="must be of shape"):
        bonus.init(jax.random.key(0), jnp.zeros((1, 3, 3, 3), jnp.uint8))
    with pytest.raises(ValueError, match="must be of uint8, not float32"):  # bytes would be all 0
        bonus.init(jax.random.key(0), jnp.full((1, *VIEW), 0.5))
    seen = Seen(jnp.zeros((1, *VIEW), jnp.uint8), jnp.full((1, 4), 0.5))
    with pytest.raises(ValueError, match="must be of integers, not float32"):  # all would be 0
        bonus.init(jax.random.key(0), seen)


def test_arrays_of_another_number_of_environments_are_refused():
    bonus, key = cbet_jax.bonus("rnd", 4, VIEW, 7, settings=SETTINGS), jax.random.key(0)
    views, actions, done = jnp.zeros((4, *VIEW), jnp.uint8), jnp.zeros(4, int), jnp.zeros(4, bool)
    state = bonus.init(key, views)
    step = partial(inspect.unwrap(bonus.step), bonus.step.__self__)  # only tests check the types
    calls = {
        "obs": lambda: bonus.init(key, views[:3]),
        "action": lambda: step(state, key, views, actions[:3], views, done),
        "next_obs": lambda: step(state, key, views, actions, views[:3], done),
        "done": lambda: step(state, key, views, actions, views, done[:3]),
        "which": lambda: bonus.begin(state, key, views, views, done[:3]),
    }
    for name, call in calls.items():
        with pytest.raises(ValueError, match=rf"^{name} is of shape \(3,.*: there are 4 env"):
            call()


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"action": (3, 4)}, r"obs is of shape \(2, 4, .*: there are 3 steps of 4"),
        ({"done": (1, 4)}, r"done is of shape \(1, 4\): there are 2 steps of 4"),
        ({"obs": (2, 3)}, r"obs is of shape \(2, 3.*: there are 2 steps of 4"),
        ({name: (4, 2) for name in Batch._fields}, r"there are 4 steps of 4 environments"),
        ({name: (0, 4) for name in Batch._fields}, r"there are 1 steps of 4 environments"),
    ],
)
def test_steps_to_learn_from_have_one_shape(wrong, told):
    bonus = cbet_jax.bonus("rnd", 4, VIEW, 7, settings=SETTINGS)
    state = bonus.init(jax.random.key(0), jnp.zeros((4, *VIEW), jnp.uint8))
    shape = dict.fromkeys(Batch._fields, (2, 4)) | wrong
    obs, next_obs = (jnp.zeros((*shape[x], *VIEW), jnp.uint8) for x in ("obs", "next_obs"))
    batch = Batch(obs, jnp.zeros(shape["action"], int), next_obs, jnp.zeros(shape["done"], bool))
    with pytest.raises(ValueError, match=told):
        inspect.unwrap(bonus.update)(bonus.update.__self__, state, batch)


def test_an_environment_that_begins_anew_forgets_its_own_episode():
    settings = TrainSettings(frames=1000, counts=CountSettings(episodic=True))
    bonus = cbet_jax.bonus("count", 3, (1, 1, 3), 2, settings=settings)
    key, views = jax.random.key(0), np.ones((3, 1, 1, 3), np.uint8)
    state, step, nobody = jax.jit(bonus.init)(key, views), jax.jit(bonus.step), np.zeros(3, bool)
    stay = (key, views, np.zeros(3, int), views, nobody)
    for _ in range(3):
        state, _ = step(state, *stay)
    state = jax.jit(bonus.begin)(state, key, views, views, np.array([False, True, False]))
    _, reward = step(state, *stay)
    np.testing.assert_allclose(reward, 0.005 / np.sqrt([4, 1, 4]), rtol=1e-5)


SLOPE = """
    import jax.numpy as jnp
    from cbet_jax.intrinsic.interface import Intrinsic, Params

    def make(settings, num_actions):
        def init(key, first):
            return Params({"slope": jnp.ones(())}, {}), ()

        def reward(params, played):
            return jnp.zeros(played.steps.action.shape), (params.learnt["slope"], {})

        return Intrinsic("slope", 0.1, reward, init)
"""


def test_an_optimizer_goes_on_where_the_last_update_left_it(tmp_path):
    """The gradient is 1; with its momentum the second step is 0.19."""
    named = {"settings": TrainSettings(frames=1000), "optimizer": optax.sgd(0.1, momentum=0.9)}
    with own_method(tmp_path, SLOPE) as path:
        bonus = cbet_jax.bonus(f"{path}:make", 1, (7, 7, 3), 7, **named)
        views = jnp.zeros((1, 7, 7, 3), jnp.uint8)
        state = bonus.init(jax.random.key(0), views)
        batch = Batch(views[None], jnp.ones((1, 1), int), views[None], jnp.zeros((1, 1), bool))
        for _ in range(2):
            state, _ = bonus.update(state, batch)
    np.testing.assert_allclose(state.params.learnt["slope"], 1 - 0.1 - 0.19, rtol=1e-5)
