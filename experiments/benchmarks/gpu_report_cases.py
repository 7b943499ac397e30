"""What the report on a GPU measures: training, acting only, learning only, at several sizes."""

from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

from cbet_jax.config import TrainSettings
from envs.minigrid import make_world
from envs.types import World
from experiments.benchmarks import arithmetic
from experiments.common.presets import PRESETS

TRAINING, ACTING, LEARNING = "training", "acting", "learning"
GOAL_SEEDS = 7
MANY_WORLDS = (160, 640)
CASES_IN_GROUP = 4  # compiled together


class Case(NamedTuple):
    """Something to measure."""

    preset: str
    settings: TrainSettings
    environments: tuple[str, ...]
    seeds: int
    part: str = TRAINING

    @property
    def name(self) -> str:
        """Its name in the report."""
        size = f"{self.seeds} x {self.settings.worlds} worlds"
        return f"{self.preset}, {self.settings.network.factors}, {size}, {self.part}"

    @property
    def frames(self) -> int:
        """Frames that one call plays or learns from, of all seeds."""
        return self.seeds * self.settings.iteration_frames

    @property
    def flops(self) -> float:
        """Floating-point operations of the policy's network for one frame."""
        world = world_of(self.environments, self.settings.worlds)
        forward = arithmetic.forward_flops(
            self.settings.network, world.view_shape, world.num_actions
        )
        return {TRAINING: 4, ACTING: 1, LEARNING: 3}[self.part] * forward


def cases(*, several_seeds: bool) -> list[list[Case]]:
    """Return what to measure, in groups that are compiled together; what matters most is first.

    Args:
        several_seeds: whether seeds are computed side by side, as on a GPU. (A CPU computes them
            in turn, and they would tell nothing.)
    """
    make = partial(_case, several_seeds=several_seeds)
    goal = make("paper", "bfloat16", GOAL_SEEDS)
    fewer = [
        make(preset, factors, seeds)
        for preset in ("paper", "laptop")
        for factors in ("bfloat16", "float32")
        for seeds in (GOAL_SEEDS, 1)
    ]
    wider = [make("paper", "bfloat16", 1, worlds) for worlds in MANY_WORLDS]
    rest = [case for case in dict.fromkeys([*fewer, *wider]) if case != goal]
    parts = [goal, goal._replace(part=ACTING), goal._replace(part=LEARNING)]
    return [parts, *(rest[i : i + CASES_IN_GROUP] for i in range(0, len(rest), CASES_IN_GROUP))]


def small_cases() -> list[list[Case]]:
    """Return quick cases that try every part of the report; their numbers mean nothing."""
    smoke = PRESETS["smoke"]
    settings = replace(smoke.train, worlds=4, batch=4, unroll=5)
    case = Case("smoke", settings, smoke.environments, 1)
    return [[case, case._replace(part=ACTING), case._replace(part=LEARNING)]]


def _case(
    preset: str, factors: Any, seeds: int, worlds: int | None = None, *, several_seeds: bool
) -> Case:
    run = PRESETS[preset]
    settings = replace(run.train, network=replace(run.train.network, factors=factors))
    settings = replace(settings, worlds=worlds or settings.worlds)
    return Case(preset, settings, run.environments, seeds if several_seeds else 1)


@cache
def world_of(environments: tuple[str, ...], number: int) -> World:
    """Return worlds to explore."""
    return make_world(environments, number, explore=True)
