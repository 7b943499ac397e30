"""Many simulators side by side, asked all at once; those that are lost are started again."""

import base64
import mmap
import os
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from envs.habitat.simulator import (
    PANORAMA_SHAPE,
    VIEW_SHAPE,
    FloorMap,
    Place,
    Position,
    SimulatorError,
)
from envs.habitat.workers.process import Hello, Settings, Worker, WorkerLost
from envs.habitat.workers.shared_memory import share

MOST_LOSSES = 3  # of one worker, one after the other, without a step between them


class Images(NamedTuple):
    """What all agents see: arrays in shared memory, which the next request overwrites."""

    views: np.ndarray  # uint8[N, 64, 64, 3]
    panoramas: np.ndarray  # uint8[N, 4, 64, 64, 3]


class Workers:
    """`number` simulators of one scene."""

    def __init__(self, settings: Settings, number: int) -> None:
        """Starts the simulators and waits until all of them stand.

        Raises:
            SimulatorError: there is no such simulator or scene, or no memory for the images.
        """
        self.settings = settings
        self.restarts = 0
        view_bytes, panorama_bytes = (
            number * int(np.prod(s)) for s in (VIEW_SHAPE, PANORAMA_SHAPE)
        )
        self._memory = share(view_bytes + panorama_bytes)
        self.hello: Hello  # of the worker that was started last
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
        """Returns how many there are."""
        return len(self._workers)

    def ask(self, requests: Sequence[dict[str, Any] | None]) -> list[dict[str, Any] | None]:
        """Sends each worker a request (None: nothing), then waits for all the answers.

        Returns:
            An answer for each request; None for no request, and where the worker was lost: then
            a new one stands in its place, its agent nowhere yet.

        Raises:
            SimulatorError: a simulator cannot do what it was asked for, or a worker was lost
                `MOST_LOSSES` times in a row.
        """
        lost: dict[int, WorkerLost] = {}
        answers: list[dict[str, Any] | None] = [None] * len(requests)
        asked = {index: request for index, request in enumerate(requests) if request is not None}
        for index, request in asked.items():
            with _noting(lost, index):
                self._worker(index).send(request)
        for index in asked.keys() - lost.keys():
            with _noting(lost, index):
                answers[index] = self._worker(index).receive()
        for index, request in asked.items():
            answer = answers[index]
            if answer is not None and "error" in answer:
                raise SimulatorError(answer["error"])
            if answer is not None and request["do"] == "step":
                self._losses[index] = 0
        self._replace(lost)
        return answers

    def step(self, actions: Sequence[int]) -> list[Place | None]:
        """Plays an action in every scene; None where the worker was lost."""
        requests = [{"do": "step", "action": int(action)} for action in actions]
        return [_place(answer) for answer in self.ask(requests)]

    def reset(self, seeds: Sequence[int]) -> list[Place | None]:
        """Puts every agent to a start drawn from its seed; None where the worker was lost."""
        requests = [{"do": "reset", "seed": int(seed)} for seed in seeds]
        return [_place(answer) for answer in self.ask(requests)]

    def teleport(self, places: Sequence[Place | None]) -> list[Place | None]:
        """Puts agents to given places (None: leave it); None where the worker was lost."""
        requests = [None if place is None else teleport_request(place) for place in places]
        return [_place(answer) for answer in self.ask(requests)]

    def positions(self, seed: int, count: int) -> list[Position]:
        """Returns positions drawn from the scene's walkable floor."""
        answer = self._ask_first({"do": "positions", "seed": seed, "count": count})
        return [(x, y, z) for x, y, z in answer["positions"]]

    def floor_map(self, cell: float) -> FloorMap:
        """Draws the scene from above, `cell` metres a pixel."""
        answer = self._ask_first({"do": "map", "cell": cell})
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
        """Ends all processes and frees their memory. It is done at exit, too."""
        self._finish()

    def _ask_first(self, request: dict[str, Any]) -> dict[str, Any]:
        """Asks one worker, again if it is lost."""
        while True:
            answer = self.ask([request, *[None] * (len(self) - 1)])[0]
            if answer is not None:
                return answer

    def _start(self, indices: Iterable[int]) -> dict[int, WorkerLost]:
        """Starts workers and waits until they stand; returns those that were lost at once."""
        lost: dict[int, WorkerLost] = {}
        for index in indices:
            self._workers[index] = Worker(self.settings, self._memory, index, len(self))
        for index in indices:
            with _noting(lost, index):
                self.hello = self._worker(index).hello()
        return lost

    def _worker(self, index: int) -> Worker:
        worker = self._workers[index]
        if worker is None:
            raise SimulatorError("the simulators are closed")
        return worker

    def _replace(self, lost: dict[int, WorkerLost]) -> None:
        """Starts new workers in the places of lost ones.

        Raises:
            SimulatorError: one was lost too often.
        """
        while lost:
            for index, loss in lost.items():
                self._worker(index).kill()
                self._workers[index] = None
                self._losses[index] += 1
                if self._losses[index] >= MOST_LOSSES:
                    raise SimulatorError(
                        f"simulator {index + 1} of {len(self)} was lost {MOST_LOSSES} times in a"
                        f" row: {loss}"
                    )
            self.restarts += len(lost)
            lost = self._start(list(lost))


@contextmanager
def _noting(lost: dict[int, WorkerLost], index: int) -> Iterator[None]:
    """Notes the loss of a worker, so that the others are heard first."""
    try:
        yield
    except WorkerLost as loss:
        lost[index] = loss


def teleport_request(place: Place) -> dict[str, Any]:
    """Returns the request that puts an agent to a place."""
    return {"do": "teleport", "position": place.position, "heading": place.heading}


def _place(answer: dict[str, Any] | None) -> Place | None:
    if answer is None:
        return None
    x, y, z = answer["position"]
    return Place((x, y, z), answer["heading"])


def _finish(workers: list[Worker | None], memory: int) -> None:
    """Ends all workers: they are told at once, and then waited for."""
    for worker in workers:
        if worker is not None:
            worker.hang_up()
    for index, worker in enumerate(workers):
        if worker is not None:
            worker.close()
            workers[index] = None
    os.close(memory)
