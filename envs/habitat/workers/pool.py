"""A pool of simulators in worker processes; lost workers are replaced."""

import base64
import math
import mmap
import os
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from envs.habitat.simulator import PANORAMA_SHAPE, VIEW_SHAPE, FloorMap, Pose, SimulatorError
from envs.habitat.workers.process import Hello, Settings, Worker, WorkerLost

MAX_LOSSES = 3  # losses of a worker without a step in between that end the run


class Images(NamedTuple):
    """All agents' images, in shared memory that the next request overwrites."""

    views: np.ndarray  # uint8[N, 64, 64, 3]
    panoramas: np.ndarray  # uint8[N, 4, 64, 64, 3]


class WorkerPool:
    """Simulators of one scene, each in its own process."""

    def __init__(self, settings: Settings, number: int) -> None:
        """Start `number` simulators and wait until all are ready.

        Raises:
            SimulatorError: simulator, scene or memory is missing.
        """
        self.settings = settings
        self.restarts = 0
        view_bytes, panorama_bytes = (
            number * math.prod(shape) for shape in (VIEW_SHAPE, PANORAMA_SHAPE)
        )
        self._memory = _share(view_bytes + panorama_bytes)
        self.hello: Hello  # from the worker started last
        self._losses = [0] * number
        self._workers: list[Worker | None] = [None] * number
        self._finish = weakref.finalize(self, _finish, self._workers, self._memory)
        mapped = np.frombuffer(mmap.mmap(self._memory, 0), np.uint8)
        self.images = Images(
            mapped[:view_bytes].reshape(number, *VIEW_SHAPE),
            mapped[view_bytes : view_bytes + panorama_bytes].reshape(number, *PANORAMA_SHAPE),
        )
        try:
            for loss in self._start(range(number)).values():
                raise SimulatorError(f"the simulator did not start: {loss}")
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        """Return the number of simulators."""
        return len(self._workers)

    def ask(self, requests: Sequence[dict[str, Any] | None]) -> list[dict[str, Any] | None]:
        """Send each worker its request (None: no request), then wait for all answers.

        Returns:
            The answers. None without a request, or if the worker was lost; its replacement's agent
            has no pose yet.

        Raises:
            SimulatorError: a simulator failed, or a worker was lost `MAX_LOSSES` times in a row.
        """
        lost: dict[int, WorkerLost] = {}
        answers: list[dict[str, Any] | None] = [None] * len(requests)
        asked = {index: request for index, request in enumerate(requests) if request is not None}
        for index, request in asked.items():
            with _noting_loss(lost, index):
                self._worker(index).send(request)
        for index in asked.keys() - lost.keys():
            with _noting_loss(lost, index):
                answers[index] = self._worker(index).receive()
        for index, request in asked.items():
            answer = answers[index]
            if answer is not None and "error" in answer:
                raise SimulatorError(answer["error"])
            if answer is not None and request["do"] == "step":
                self._losses[index] = 0
        self._replace(lost)
        return answers

    def floor_map(self, cell: float) -> FloorMap:
        """Return the scene from above, with cells of `cell` metres."""
        request = {"do": "map", "cell": cell}
        answer = None
        while answer is None:  # None: the worker was lost and replaced
            answer = self.ask([request, *[None] * (len(self) - 1)])[0]
        rows, columns = answer["shape"]
        x, z = answer["corner"]
        walkable = np.frombuffer(base64.b64decode(answer["walkable"]), bool)
        picture = np.frombuffer(base64.b64decode(answer["picture"]), np.uint8)
        return FloorMap(
            (x, z),
            answer["cell"],
            walkable.reshape(rows, columns),
            picture.reshape(rows, columns, 3),
        )

    def close(self) -> None:
        """Stop all processes and free their memory, as also happens at exit."""
        self._finish()

    def _start(self, indices: Iterable[int]) -> dict[int, WorkerLost]:
        """Start workers and wait until they are ready; return the lost ones."""
        lost: dict[int, WorkerLost] = {}
        for index in indices:
            self._workers[index] = Worker(self.settings, self._memory, index, len(self))
        for index in indices:
            with _noting_loss(lost, index):
                self.hello = self._worker(index).hello()
        return lost

    def _worker(self, index: int) -> Worker:
        worker = self._workers[index]
        if worker is None:
            raise SimulatorError("the simulators are closed")
        return worker

    def _replace(self, lost: dict[int, WorkerLost]) -> None:
        """Replace lost workers; raise SimulatorError for one lost `MAX_LOSSES` times in a row."""
        while lost:
            for index, loss in lost.items():
                self._worker(index).kill()
                self._workers[index] = None
                self._losses[index] += 1
                if self._losses[index] >= MAX_LOSSES:
                    raise SimulatorError(
                        f"simulator {index + 1} of {len(self)} was lost {MAX_LOSSES} times in a"
                        f" row: {loss}"
                    )
            self.restarts += len(lost)
            lost = self._start(list(lost))


@contextmanager
def _noting_loss(lost: dict[int, WorkerLost], index: int) -> Iterator[None]:
    """Record a WorkerLost instead of raising it, to receive the other answers first."""
    try:
        yield
    except WorkerLost as loss:
        lost[index] = loss


def _share(size: int) -> int:
    """Return a file descriptor of anonymous shared memory, freed with its last process.

    Raises:
        SimulatorError: memory is short.
    """
    memory = -1
    try:
        if hasattr(os, "memfd_create"):
            memory = os.memfd_create("cbet-views")
        else:
            with tempfile.TemporaryFile() as file:
                memory = os.dup(file.fileno())
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(memory, 0, size)
        else:
            os.ftruncate(memory, size)
    except OSError as error:
        if memory >= 0:
            os.close(memory)
        raise SimulatorError(f"no {size:,} bytes of shared memory: {error.strerror}") from error
    return memory


def teleport_request(pose: Pose) -> dict[str, Any]:
    """Return the request that moves an agent to a pose."""
    return {"do": "teleport", "position": pose.position, "heading": pose.heading}


def pose_of(answer: dict[str, Any] | None) -> Pose | None:
    """Return the pose in a worker's answer, None if the worker was lost."""
    if answer is None:
        return None
    x, y, z = answer["position"]
    return Pose((x, y, z), answer["heading"])


def _finish(workers: list[Worker | None], memory: int) -> None:
    """Close the pipes of all workers, then wait for each to end."""
    for worker in workers:
        if worker is not None:
            worker.hang_up()
    for index, worker in enumerate(workers):
        if worker is not None:
            worker.close()
            workers[index] = None
    os.close(memory)
