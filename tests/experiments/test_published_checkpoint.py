"""The settings of a run that would have made a checkpoint of the published code."""

from dataclasses import replace

from cbet_jax.config import HabitatSettings
from experiments.common.presets import HABITAT_PRESETS
from experiments.import_torch import PublishedCheckpoint, run_settings
from tests.support.published import FLAGS, HABITAT, NETWORK, UPDATES


def test_a_run_of_tabula_rasa_is_told_from_one_of_pretraining():
    flags = FLAGS | {"model": "vanilla", "no_reward": False}
    settings = run_settings(PublishedCheckpoint({}, flags, UPDATES), NETWORK)
    assert settings.stage == "tabula rasa"
    assert (settings.train.method, settings.train.extrinsic_weight) == ("none", 1)
    assert not settings.train.counts.random_resets
    assert settings.train.counts.reset_probability is None


def test_any_worlds_and_any_number_of_actors_can_be_imported():
    env = "MiniGrid-MultiRoom-N4-S5-v0,MiniGrid-KeyCorridorS3R3-v0"
    flags = FLAGS | {"env": env, "num_actors": 31, "batch_size": 32, "total_frames": 200_000_000}
    settings = run_settings(PublishedCheckpoint({}, flags, UPDATES), NETWORK)
    assert settings.environments == ("MultiRoom-N4-S5", "KeyCorridorS3R3")
    train = settings.train
    assert (train.worlds, train.batch) == (32, 32)
    assert train.optimizer.decay_frames == 200_000_000


def test_a_policy_for_rooms_walks_about_rooms():
    flags = FLAGS | {"env": "HabitatNav-apartment_0", "no_reward": True}
    stored = PublishedCheckpoint({}, flags, UPDATES)
    replica = HabitatSettings(simulator="habitat_sim", folder="replica")
    settings = run_settings(stored, HABITAT, (), replica)
    assert (settings.stage, settings.habitat) == ("pre-training in Habitat", replica)
    assert settings.environments == ("apartment_0",)
    published, train = HABITAT_PRESETS["paper"].train, settings.train
    assert train.counts == replace(published.counts, reset_probability=0.002)
    assert (train.auxiliary, train.network) == (published.auxiliary, HABITAT)
    assert replace(published.network, channels=4, dense_units=8, lstm_units=6) == HABITAT
