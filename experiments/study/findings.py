"""Look up a study's results: means over worlds and setups, and curves."""

from collections.abc import Iterable, Sequence

import numpy as np

from cbet_jax.analysis import intervals
from cbet_jax.analysis.learning_curves import Curve
from envs.names import TRANSFER as TEN_WORLDS
from experiments.evaluation.evaluation_table import ALL_WORLDS
from experiments.reports.comparison import ENTROPY, SHARES, Row, within
from experiments.study.contents import BEST_RETURN, METHODS, RANDOM
from experiments.study.plan import EVALUATION, PRETRAIN, TABULA_RASA, TRANSFER
from experiments.study.results import ENDED, ENDED_EARLY, STUDY, Result
from experiments.study.variants import SETUPS, VARIANTS

Key = tuple[str, ...]  # stage, setup, method, environment, metric
Seeds = dict[int, float]  # seed -> value


class Findings:
    """A table of results."""

    def __init__(self, results: Iterable[Result]) -> None:
        self._values: dict[Key, dict[int, Seeds]] = {}  # -> frames -> seed -> value
        self._actors: dict[Key, int] = {}  # setup, method -> actors that shared the frames
        self._evaluated: dict[Key, set[int]] = {}  # setup, method -> frames
        self._longest: dict[Key, int] = {}  # environment, metric -> frames, of all ways to learn
        self.diverged: dict[Key, int] = {}  # stage, setup, method, environment -> frames
        self.preset = ""
        self.asked: dict[str, float] = {}  # the study's settings
        for row in results:
            if row.stage == STUDY:
                self.preset, self.asked[row.metric] = row.method, row.value
                continue
            key = row.stage, row.setup, row.method, row.environment, row.metric
            self._values.setdefault(key, {}).setdefault(row.frames, {})[row.seed] = row.value
            self._longest[key[3:]] = max(self._longest.get(key[3:], 0), row.frames)
            if row.metric == ENDED:
                self.diverged[key[:4]] = row.frames
            if row.stage == EVALUATION:
                self._actors[row.setup, row.method] = row.actors
                self._evaluated.setdefault((row.setup, row.method), set()).add(row.frames)

    def names(self, stage: str, field: int) -> list[str]:
        """Return the values of one field of the keys: 1 setup, 2 method, 3 environment."""
        return list(dict.fromkeys(key[field] for key in self._values if key[0] == stage))

    def setups(self, stage: str = EVALUATION) -> list[str]:
        """Return the setups whose pre-training left such results."""
        return [setup for setup in SETUPS if setup in self.names(stage, 1)]

    def methods(self, setup: str, stage: str = EVALUATION) -> list[str]:
        """Return the methods that were trained in a setup, the paper's first."""
        ran = dict.fromkeys(key[2] for key in self._values if key[:2] == (stage, setup))
        return [*(m for m in METHODS if m in ran), *(m for m in ran if m not in METHODS)]

    def main_methods(self, setup: str, stage: str = EVALUATION) -> list[str]:
        """Return the paper's methods and the user's own; where none was run, the variants."""
        ran = self.methods(setup, stage)
        return [m for m in ran if m in METHODS or m not in VARIANTS] or ran

    def tasks(self) -> list[str]:
        """Return the tasks that were learnt, the paper's first."""
        learnt = {*self.names(TRANSFER, 3), *self.names(TABULA_RASA, 3)}
        own = [task for task in TEN_WORLDS if task in learnt]
        return own + sorted(learnt.difference(own))

    def actors(self, setup: str, method: str) -> int:
        """Return how many actors shared the frames."""
        return self._actors.get((setup, method), 0)

    def ended_early(self, setups: Sequence[str], method: str) -> bool:
        """Return whether pre-training diverged in any of these setups."""
        ended = {key[1:3] for key in self.diverged if key[0] == PRETRAIN}
        return any((setup, method) in ended for setup in setups)

    def evaluated_at(self, setups: Sequence[str], method: str) -> list[int]:
        """Return the frames after which a method was evaluated in all of these setups."""
        return sorted(set.intersection(*(self._evaluated.get((s, method), set()) for s in setups)))

    def compared_at(
        self, setups: Sequence[str], method: str, methods: Sequence[str]
    ) -> tuple[int, ...]:
        """Return the frames, in each setup, after which a method is compared with others.

        They are the most after which all of them that were run have been evaluated in all setups.
        Where there are none, each setup has its own; where these do not exist either, the latest
        evaluation counts, and the methods are compared after unequal frames.
        """
        if method in RANDOM:
            return (0,)
        common = []
        for setup in setups:
            ran = [set(at) for m in methods if (at := self.evaluated_at((setup,), m))]
            own = set(self.evaluated_at((setup,), method))
            common.append(own.intersection(*ran))
        if everywhere := set.intersection(*common):
            return (max(everywhere),) * len(setups)
        return tuple(
            max(here or self.evaluated_at((setup,), method), default=0)
            for setup, here in zip(setups, common, strict=True)
        )

    def row(
        self,
        setups: Sequence[str],
        method: str,
        metric: str,
        frames: Sequence[int],
        worlds: Sequence[str] = TEN_WORLDS,
    ) -> Row | None:
        """Return each seed's mean over setups and worlds, None if a part was not run.

        Shares of actions are weighted by the lengths of each world's episodes.

        Args:
            setups: setups of pre-training (ignored for random policies).
            method: the method.
            metric: a metric of evaluations.
            frames: frames of pre-training, in each setup.
            worlds: the worlds of the evaluation.
        """
        where = [("", 0)] if method in RANDOM else list(zip(setups, frames, strict=True))

        def scores(metric: str) -> dict[int, np.ndarray]:
            columns = [
                self._values.get((EVALUATION, setup, method, world, metric), {}).get(at, {})
                for setup, at in where
                for world in worlds
            ]
            seeds = sorted(set.intersection(*map(set, columns)))
            return {seed: np.array([column[seed] for column in columns]) for seed in seeds}

        if metric in (*SHARES, ENTROPY):
            lengths, shares = scores("episode_length"), [scores(name) for name in SHARES]
            values = {}
            for seed in set.intersection(*map(set, (lengths, *shares))):
                pooled = np.array([np.average(s[seed], weights=lengths[seed]) for s in shares])
                entropy = intervals.normalized_entropy(pooled)
                values[seed] = entropy if metric == ENTROPY else pooled[SHARES.index(metric)]
        else:
            values = {seed: float(each.mean()) for seed, each in scores(metric).items()}
        world = worlds[0] if len(worlds) == 1 else ALL_WORLDS
        return Row(method, metric, world, values) if values else None

    def curve(self, key: Key) -> Curve | None:
        """Return the mean of a curve over the seeds, interpolated to common frames.

        The last value of a seed whose task ended early continues to the end of the longest run of
        the task, in whichever way that one learns.
        """
        lines = [*self._continued(key).values()]
        if not lines:
            return None
        first, last = max(at[0] for at, _ in lines), min(at[-1] for at, _ in lines)
        frames = min((at[(first <= at) & (at <= last)] for at, _ in lines), key=len)
        if not len(frames):
            return None
        at_frames = np.array([np.interp(frames, *line) for line in lines])
        found = [within(key[-1], column) for column in at_frames.T]
        return Curve(frames.astype(int), *np.array(found).T)

    def ways(self) -> list[Key]:
        """Return stage, setup and method of all ways in which tasks were learnt."""
        return [
            (stage, setup, method)
            for stage in (TRANSFER, TABULA_RASA)
            for setup in self.names(stage, 1)
            for method in self.methods(setup, stage)
        ]

    def scores(self) -> dict[Key, list[np.ndarray]]:
        """Return the mean returns of seeds in each task, as shares of the best.

        They are of the ways that were tried in all tasks, at least two, and over equal frames: as
        many as all runs of a task have.
        """
        tasks, scores = self.tasks(), {way: list[np.ndarray]() for way in self.ways()}
        for task in tasks:
            keys = {way: (*way, task, "extrinsic_return") for way in scores}
            lines = [line for key in keys.values() for line in self._continued(key).values()]
            end = min((at[-1] for at, _ in lines), default=np.inf)
            for way, key in keys.items():
                if area := self.area(key, end):
                    returns = np.array([*area.values.values()])
                    scores[way].append(returns / BEST_RETURN.get(task, 1.0))
        return {way: found for way, found in scores.items() if len(found) >= max(len(tasks), 2)}

    def flat_from(self, key: Key) -> float:
        """Return the frames from which a curve continues the last values of seeds that ended."""
        longest = self._longest.get(key[3:], 0)
        return min((end for end in self._ended(key).values() if end < longest), default=np.inf)

    def _ended(self, key: Key) -> dict[int, int]:
        """Return the frames after which seeds' tasks ended early."""
        ended = self._values.get((*key[:4], ENDED_EARLY), {})
        return {seed: frames for frames, seeds in ended.items() for seed in seeds}

    def area(self, key: Key, until: float = np.inf) -> Row | None:
        """Return the mean of each seed's curve over its frames, the flat continuation included."""
        *_, method, world, metric = key
        means = {}
        for seed, (at, values) in self._continued(key).items():
            end = min(until, at[-1])
            frames = np.array([0, *at[at < end], end])
            means[seed] = np.trapezoid(np.interp(frames, at, values), frames) / end
        return Row(method, metric, world, means) if means else None

    def _continued(self, key: Key) -> dict[int, np.ndarray]:
        """Return each seed's line; that of an ended task is as long as the task's longest."""
        lines, ended, end = self._lines(key), self._ended(key), self._longest.get(key[3:], 0)
        for seed, (at, values) in lines.items():
            if at[-1] < end and at[-1] == ended.get(seed):
                more = np.arange(at[-1], end, at[-1] // len(at))[1:]
                flat = np.full(len(more) + 1, values[-1])
                lines[seed] = np.array([[*at, *more, end], [*values, *flat]])
        return lines

    def _lines(self, key: Key) -> dict[int, np.ndarray]:
        """Return each seed's frames and values: [2, points]."""
        seeds: dict[int, list[tuple[int, float]]] = {}
        for at, values in sorted(self._values.get(key, {}).items()):
            for seed, value in values.items():
                seeds.setdefault(seed, []).append((at, value))
        return {seed: np.array(line).T for seed, line in seeds.items()}

    def last(self, key: Key) -> Row | None:
        """Return each seed's last point of a curve."""
        last = {seed: float(values[-1]) for seed, (_, values) in self._lines(key).items()}
        *_, method, world, metric = key
        return Row(method, metric, world, last) if last else None
