"""A corridor to watch, and who plays in it."""

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image

from cbet_jax.agent import AgentParams, network_agent, uniform
from cbet_jax.config import CountSettings, NetworkSettings, TrainSettings
from cbet_jax.intrinsic import make_intrinsic
from envs.minigrid import rules
from envs.minigrid.generators.generator import make_generator
from envs.minigrid.level import REACH_GOAL
from envs.minigrid.level_text import from_text
from envs.minigrid.world import gridworld
from envs.types import World
from experiments.watching.playing import Player

MAX_STEPS = 30
CORRIDOR = "WGWGWGWGWG\nWG>>  GGWG\nWGWGWGWGWG"
KEY = jax.random.key(3)  # chance finds the goal in both episodes
TITLE = "a corridor"


def corridor(*, explore: bool) -> World:
    level = from_text(CORRIDOR, task=REACH_GOAL, max_steps=MAX_STEPS)

    def draw_one(key):
        return level, jnp.array(True)

    generator = make_generator(TITLE, 5, 3, MAX_STEPS, REACH_GOAL, draw_one)
    return gridworld([generator], 1, explore=explore)


def player(agent=None, params=None) -> Player:
    """Somebody who draws actions with equal chances, or as told, and forgets no counts."""
    settings = TrainSettings(counts=CountSettings(reset_probability=0.0))
    intrinsic = make_intrinsic(settings, len(rules.ACTIONS))
    agent, params = agent or uniform(len(rules.ACTIONS)), params or AgentParams(())
    return Player("somebody", agent, params, intrinsic, None)


def network_player(preference: float) -> Player:
    """A network with a memory; with a preference of zero its actions are those of chance.

    Args:
        preference: a factor of what it prefers; the larger, the less is left to chance.
    """
    network = NetworkSettings(1, 4, 1, 16, 1, 16)
    agent = network_agent(network, len(rules.ACTIONS), (7, 7, 3))
    params = jax.jit(agent.init)(jax.random.key(6))
    params = jax.tree.map(lambda leaf: 2 * np.asarray(leaf), params)  # so the memory has a say
    policy = params.learnt["params"]["policy"]
    policy |= {"kernel": preference * policy["kernel"], "bias": 0 * policy["bias"]}
    return player(agent, jax.tree.map(jnp.asarray, params))


def read_gif(path) -> list[np.ndarray]:
    """Return every picture of a GIF."""
    with Image.open(path) as gif:
        pictures = []
        for number in range(gif.n_frames):
            gif.seek(number)
            pictures.append(np.array(gif.convert("RGB")))
        return pictures
