"""Stable-Baselines3's PPO in our worlds: `python -m experiments.examples.stable_baselines3_ppo`.

It needs the extras `gymnasium` and `stable-baselines3`. The class adapts `gym_vector` to
Stable-Baselines3's own interface for vector environments, which resets in the same step.
"""

from typing import Any

import numpy as np
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecEnv

import envs.minigrid

WORLD, ENVS, FRAMES = "DoorKey-5x5", 64, 1_000_000


class Gridworlds(VecEnv):
    """`gym_vector` with the interface of Stable-Baselines3."""

    def __init__(self, name: str, num_envs: int, seed: int = 0) -> None:
        vector = envs.minigrid.gym_vector(name, num_envs, autoreset_mode="SameStep")
        self.vector = RecordEpisodeStatistics(vector)
        self.first_seed: int | None = seed  # for the first reset only
        spaces = self.vector.single_observation_space, self.vector.single_action_space
        super().__init__(num_envs, *spaces)

    def reset(self) -> np.ndarray:
        """Begin an episode in every environment."""
        view, _ = self.vector.reset(seed=self.first_seed)
        self.first_seed = None
        return view

    def step_async(self, actions: np.ndarray) -> None:
        """Keep the actions for `step_wait`."""
        self.actions = actions

    def step_wait(self) -> Any:
        """Take the actions; return views, rewards, ends, and a dictionary per environment."""
        view, reward, terminated, truncated, info = self.vector.step(self.actions)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(terminated | truncated):
            infos[i] = {name: info["final_info"][name][i] for name in ("success", "interactions")}
            infos[i]["episode"] = {name: info["episode"][name][i] for name in "rlt"}
            infos[i]["terminal_observation"] = info["final_obs"][i]
            infos[i]["TimeLimit.truncated"] = bool(truncated[i])
        return view, reward.astype(np.float32), terminated | truncated, infos

    def close(self) -> None:
        """Close the environments."""
        self.vector.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute of all environments, once per environment."""
        return [getattr(self.vector, attr_name, None) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Refuse: a batch's environments have no attributes of their own."""
        raise NotImplementedError("environments of a batch have no attributes of their own")

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
        """Refuse: a batch's environments have no methods of their own."""
        raise NotImplementedError("environments of a batch have no methods of their own")

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        """Return False for each environment; episodes are recorded without a `Monitor`."""
        return [False for _ in self._get_indices(indices)]


def main(frames: int = FRAMES, num_envs: int = ENVS) -> PPO:
    """Train, and return the agent."""
    agent = PPO("MlpPolicy", Gridworlds(WORLD, num_envs), n_steps=64, batch_size=1024, verbose=1)
    return agent.learn(frames)


if __name__ == "__main__":
    main()
