"""What an iteration learns from."""

from dataclasses import replace

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax import train
from cbet_jax.config import AuxiliarySettings, LossSettings, SettingsError, TrainSettings
from cbet_jax.episode_records import CurrentEpisodes
from cbet_jax.learner import LearnerState, update
from cbet_jax.train import init, iterate, make_trainer, play, split_batches
from cbet_jax.types import LSTMState, Trajectory, Transition
from tests.support.counting import NO_PARAMS
from tests.support.moments import trajectory
from tests.support.tiny import NETWORK
from tests.support.worlds import corridor


def test_every_sequence_is_learnt_from_once_oldest_first():
    rollouts, steps, worlds, batches = 2, 3, 6, 3
    number = jnp.arange(rollouts * worlds).reshape(rollouts, 1, worlds)
    leaf = jnp.broadcast_to(number, (rollouts, steps, worlds))
    empty = LSTMState(leaf[..., None], leaf[..., None])
    trajectory = Trajectory(leaf, leaf, Transition(*[leaf] * 5), (), empty)
    batched = split_batches(trajectory, batches)
    chex.assert_shape(batched.view, (batches, steps, 4))
    chex.assert_shape(batched.initial_state.hidden, (batches, steps, 4, 1))
    np.testing.assert_array_equal(batched.view[:, 0].reshape(-1), np.arange(12))


BOOTSTRAP, NETWORKS = LossSettings(bootstrap="final"), AuxiliarySettings(final_views=True)
ASKS = [  # settings, and who reads final views: the loss, the method
    (TrainSettings(), False, False),
    (TrainSettings(loss=LossSettings(bootstrap="before")), False, False),
    (TrainSettings(loss=BOOTSTRAP), True, False),
    (TrainSettings(method="rnd"), False, False),
    (TrainSettings(method="rnd", loss=BOOTSTRAP), True, False),
    (TrainSettings(method="rnd", auxiliary=NETWORKS), False, True),
    (TrainSettings(method="noveld"), False, True),
]


@pytest.mark.parametrize(("settings", "by_loss", "by_method"), ASKS)
def test_final_views_are_there_only_for_those_who_read_them(settings, by_loss, by_method):
    """The functions are traced, not compiled."""
    settings = replace(settings, worlds=3, batch=3, unroll=9, network=NETWORK)
    trainer = make_trainer(settings, corridor(3))
    seen = []

    def reward(params, trajectory):
        seen.append(trajectory.steps.final_view)
        return trainer_intrinsic.reward(params, trajectory)

    def learn(key):
        state = init(trainer, key)
        played = play(trainer, state.learner, state.actor, state.memory, key)
        batch = jax.tree.map(lambda leaf: leaf[0], played.trajectory)
        method = trainer_intrinsic._replace(reward=reward)
        update(trainer.agent, method, trainer.optimizers, settings, state.learner, batch)
        return state, played, batch.steps.final_view

    trainer_intrinsic = trainer.intrinsic
    state, played, final = jax.eval_shape(learn, jax.random.key(0))
    assert (final is not None) == (by_loss or by_method)
    assert (seen[0] is not None) == by_method
    chex.assert_trees_all_equal_shapes_and_dtypes(played.actor, state.actor)


@pytest.mark.parametrize("settings", [settings for settings, *asks in ASKS if any(asks)])
def test_a_world_that_does_not_know_final_views_is_refused_where_they_are_asked_for(settings):
    world = replace(corridor(3), step_with_final=None)
    if settings.method == "noveld":
        make_trainer(settings, world)
        return
    with pytest.raises(SettingsError, match="which corridor does not give"):
        make_trainer(settings, world)


def test_metrics_of_the_same_name_are_refused():
    settings = TrainSettings(worlds=3, batch=3, unroll=9, network=NETWORK)
    world = replace(corridor(3), report=lambda state: {"policy_loss": jnp.zeros(())})
    trainer = make_trainer(settings, world)
    with pytest.raises(SettingsError, match="two metrics have the name policy_loss"):
        jax.eval_shape(lambda key: iterate(trainer, init(trainer, key)), jax.random.key(0))


def test_worlds_are_refreshed_before_a_rollout():
    settings, refreshed = TrainSettings(worlds=3, batch=3, unroll=9, network=NETWORK), []
    world = replace(corridor(3), refresh=lambda state: refreshed.append(1) or state)
    trainer = make_trainer(settings, world)
    jax.eval_shape(lambda key: iterate(trainer, init(trainer, key)), jax.random.key(0))
    assert refreshed


def test_an_iteration_learns_from_its_batches_oldest_first(monkeypatch):
    def note(agent, method, optimizers, settings, learner, batch, mean):
        digits = 10 * learner.policy + batch.view[0, 0, 0, 0, 0]
        return learner._replace(policy=digits), {"loss": jnp.zeros(())}

    monkeypatch.setattr(train, "update", note)
    trainer = make_trainer(TrainSettings(worlds=3, batch=1, network=NETWORK), corridor(3))
    played = trajectory([[1, 2, 3]] * 2, [[0] * 3])._replace(initial_state=())
    played = jax.tree.map(lambda leaf: leaf[None], played)
    begun = LearnerState(jnp.int32(0), NO_PARAMS, (), {})
    assert train.learn(trainer, begun, played)[0].policy == 123


def test_means_are_of_the_episodes_that_ended_in_each_environment():
    row = lambda *numbers: jnp.array([numbers])  # noqa: E731
    episodes = CurrentEpisodes(
        ended=row(True, True, True, False),
        environment=row(0, 0, 1, 1),
        success=row(True, False, False, True),
        interactions=row(4, 2, 7, 9),
        length=row(3, 5, 8, 9),
        extrinsic_return=row(0.5, 0.0, 0.0, 1.0),
    )
    found = train._episode_metrics(episodes, replace(corridor(4), environments=("A", "B")))
    names = ("episodes", "success", "extrinsic_return", "episode_length", "interactions")
    of = lambda end: [float(found[name + end]) for name in names]  # noqa: E731
    np.testing.assert_allclose(of(""), [3, 1 / 3, 0.5 / 3, 16 / 3, 13 / 3], rtol=1e-6)
    assert (of("/A"), of("/B")) == ([2, 0.5, 0.25, 4, 3], [1, 0, 0, 8, 7])
