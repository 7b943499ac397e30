"""What a pool of simulators answers to the requests of each kind."""

from collections.abc import Sequence

from envs.habitat.simulator import Pose
from envs.habitat.workers.pool import WorkerPool, pose_of, teleport_request


def step(workers: WorkerPool, actions: Sequence[int]) -> list[Pose | None]:
    """Take an action in every simulator. Poses of lost workers are None."""
    return _asked(workers, [{"do": "step", "action": int(action)} for action in actions])


def reset(workers: WorkerPool, seeds: Sequence[int]) -> list[Pose | None]:
    """Move every agent to a random pose."""
    return _asked(workers, [{"do": "reset", "seed": seed} for seed in seeds])


def teleport(workers: WorkerPool, poses: Sequence[Pose | None]) -> list[Pose | None]:
    """Move agents to their poses (None: stay)."""
    return _asked(workers, [None if pose is None else teleport_request(pose) for pose in poses])


def _asked(workers: WorkerPool, requests: Sequence[dict | None]) -> list[Pose | None]:
    return [pose_of(answer) for answer in workers.ask(requests)]
