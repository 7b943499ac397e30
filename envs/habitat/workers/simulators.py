"""The host's side of a step: makes simulators follow what the device says, with numpy alone."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from envs.habitat.simulator import FloorMap, Place, SimulatorError
from envs.habitat.workers.pool import Workers, teleport_request
from envs.habitat.workers.process import Settings
from envs.habitat.workers.stopwatch import Stopwatch

_CALLBACKS = logging.getLogger("jax._src.callback")


class Followed(NamedTuple):
    """What became of a step."""

    view: Any  # uint8[N, 64, 64, 3]
    panorama: Any  # uint8[N, 49152]
    position: Any  # float32[N, 3], of what is seen
    heading: Any  # float32[N]
    reached: Any  # float32[N, 3], where the action led, before an episode may have begun anew
    cut: Any  # bool[N], the simulator was lost and has begun a new episode


class Simulators:
    """`number` simulators of one scene, which follow the device's agents."""

    def __init__(self, settings: Settings, number: int, start: Place | None = None) -> None:
        """Starts the simulators.

        Args:
            settings: of the simulators.
            number: how many.
            start: where every episode begins; None: at places that are drawn.

        Raises:
            SimulatorError: they cannot be started, or nobody can stand at the start.
        """
        self.settings = settings
        self.start = start
        self.failure: SimulatorError | None = None  # why the last step could not be played
        self.stopwatch = Stopwatch()
        self.workers = Workers(settings, number)
        self._places: list[Place | None] = [None] * number  # where the simulators' agents are
        if start is not None:
            try:
                self._finish([teleport_request(start)] * number)
            except BaseException:
                self.close()
                raise

    def __len__(self) -> int:
        """Returns how many there are."""
        return len(self.workers)

    @property
    def scene_name(self) -> str:
        """Returns the scene's name, without its folder and its ending."""
        return Path(self.settings.scene).name.partition(".")[0]

    def floor_map(self, cell: float) -> FloorMap:
        """Draws the scene from above, `cell` metres a pixel."""
        return self.workers.floor_map(cell)

    def close(self) -> None:
        """Ends the simulators."""
        self.workers.close()

    def begin(self, position: Any, heading: Any, seeds: Any, ends: Any) -> Followed:
        """Begins an episode in every world; a callback of the device's."""
        del position, heading, ends
        with self._noting_failures():
            self._finish(self._starts(np.asarray(seeds), range(len(self))))
            return self._followed(self._positions(), np.zeros(len(self), bool))

    def play(self, position: Any, heading: Any, seeds: Any, ends: Any, actions: Any) -> Followed:
        """Plays an action in every world; a callback of the device's.

        Args:
            position: float32 [N, 3], where the agents are.
            heading: float32 [N].
            seeds: uint32 [N], of the places where the next episodes begin.
            ends: bool [N], whether the action is an episode's last.
            actions: int32 [N].
        """
        with self._noting_failures(), self.stopwatch.call(len(self)):
            cut = self._catch_up(np.asarray(position), np.asarray(heading))
            chosen = np.asarray(actions).tolist()
            cut |= self._ask([
                None if cut[index] else {"do": "step", "action": action}
                for index, action in enumerate(chosen)
            ])  # fmt: skip
            reached = np.where(cut[:, None], np.asarray(position), self._positions())
            again = np.flatnonzero(np.asarray(ends) | cut).tolist()
            if again:
                self._finish(self._starts(np.asarray(seeds), again))
            return self._followed(reached.astype(np.float32), cut)

    def _catch_up(self, position: np.ndarray, heading: np.ndarray) -> np.ndarray:
        """Puts the agents where the device says they are; returns which were lost by it.

        They are there already, unless the run was resumed or goes on from an earlier moment.
        """
        told = [
            Place((x, y, z), angle)
            for (x, y, z), angle in zip(position.tolist(), heading.tolist(), strict=True)
        ]
        return self._ask([
            None if there == place else teleport_request(place)
            for there, place in zip(self._places, told, strict=True)
        ])  # fmt: skip

    def _starts(self, seeds: np.ndarray, indices: Sequence[int]) -> list[dict[str, Any] | None]:
        """Returns the requests that begin episodes in some worlds."""
        requests: list[dict[str, Any] | None] = [None] * len(self)
        for index in indices:
            drawn = {"do": "reset", "seed": int(seeds[index])}
            requests[index] = drawn if self.start is None else teleport_request(self.start)
        return requests

    def _finish(self, requests: Sequence[dict[str, Any] | None]) -> None:
        """Asks, and asks again those whose simulators were lost."""
        while any(requests):
            lost = self._ask(requests)
            requests = [request if lost[index] else None for index, request in enumerate(requests)]

    def _ask(self, requests: Sequence[dict[str, Any] | None]) -> np.ndarray:
        """Asks, and returns which simulators were lost: their agents are nowhere."""
        lost = np.zeros(len(self), bool)
        if not any(requests):
            return lost
        with self.stopwatch.wait():
            answers = self.workers.ask(requests)
        for index, answer in enumerate(answers):
            if answer is not None:
                x, y, z = answer["position"]
                self._places[index] = Place((x, y, z), answer["heading"])
            elif requests[index] is not None:
                self._places[index] = None
                lost[index] = True
        return lost

    def _positions(self) -> np.ndarray:
        nowhere = Place((0.0, 0.0, 0.0), 0.0)
        return np.array([(place or nowhere).position for place in self._places], np.float32)

    def _followed(self, reached: np.ndarray, cut: np.ndarray) -> Followed:
        images = self.workers.images
        heading = [place.heading for place in self._places if place is not None]
        return Followed(
            view=images.views.copy(),
            panorama=images.panoramas.reshape(len(self), -1).copy(),
            position=self._positions(),
            heading=np.array(heading, np.float32),
            reached=reached,
            cut=cut,
        )

    @contextmanager
    def _noting_failures(self) -> Iterator[None]:
        """Remembers what went wrong: JAX passes on no more than its text."""
        try:
            yield
        except SimulatorError as error:
            self.failure = error
            raise


@contextmanager
def plain_failures(simulators: Simulators) -> Iterator[None]:
    """Raises what a simulator failed with, in the place of the error that JAX makes of it.

    Raises:
        SimulatorError: the simulators cannot go on; the message is one line.
    """

    def is_news(record: logging.LogRecord) -> bool:
        return simulators.failure is None  # else JAX logs what is about to be raised

    _CALLBACKS.addFilter(is_news)
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if simulators.failure is None:
            raise
        raise simulators.failure from error
    finally:
        _CALLBACKS.removeFilter(is_news)
