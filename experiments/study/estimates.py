"""Numbers of the report from the table of results: means over worlds, setups and seeds."""

from collections.abc import Iterable, Sequence
from copy import copy
from typing import NamedTuple

import numpy as np

from cbet_jax.analysis import intervals
from cbet_jax.analysis.intervals import Estimate
from cbet_jax.analysis.learning_curves import Curve
from envs.minigrid.generators.catalogue import TRANSFER as TEN_WORLDS
from envs.minigrid.rules import ACTIONS
from experiments.study.plan import EVALUATION, PRETRAIN, TABULA_RASA, TRANSFER
from experiments.study.results import ENDED, STUDY, Result
from experiments.study.variants import SETUPS

SHARES = tuple(f"share_of_{action}" for action in ACTIONS)
ENTROPY = "action_entropy"
INTERACTIONS, SUCCESS = "unique_interactions", "success_rate"
RETURN = "extrinsic_return"
BOUNDED = (SUCCESS, ENTROPY, RETURN, "success", *SHARES)  # which cannot leave 0..1


class Measured(NamedTuple):
    """A mean over worlds, setups and seeds."""

    mean: Estimate  # its interval from the spread of the seeds
    middle: Estimate  # the interquartile mean
    seeds: int
    frames: tuple[int, ...]  # of pre-training, for each seed: in each setup


Point = dict[int, float]  # seed -> value


class Findings:
    """A table of results, by what each number is."""

    def __init__(self, results: Iterable[Result], compared: Sequence[str] = ()) -> None:
        """Sort the results.

        Args:
            results: all of them.
            compared: methods that are compared with each other, after equal frames.
        """
        self._compared = compared
        self._points: dict[tuple[str, ...], dict[int, Point]] = {}  # -> frames -> seed -> value
        self._actors: dict[tuple[str, str], int] = {}
        self._evaluated: dict[tuple[str, str], set[int]] = {}  # setup, method -> frames
        #: stage, setup, method, environment -> frames
        self.diverged: dict[tuple[str, str, str, str], int] = {}
        self.preset = ""
        self.asked: dict[str, float] = {}  # of the study's settings
        for row in results:
            if row.stage == STUDY:
                self.preset, self.asked[row.metric] = row.method, row.value
            key = row.stage, row.setup, row.method, row.environment, row.metric
            self._points.setdefault(key, {}).setdefault(row.frames, {})[row.seed] = row.value
            self._actors[row.setup, row.method] = row.actors
            if row.metric == ENDED:
                self.diverged[key[:4]] = row.frames
            if row.stage == EVALUATION:
                self._evaluated.setdefault((row.setup, row.method), set()).add(row.frames)

    def actors(self, setup: str, method: str) -> int:
        """Return how many actors shared the frames."""
        return self._actors.get((setup, method), 0)

    def has_diverged(self, setups: Sequence[str], method: str) -> bool:
        """Return whether pre-training did in any of these setups."""
        ended = {key[1:3] for key in self.diverged if key[0] == PRETRAIN}
        return any((setup, method) in ended for setup in setups)

    def names(self, stage: str, field: int) -> list[str]:
        """Return the values of one field of the keys: 1 setup, 2 method, 3 environment."""
        return list(dict.fromkeys(key[field] for key in self._points if key[0] == stage))

    def tasks(self) -> list[str]:
        """Return the tasks that were learnt, those of the paper first, in its order."""
        learnt = {*self.names(TRANSFER, 3), *self.names(TABULA_RASA, 3)}
        own = [task for task in TEN_WORLDS if task in learnt]
        return own + sorted(learnt.difference(own))

    def setups(self) -> list[str]:
        """Return the setups whose pre-trained policies were evaluated."""
        return [setup for setup in SETUPS if setup in self.names(EVALUATION, 1)]

    def evaluated_at(self, setup: str, method: str) -> list[int]:
        """Return the frames after which a pre-trained policy was evaluated."""
        return sorted(self._evaluated.get((setup, method), ()))

    def seeds(self, setup: str, method: str, frames: int) -> list[int]:
        """Return the seeds whose policies were evaluated after some frames."""
        points = (at for key, at in self._points.items() if key[:3] == (EVALUATION, setup, method))
        return sorted({seed for at in points for seed in at.get(frames, ())})

    def comparing(self, methods: Sequence[str]) -> "Findings":
        """Return the same results, with these methods compared."""
        other = copy(self)
        other._compared = methods
        return other

    def nearest(self, setup: str, method: str, frames: int) -> int | None:
        """Return the frames of the evaluation that is nearest to some frames; None: no such."""
        return min(self.evaluated_at(setup, method), key=lambda at: abs(at - frames), default=None)

    def compared_at(self, setups: Sequence[str], method: str) -> tuple[int, ...]:
        """Return the frames, in each setup, after which pre-trained policies are compared.

        They are the most that are common to all setups and to all compared methods that were
        evaluated there. Where there are none, each setup has the most that its methods have in
        common; and where there are none of these either, the method's latest evaluation: then
        methods are compared after unequal frames.
        """
        common = [self._common(setup, method) for setup in setups]
        everywhere = set.intersection(*common)
        if everywhere:
            return (max(everywhere),) * len(setups)
        return tuple(
            max(here or self.evaluated_at(setup, method), default=0)
            for setup, here in zip(setups, common, strict=True)
        )

    def _common(self, setup: str, method: str) -> set[int]:
        """Return the frames after which a method and all that it is compared with were played."""
        others = [self.evaluated_at(setup, other) for other in self._compared]
        own = set(self.evaluated_at(setup, method))
        return own.intersection(*(frames for frames in others if frames))

    def last(self, key: tuple[str, ...]) -> Point:
        """Return each seed's last point of a curve: seed -> value."""
        last: Point = {}
        for _, point in sorted(self._points.get(key, {}).items()):
            last |= point
        return last

    def scores(
        self,
        setups: Sequence[str],
        method: str,
        metric: str,
        worlds: Sequence[str],
        frames: int | None = None,
    ) -> np.ndarray | None:
        """Return what each seed reached in each setup and world; None where one is missing.

        Args:
            setups: that were pre-trained in.
            method: which of them.
            metric: of an evaluation.
            worlds: that were played.
            frames: of the policies (None: `compared_at`).

        Returns:
            float[seeds, setups x worlds].
        """
        columns = []
        for setup, at in zip(setups, self._frames(setups, method, frames), strict=True):
            for world in worlds:
                key = EVALUATION, setup, method, world, metric
                columns.append(self._points.get(key, {}).get(at, {}))
        seeds = sorted(set.intersection(*(set(column) for column in columns)))
        if not seeds:
            return None
        return np.array([[column[seed] for column in columns] for seed in seeds])

    def measure(
        self,
        setups: Sequence[str],
        method: str,
        metric: str,
        worlds: Sequence[str],
        frames: int | None = None,
    ) -> Measured | None:
        """Return a mean with its intervals, None where a part of it was not run."""
        if metric in (*SHARES, ENTROPY):
            return self._measure_actions(setups, method, metric, worlds, frames)
        scores = self.scores(setups, method, metric, worlds, frames)
        if scores is None:
            return None
        at = self._frames(setups, method, frames)
        middle, mean = intervals.interquartile_mean(scores), intervals.mean(scores.mean(axis=1))
        return Measured(within(metric, mean), middle, len(scores), at)

    def _measure_actions(
        self,
        setups: Sequence[str],
        method: str,
        metric: str,
        worlds: Sequence[str],
        frames: int | None,
    ) -> Measured | None:
        """Return a share of all actions of all worlds together, or those shares' entropy."""
        lengths = self.scores(setups, method, "episode_length", worlds, frames)
        shares = [self.scores(setups, method, name, worlds, frames) for name in SHARES]
        if lengths is None or any(share is None for share in shares):
            return None
        pooled = (np.array(shares) * lengths).sum(axis=2) / lengths.sum(axis=1)  # [actions, seeds]
        if metric == ENTROPY:
            values = np.array([intervals.normalized_entropy(column) for column in pooled.T])
        else:
            values = pooled[SHARES.index(metric)]
        mean, middle = intervals.mean(values), intervals.interquartile_mean(values[:, None])
        at = self._frames(setups, method, frames)
        return Measured(within(metric, mean), middle, len(values), at)

    def _frames(self, setups: Sequence[str], method: str, frames: int | None) -> tuple[int, ...]:
        return self.compared_at(setups, method) if frames is None else (frames,) * len(setups)

    def curve(self, key: tuple[str, ...]) -> Curve | None:
        """Return the mean of a curve over the seeds, and its interval, where all have values.

        Seeds with points at other frames are interpolated.

        Args:
            key: stage, setup, method, environment, metric.
        """
        points = self._points.get(key)
        if not points:
            return None
        seeds: dict[int, list[tuple[int, float]]] = {}  # -> frames and values
        for at, point in sorted(points.items()):
            for seed, value in point.items():
                seeds.setdefault(seed, []).append((at, value))
        lines = [np.array(line).T for line in seeds.values()]
        first, last = max(at[0] for at, _ in lines), min(at[-1] for at, _ in lines)
        grids = [at[(first <= at) & (at <= last)] for at, _ in lines]
        frames = min(grids, key=len)
        if not len(frames):
            return None
        values = np.array([np.interp(frames, *line) for line in lines])
        found = [within(key[-1], intervals.mean(column)) for column in values.T]
        return Curve(frames.astype(int), *np.array(found).T)


def within(metric: str, estimate: Estimate) -> Estimate:
    """Return a mean with its interval, cut to the metric's range."""
    if metric not in BOUNDED:
        return estimate
    return Estimate(estimate.value, max(estimate.low, 0.0), min(estimate.high, 1.0))
