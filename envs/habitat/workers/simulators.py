"""The host side of a step: simulators that follow the device's state."""

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import jax
import numpy as np

from envs.habitat.scenes import scene_name
from envs.habitat.simulator import FloorMap, Pose, SimulatorError
from envs.habitat.workers.pool import WorkerPool, pose_of, teleport_request
from envs.habitat.workers.process import Settings

_CALLBACKS = logging.getLogger("jax._src.callback")


class HostStep(NamedTuple):
    """The result of one step of all simulators, returned to the device."""

    view: Any  # uint8[N, 64, 64, 3]
    panorama: Any  # uint8[N, 49152]
    position: Any  # float32[N, 3], the agents' current positions
    heading: Any  # float32[N]
    reached: Any  # float32[N, 3], positions after the action, before resets
    cut: Any  # bool[N], simulators lost, whose replacement started a new episode
    final_view: Any = None  # uint8[N, 64, 64, 3], views after the action, before resets


class Played(NamedTuple):
    """Steps played, and their time."""

    steps: int = 0  # sum over simulators
    seconds: float = 0.0  # from the start of the first step to the end of the last
    simulating: float = 0.0  # seconds of waiting for the simulators


class Simulators:
    """Simulators of one scene that follow the agents on the device."""

    def __init__(self, settings: Settings, number: int) -> None:
        """Start the simulators.

        Args:
            settings: what to start.
            number: how many simulators to start.

        Raises:
            SimulatorError: the simulators cannot be started.
        """
        self.settings = settings
        self.failure: SimulatorError | None = None  # why the last step failed
        self.closed = False
        self.played = Played()
        self._began = self._waited = 0.0  # clock at the first step; seconds waited so far
        self.workers = WorkerPool(settings, number)
        self._poses: list[Pose | None] = [None] * number  # the agents' poses in the simulators

    def __len__(self) -> int:
        """Return the number of simulators."""
        return len(self.workers)

    @property
    def scene_name(self) -> str:
        """Return the name of the scene, without folder and extension."""
        return scene_name(self.settings.scene)

    def floor_map(self, cell: float) -> FloorMap:
        """Return the scene from above, with cells of `cell` metres."""
        return self.workers.floor_map(cell)

    def close(self) -> None:
        """Stop the simulators."""
        self.closed = True
        self.workers.close()

    def begin(self, seeds: Any) -> HostStep:
        """Start an episode in every world, at starts drawn from `seeds`, uint32 [N]."""
        with self._noting_failures():
            self._ask_until_answered(self._starts(np.asarray(seeds), range(len(self))))
            return self._host_step(self._positions(), np.zeros(len(self), bool))

    def step(
        self, position: Any, heading: Any, seeds: Any, ends: Any, actions: Any, final: bool = False
    ) -> HostStep:
        """Take an action in every world.

        Args:
            position: float32 [N, 3], the agents' positions.
            heading: float32 [N], degrees.
            seeds: uint32 [N], seeds of the next episodes' starts.
            ends: bool [N], whether the action is the last of its episode.
            actions: int32 [N].
            final: whether to return final views (of a lost simulator, its last one).
        """
        with self._noting_failures(), self._timing():
            cut = self._catch_up(np.asarray(position), np.asarray(heading))
            cut |= self._ask([
                None if cut[index] else {"do": "step", "action": action}
                for index, action in enumerate(np.asarray(actions).tolist())
            ])  # fmt: skip
            reached = np.where(cut[:, None], np.asarray(position), self._positions())
            views = self.workers.images.views.copy() if final else None
            ended = np.flatnonzero(np.asarray(ends) | cut).tolist()
            if ended:
                self._ask_until_answered(self._starts(np.asarray(seeds), ended))
            return self._host_step(reached.astype(np.float32), cut)._replace(final_view=views)

    def _catch_up(self, position: np.ndarray, heading: np.ndarray) -> np.ndarray:
        """Teleport agents to their poses on the device; return the mask of lost simulators.

        Poses differ only if the run was resumed or restarted from an earlier state.
        """
        wanted = [
            Pose((x, y, z), angle)
            for (x, y, z), angle in zip(position.tolist(), heading.tolist(), strict=True)
        ]
        return self._ask([
            None if pose == current else teleport_request(pose)
            for current, pose in zip(self._poses, wanted, strict=True)
        ])  # fmt: skip

    def _starts(self, seeds: np.ndarray, indices: Sequence[int]) -> list[dict[str, Any] | None]:
        """Return the requests that start episodes in the worlds of `indices`."""
        return [
            {"do": "reset", "seed": seed} if index in indices else None
            for index, seed in enumerate(seeds.tolist())
        ]

    def _ask_until_answered(self, requests: Sequence[dict[str, Any] | None]) -> None:
        """Send requests, and repeat them to replacements of lost simulators."""
        while any(requests):
            lost = self._ask(requests)
            requests = [request if lost[index] else None for index, request in enumerate(requests)]

    def _ask(self, requests: Sequence[dict[str, Any] | None]) -> np.ndarray:
        """Send requests; return the mask of lost simulators, whose poses become None."""
        lost = np.zeros(len(self), bool)
        if not any(requests):
            return lost
        began = time.perf_counter()
        answers = self.workers.ask(requests)
        self._waited += time.perf_counter() - began
        for index, answer in enumerate(answers):
            if requests[index] is not None:
                self._poses[index] = pose_of(answer)
                lost[index] = answer is None
        return lost

    def _positions(self) -> np.ndarray:
        unknown = Pose((0.0, 0.0, 0.0), 0.0)
        return np.array([(pose or unknown).position for pose in self._poses], np.float32)

    def _host_step(self, reached: np.ndarray, cut: np.ndarray) -> HostStep:
        images = self.workers.images
        heading = [pose.heading for pose in self._poses if pose is not None]
        return HostStep(
            view=images.views.copy(),
            panorama=images.panoramas.reshape(len(self), -1).copy(),
            position=self._positions(),
            heading=np.array(heading, np.float32),
            reached=reached,
            cut=cut,
        )

    @contextmanager
    def _timing(self) -> Iterator[None]:
        """Add a step of every simulator to `played`."""
        self._began = self._began or time.perf_counter()
        waited = self._waited
        yield
        steps, _, simulating = self.played
        seconds = time.perf_counter() - self._began
        self.played = Played(steps + len(self), seconds, simulating + self._waited - waited)

    @contextmanager
    def _noting_failures(self) -> Iterator[None]:
        """Keep the error in `failure`, because JAX passes on only its text."""
        try:
            yield
        except SimulatorError as error:
            self.failure = error
            raise


@contextmanager
def simulator_errors(simulators: Simulators) -> Iterator[None]:
    """Raise a simulator's own error instead of JAX's.

    Raises:
        SimulatorError: the simulators failed; the message is one line.
    """

    def keep(record: logging.LogRecord) -> bool:
        # Silences JAX's log of the error raised below, and of an abandoned step.
        return simulators.failure is None and not simulators.closed

    _CALLBACKS.addFilter(keep)
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if simulators.failure is None:
            raise
        raise simulators.failure from error
    finally:
        _CALLBACKS.removeFilter(keep)
