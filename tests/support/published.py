"""What the published code saves: tensors of its networks, and a checkpoint's content."""

from dataclasses import replace

import numpy as np

from cbet_jax.config import NetworkSettings
from cbet_jax.networks.published_weights import shapes

NETWORK = NetworkSettings(channels=4, dense_units=8, lstm_units=6)
HABITAT = replace(NETWORK, conv_layers=5, brightest=255)
ACTIONS, GRIDWORLD = 7, (7, 7, 3)
UPDATES = 25
FRAMES = UPDATES * 2 * 10
FLAGS = {
    "model": "cbet",
    "env": "MiniGrid-Unlock-v0",
    "no_reward": True,
    "checkpoint": None,
    "total_frames": 50_000_000,
    "num_actors": 2,
    "batch_size": 2,
    "unroll_length": 10,
    "learning_rate": 0.0002,
    "alpha": 0.98,
    "epsilon": 1e-4,
    "max_grad_norm": 30.0,
    "discounting": 0.98,
    "baseline_cost": 0.25,
    "entropy_cost": 0.001,
    "intrinsic_reward_coef": 0.005,
    "count_reset_prob": 0.002,
    "forward_loss_coef": 10,
    "xpid": None,
}


def drawn(network=NETWORK, actions=ACTIONS, view=GRIDWORLD) -> dict[str, np.ndarray]:
    """Return tensors of the right names and shapes."""
    random = np.random.default_rng(0)
    wanted = shapes(network, actions, view)
    return {name: random.normal(0, 0.6, shape) for name, shape in wanted.items()}


def content(tensors=None, **flags):
    """Return what a checkpoint holds, as numbers of numpy's."""
    return {
        "actor_model_state_dict": drawn() if tensors is None else tensors,
        "learner_model_optimizer_state_dict": {},
        "scheduler_state_dict": {"last_epoch": UPDATES},
        "flags": FLAGS | flags,
    }
