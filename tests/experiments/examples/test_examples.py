"""The examples, where what they need is installed: a few steps each."""

import numpy as np
import pytest


def test_pytorch_trains():
    pytest.importorskip("torch")
    from experiments.examples import torch_actor_critic

    assert np.isfinite(torch_actor_critic.main(updates=2, num_envs=4))


def test_stable_baselines3_trains():
    pytest.importorskip("stable_baselines3")
    from experiments.examples import stable_baselines3_ppo

    agent = stable_baselines3_ppo.main(frames=64 * 16, num_envs=16)
    assert agent.num_timesteps >= 64 * 16
