"""The examples, where what they need is installed: a few steps each."""

import pytest

pytestmark = pytest.mark.slow


def test_stable_baselines3_trains(monkeypatch, capsys):
    pytest.importorskip("stable_baselines3")
    from experiments.examples import stable_baselines3_ppo

    monkeypatch.setattr(stable_baselines3_ppo, "WORLD", "LavaGapS5")
    assert 0 <= stable_baselines3_ppo.main(frames=12 * 64 * 8, weight=0.05, num_envs=8) <= 1
    assert "success_rate" in capsys.readouterr().out


def test_ppo_trains_with_and_without_an_intrinsic_reward(monkeypatch, capsys):
    from experiments.examples import jax_ppo

    monkeypatch.setattr(jax_ppo, "WORLD", "LavaGapS5")  # random play solves some of its levels
    monkeypatch.setattr(jax_ppo, "ITERATIONS_A_LINE", 1)
    curves = [jax_ppo.main(frames=3 * 8 * 64, weight=weight, num_envs=8) for weight in (0.05, 0.0)]
    assert {len(curve) for curve in curves} == {3}
    assert len({curve[0] for curve in curves}) == 1  # none has learnt yet
    assert all(0 <= share <= 1 for curve in curves for share in curve)
    assert "of episodes solved" in capsys.readouterr().out
