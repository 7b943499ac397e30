"""What the report holds: the paper's tables and figures, and the numbers that it prints."""

import csv
from pathlib import Path
from typing import NamedTuple

from cbet_jax.runs.saved_policies import UNIFORM, UNTRAINED
from envs.minigrid.generators.catalogue import TRANSFER as TEN_WORLDS
from experiments.study.estimates import INTERACTIONS, SHARES, SUCCESS

PUBLISHED = Path(__file__).with_name("published.csv")
RANDOM = (UNTRAINED, UNIFORM)
THREE = ("MultiEnv", "DoorKey", "KeyCorridor")
METHODS = ("cbet", "count", "ride", "curiosity", "rnd")
PERCENT = (SUCCESS, *SHARES)  # printed as percentages


def printed_scale(metric: str) -> float:
    """Return what a metric's values are multiplied by to be printed."""
    return 100.0 if metric in PERCENT else 1.0


class Averages(NamedTuple):
    """A table of one number for each method: the mean over worlds and setups."""

    name: str  # in the file of published numbers, and of the figure
    title: str
    source: str  # in the paper
    metric: str
    methods: tuple[str, ...]
    setups: tuple[tuple[str, ...], ...]  # each is averaged over


class Actions(NamedTuple):
    """A table of how often each action was chosen in the ten worlds together."""

    name: str
    title: str
    source: str
    methods: tuple[str, ...]
    setups: tuple[tuple[str, ...], ...]


EACH = tuple((setup,) for setup in THREE)
NOISY = (("MultiRoom",), ("NoisyTV",))
TASKS = {"paper": TEN_WORLDS, "smoke": ("DoorKey-8x8",)}  # preset -> tasks that `paper` learns
NOISY_METHODS = ("cbet", "cbet-no-resets", "count-resets", "count")
COMBINATIONS = ("product", "sum", "sum-squared", "sum-inside", "cbet", "changes")

MAIN = (
    Averages(
        *("interactions", "Unique interactions an episode", "Figures 7 and 24", INTERACTIONS),
        (*METHODS, *RANDOM),
        (THREE, *EACH),
    ),
    Averages(
        *("success", "Success rate", "Figures 7 and 26", SUCCESS),
        (*METHODS, *RANDOM),
        (THREE, *EACH),
    ),
)
ABLATION = (
    Averages(
        *("states", "Ablation: rewards of states alone, with resets", "Figure 17", SUCCESS),
        ("count-resets", "states-squared", "count-resets-panoramic", "states-squared-panoramic"),
        (THREE, *EACH),
    ),
    Averages(
        *("combinations", "Ablation: combinations, panoramic changes", "Figure 18", SUCCESS),
        COMBINATIONS,
        (THREE, *EACH),
    ),
    Averages(
        *("egocentric", "Ablation: combinations, egocentric changes", "Figure 19", SUCCESS),
        tuple(f"{name}-egocentric" for name in COMBINATIONS),
        (THREE, *EACH),
    ),
    Actions(
        *("actions", "Ablation: actions of policies of all three setups", "Figure 20"),
        ("cbet", "changes", "changes-egocentric"),
        (THREE,),
    ),
    Averages(
        *("resets", "Ablation: counts with and without resets", "Figure 22", SUCCESS),
        ("count-resets", "cbet", "count", "cbet-no-resets"),
        (THREE, *EACH),
    ),
)
NOISY_TV = (
    Averages(
        *("noisy_tv", "Noisy TV: success rate", "Table 1", SUCCESS),
        NOISY_METHODS,
        NOISY,
    ),
    Actions(
        *("noisy_tv_actions", "Noisy TV: actions", "Table 2"),
        NOISY_METHODS,
        NOISY,
    ),
)


class Published(NamedTuple):
    """A number that the paper prints."""

    text: str
    source: str

    @property
    def value(self) -> float:
        """The number."""
        return float(self.text)


def published() -> dict[tuple[str, ...], Published]:
    """Return the published numbers: table, setups, method, metric -> number."""
    with open(PUBLISHED, newline="") as file:
        return {
            (row["table"], row["setups"], row["method"], row["metric"]): Published(
                row["value"], row["source"]
            )
            for row in csv.DictReader(file)
        }
