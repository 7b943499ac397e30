"""The benchmark's options and results."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cbet_jax.config import Factors
from envs.names import NAMES
from experiments.common.presets import PRESETS

if TYPE_CHECKING:
    from experiments.benchmarks.timing import Ratio

GROUPS = ("worlds", "environments", "gymnasium", "training")
MIXED = PRESETS["paper"].environments  # the default mix of environments


@dataclass(frozen=True)
class BenchmarkOptions:
    """Measure worlds and training on this machine, beside other packages' worlds."""

    groups: tuple[str, ...] = GROUPS  # all but `training` need the extra `dev`
    rounds: int = 5  # each measures the slowest task for a second or longer; results are medians
    worlds: tuple[int, ...] = (64, 256, 1024)  # batch sizes; `environments` uses the last
    envs: tuple[str, ...] = NAMES  # environments measured one by one
    presets: tuple[str, ...] = ("paper", "laptop")  # presets whose training is measured
    factors: tuple[Factors, ...] = ("float32", "bfloat16")  # precisions of matrix products
    seeds: tuple[int, ...] = (1,)  # numbers of agents trained together
    out: Path | None = None  # JSON file (None: a new one in runs/)


class Measurement(NamedTuple):
    """One measured number: a row of the benchmark's table."""

    what: str
    value: float
    unit: str
    ratios: Mapping[str, "Ratio"] = {}  # another measurement's name -> this one as its multiple
