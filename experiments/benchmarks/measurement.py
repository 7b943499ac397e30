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
    """Measure worlds, count tables, training and compilation on this machine."""

    groups: tuple[str, ...] = (
        "worlds",
        "environments",
        "gymnasium",
        "bounds",
        "counts",
        "training",
        "phases",
        "scaling",
        "compilation",
    )
    rounds: int = 5  # of each measurement, a second or longer; the median counts
    #: side by side; only the last number where it does not matter
    worlds: tuple[int, ...] = (64, 256, 1024)
    envs: tuple[str, ...] = NAMES  # environments measured one by one
    capacities: tuple[int, ...] = (2**12, 2**14, 2**16, 2**18)  # slots of a count table
    presets: tuple[str, ...] = ("paper", "laptop")  # whose training is measured
    factors: tuple[Factors, ...] = ("float32", "bfloat16")  # of matrix products in training
    scaled: str = "laptop"  # the preset that is trained with increasing seeds and worlds
    scaled_seeds: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    scaled_worlds: tuple[int, ...] = (32, 128, 512, 2048, 4096)
    out: Path | None = None  # JSON file (default: a new one in runs/)


class Measurement(NamedTuple):
    """One measured number: a row of the benchmark's table."""

    what: str
    value: float
    unit: str
    ratios: Mapping[str, Ratio]  # name of another measurement -> how many times that one it is
