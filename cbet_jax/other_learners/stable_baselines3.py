"""Vectors of gymnasium, such as `gym_vector`, for Stable-Baselines3, an optional package."""

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from stable_baselines3.common.vec_env import VecEnv

from cbet_jax.other_learners.intrinsic_reward import autoreset_mode


class StableBaselines3Vector(VecEnv):
    """The environments of a vector, as a learner of Stable-Baselines3 takes them.

    Args:
        vector: the environments, which reset in the same step.
        seed: of their first reset, as of `seed()`.

    Raises:
        ValueError: the environments reset otherwise.
    """

    def __init__(self, vector: VectorEnv[Any, Any, Any], seed: int | None = None) -> None:
        mode = autoreset_mode(vector)
        if mode is not AutoresetMode.SAME_STEP:
            raise ValueError(f"environments must reset in the SameStep mode, not {mode}")
        self.vector = vector
        spaces = vector.single_observation_space, vector.single_action_space
        super().__init__(vector.num_envs, *spaces)
        if seed is not None:
            self.seed(seed)

    def reset(self) -> Any:
        """Begin an episode in every environment."""
        seed = self._seeds[0]
        self._reset_seeds()
        return self.vector.reset(seed=seed)[0]

    def step_async(self, actions: np.ndarray) -> None:
        """Keep the actions for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> Any:
        """Take the actions; return views, rewards, ends, and a dictionary per environment."""
        view, reward, terminated, truncated, info = self.vector.step(self._actions)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        success = info.get("final_info", {}).get("success")
        for i in np.flatnonzero(terminated | truncated):
            infos[i]["terminal_observation"] = info["final_obs"][i]
            infos[i]["TimeLimit.truncated"] = bool(truncated[i] and not terminated[i])
            if success is not None:
                infos[i]["is_success"] = bool(success[i])
        return view, reward.astype(np.float32), terminated | truncated, infos

    def close(self) -> None:
        """Close the environments."""
        self.vector.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute of the vector, once per environment."""
        return [getattr(self.vector, attr_name) for _ in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        """Return False for each environment."""
        return [False for _ in self._get_indices(indices)]

    def get_images(self) -> Any:
        """Return a picture of each environment."""
        return self.vector.render()

    def env_method(self, *_: Any, **__: Any) -> Any:
        """Refuse, as `set_attr` does: environments of a batch have nothing of their own."""
        raise NotImplementedError("the environments of a batch have no attributes and no methods")

    set_attr = env_method
