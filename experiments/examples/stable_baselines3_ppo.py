"""PPO of Stable-Baselines3 with an intrinsic reward: `... stable_baselines3_ppo [FRAMES [WEIGHT]]`.

It needs the extra `stable-baselines3`. C-BET takes one line, `IntrinsicReward`; with a weight of 0,
PPO learns only from the task.

In MultiRoom-N4-S5, after 500,000 frames, 99.8 and 99.9 % of the last thousand episodes of seeds 0
and 1 end in success; without C-BET, 0.0 % of both seeds' episodes.
"""

import sys
from typing import Any

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

import envs.minigrid
from cbet_jax import IntrinsicReward
from cbet_jax.other_learners.stable_baselines3 import StableBaselines3Vector

WORLD, ENVS, FRAMES, WEIGHT = "MultiRoom-N4-S5", 128, 500_000, 0.005
SIZES = 11, 6, 4  # numbers of types, colours and states


class OneHot(BaseFeaturesExtractor):
    """Sees types, colours and states of cells as one-hot numbers."""

    def __init__(self, space: Any) -> None:
        super().__init__(space, 128)
        self.dense = torch.nn.Linear(49 * sum(SIZES), 128)

    def forward(self, view: torch.Tensor) -> torch.Tensor:
        """Return 128 features of views `[N, 3, 7, 7]`."""
        kinds = zip(view.long().unbind(1), SIZES, strict=True)
        hot = [torch.nn.functional.one_hot(*kind).flatten(1) for kind in kinds]
        return torch.relu(self.dense(torch.cat(hot, 1).float()))


def main(
    frames: float = FRAMES, weight: float = WEIGHT, seed: float = 0, *, num_envs: int = ENVS
) -> float:
    """Train; return the share of the last thousand episodes that ended in success."""
    vector: Any = envs.minigrid.gym_vector(WORLD, num_envs, autoreset_mode="SameStep")
    if weight:
        vector = IntrinsicReward(vector, "cbet", coefficient=weight, seed=int(seed))
    network = {
        "features_extractor_class": OneHot,
        "normalize_images": False,
        "net_arch": [64],
        "activation_fn": torch.nn.ReLU,
    }
    agent = PPO(
        "MlpPolicy",
        StableBaselines3Vector(vector, int(seed)),
        n_steps=64,
        batch_size=min(1024, 64 * num_envs),
        n_epochs=4,
        learning_rate=5e-4,
        ent_coef=0.01,
        policy_kwargs=network,
        stats_window_size=1000,
        seed=int(seed),
        device="cpu",
        verbose=1,
    )
    agent.learn(int(frames), log_interval=10)
    return float(np.mean(agent.ep_success_buffer or [0.0]))


if __name__ == "__main__":
    print(f"success: {main(*map(float, sys.argv[1:])):.1%}")
