"""What is kept on the host of the present episodes of many environments, in gymnasium's form."""

import time
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, UInt32

type Infos = dict[str, Any]  # names -> arrays [N]; `_name` says which environments have it


class EpisodeRecords:
    """Returns, lengths, successes and unique interactions of `num_envs` episodes."""

    def __init__(self, num_envs: int) -> None:
        self._return = np.zeros(num_envs)
        self._length = np.zeros(num_envs, np.int64)
        self._success = np.zeros(num_envs, bool)
        self._interactions = np.zeros(num_envs, np.int64)
        self._met: list[set[int]] = [set() for _ in range(num_envs)]  # keys of interactions
        self._began = np.zeros(num_envs)  # seconds

    def begin(self, which: Bool[np.ndarray, " N"]) -> None:
        """Begin the records of some episodes."""
        if not which.any():
            return
        for values in (self._return, self._length, self._success, self._interactions):
            values[which] = 0
        self._began[which] = time.perf_counter()
        for index in np.flatnonzero(which):
            self._met[index].clear()

    def add(
        self,
        acted: Bool[np.ndarray, " N"],
        reward: Float[np.ndarray, " N"],
        success: Bool[np.ndarray, " N"],
        interaction: UInt32[np.ndarray, "N 2"],
    ) -> None:
        """Add a step.

        Args:
            acted: which environments have taken an action.
            reward: of these actions.
            success: whether they fulfilled the task.
            interaction: keys of what they changed, zeros where nothing.
        """
        self._return += reward
        self._length += acted
        self._success |= success
        keys = np.ascontiguousarray(interaction).view(np.uint64)[:, 0]
        for index in np.flatnonzero(keys):
            self._met[index].add(int(keys[index]))
            self._interactions[index] = len(self._met[index])

    def so_far(self) -> Infos:
        """Return success and unique interactions of each episode until now."""
        return {"success": self._success.copy(), "interactions": self._interactions.copy()}

    def of(self, ended: Bool[np.ndarray, " N"]) -> Infos:
        """Return the statistics of episodes that have ended, as `RecordEpisodeStatistics` does."""
        seconds = np.round(time.perf_counter() - self._began, 6)
        episode = {"r": self._return * ended, "l": self._length * ended, "t": seconds * ended}
        return with_masks({"episode": episode}, ended)


def with_masks(infos: Infos, mask: Bool[np.ndarray, " N"]) -> Infos:
    """Add gymnasium's masks, which say which environments each name is true of."""
    return infos | {f"_{name}": mask.copy() for name in infos}
