"""Vectors of gymnasium, as Stable-Baselines3 takes them."""

import numpy as np
import pytest

import envs.minigrid

pytest.importorskip("stable_baselines3")

NAME, ENVS, STEPS = "LavaGapS5", 64, 100


def test_steps_are_those_of_the_vector():
    from cbet_jax.other_learners.stable_baselines3 import StableBaselines3Vector

    ours, plain = (
        envs.minigrid.gym_vector(NAME, ENVS, autoreset_mode="SameStep") for _ in range(2)
    )
    theirs = StableBaselines3Vector(ours, seed=3)
    view, _ = plain.reset(seed=3)
    np.testing.assert_array_equal(theirs.reset(), view)
    solved = ended = 0
    for actions in np.random.default_rng(0).integers(7, size=(STEPS, ENVS)):
        view, reward, terminated, truncated, info = plain.step(actions)
        seen, gained, done, infos = theirs.step(actions)
        np.testing.assert_array_equal(seen, view)
        np.testing.assert_allclose(gained, reward, rtol=1e-6)
        np.testing.assert_array_equal(done, terminated | truncated)
        for env, each in enumerate(infos):
            if not done[env]:
                assert each == {}
                continue
            np.testing.assert_array_equal(each["terminal_observation"], info["final_obs"][env])
            assert each["TimeLimit.truncated"] == (truncated[env] and not terminated[env])
            assert each["is_success"] == info["final_info"]["success"][env]
            ended, solved = ended + 1, solved + each["is_success"]
    assert ended > solved > 0


def test_resets_must_be_in_the_same_step():
    from cbet_jax.other_learners.stable_baselines3 import StableBaselines3Vector

    with pytest.raises(ValueError, match="SameStep"):
        StableBaselines3Vector(envs.minigrid.gym_vector(NAME, ENVS))


def test_a_seed_counts_for_one_reset():
    from cbet_jax.other_learners.stable_baselines3 import StableBaselines3Vector

    options = {"autoreset_mode": "SameStep", "render_mode": "rgb_array"}
    made = [StableBaselines3Vector(envs.minigrid.gym_vector(NAME, 2, **options)) for _ in range(2)]
    for one in made:
        one.seed(5)
    views = [[one.reset() for _ in range(2)] for one in made]
    np.testing.assert_array_equal(*views)
    assert not np.array_equal(*views[0])
    assert [picture.shape for picture in made[0].get_images()] == [(160, 160, 3)] * 2
    assert not made[0].has_attr("nonsense")
    for refused in (made[0].env_method, made[0].set_attr):
        with pytest.raises(NotImplementedError, match="no methods"):
            refused("nonsense", 1)
