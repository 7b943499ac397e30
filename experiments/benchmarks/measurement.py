"""What the benchmark is asked, and what it answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from cbet_jax.config import Factors
from envs.minigrid import NAMES
from experiments.benchmarks.timing import Ratio
from experiments.common.presets import PRESETS

MIXED = PRESETS["paper"].environments  # played side by side where no environment is named


@dataclass(frozen=True)
class BenchmarkOptions:
    """Measure worlds and training on this machine, beside other packages' worlds."""

    groups: tuple[str, ...] = ("worlds", "environments", "gymnasium", "training")
    rounds: int = 5  # of a second or longer for each measurement; the median counts
    worlds: tuple[int, ...] = (64, 256, 1024)  # side by side; environments: the last number
    envs: tuple[str, ...] = NAMES  # environments measured one by one
    presets: tuple[str, ...] = ("paper", "laptop")  # whose training is measured
    factors: tuple[Factors, ...] = ("float32", "bfloat16")  # of matrix products in training
    seeds: tuple[int, ...] = (1,)  # how many agents are trained side by side
    out: Path | None = None  # JSON file (default: a new one in runs/)


class Measurement(NamedTuple):
    """One measured number: a row of the benchmark's table."""

    what: str
    value: float
    unit: str
    ratios: Mapping[str, Ratio] = {}  # name of another measurement -> how many times that one it is
