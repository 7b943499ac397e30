"""The paper's tables and figures, and the numbers that it prints."""

from pathlib import Path
from typing import NamedTuple

from cbet_jax.runs.reading import read_table
from envs.names import TRANSFER as TEN_WORLDS
from experiments.evaluation.evaluation_table import UNIFORM, UNTRAINED
from experiments.reports.comparison import SHARES

PUBLISHED = Path(__file__).with_name("published.csv")
INTERACTIONS, SUCCESS = "unique_interactions", "success_rate"
PERCENT = ("success", SUCCESS, *SHARES)  # printed as percentages
RANDOM = (UNTRAINED, UNIFORM)
METHODS = ("cbet", "count", "ride", "curiosity", "rnd")
NOISY_METHODS = ("cbet", "cbet-no-resets", "count-resets", "count")
COMBINATIONS = ("product", "sum", "sum-squared", "sum-inside", "cbet", "changes")
RESETS = ("count-resets", "cbet", "count", "cbet-no-resets")
THREE = ("MultiEnv", "DoorKey", "KeyCorridor")
EACH = (THREE, *((setup,) for setup in THREE))
NOISY = (("MultiRoom",), ("NoisyTV",))
TASKS = {"paper": TEN_WORLDS, "smoke": ("DoorKey-8x8",)}  # preset -> tasks that `paper` learns


# About the highest mean returns that our policies reach in tasks: a success returns 1 - 0.9 of the
# share of the time limit that it took, so 1 is out of reach.
BEST_RETURN = {
    "Unlock": 0.97,
    "DoorKey-8x8": 0.97,
    "KeyCorridorS3R3": 0.89,
    "KeyCorridorS6R3": 0.91,
    "UnlockPickup": 0.94,
    "BlockedUnlockPickup": 0.94,
    "MultiRoom-N6": 0.63,
    "MultiRoom-N12-S10": 0.64,
    "ObstructedMaze-1Dlh": 0.93,
    "ObstructedMaze-2Dlh": 0.93,
    "ObstructedMaze-2Dlhb": 0.83,
}
# The share of levels that can be solved, where it is not all: as in MiniGrid (envs/minigrid).
SOLVABLE = {
    "ObstructedMaze-2Dlhb": 14 / 15,
    "ObstructedMaze-1Q": 14 / 15,
    "ObstructedMaze-2Q": 29 / 30,
}


class PaperTable(NamedTuple):
    """A table of the paper: the mean over worlds and setups of one number for each method."""

    name: str  # in the file of published numbers, and of the picture
    title: str
    source: str  # in the paper
    metric: str  # or `SHARES` of all actions, if empty
    methods: tuple[str, ...]
    setups: tuple[tuple[str, ...], ...]  # each is averaged over


ABLATION = (
    PaperTable(
        *("states", "Rewards of states alone, with resets", "Figure 17", SUCCESS),
        ("count-resets", "states-squared", "count-resets-panoramic", "states-squared-panoramic"),
        EACH,
    ),
    PaperTable(
        *("combinations", "Combinations, panoramic changes", "Figure 18", SUCCESS),
        *(COMBINATIONS, EACH),
    ),
    PaperTable(
        *("egocentric", "Combinations, egocentric changes", "Figure 19", SUCCESS),
        *(tuple(f"{name}-egocentric" for name in COMBINATIONS), EACH),
    ),
    PaperTable(
        *("actions", "Actions of policies of all three setups", "Figure 20", ""),
        *(("cbet", "changes", "changes-egocentric"), (THREE,)),
    ),
    PaperTable("resets", "Counts with and without resets", "Figure 22", SUCCESS, RESETS, EACH),
)
NOISY_TV = (
    PaperTable("noisy_tv", "Noisy TV", "Table 1", SUCCESS, NOISY_METHODS, NOISY),
    PaperTable("noisy_tv_actions", "Noisy TV: actions", "Table 2", "", NOISY_METHODS, NOISY),
)
TABLES = (
    PaperTable(
        *("interactions", "Unique interactions an episode", "Figures 7 and 24", INTERACTIONS),
        *((*METHODS, *RANDOM), EACH),
    ),
    PaperTable(
        *("success", "Success rate", "Figures 7 and 26", SUCCESS), *((*METHODS, *RANDOM), EACH)
    ),
    *ABLATION,
    PaperTable(
        *("resets_interactions", "Interactions with and without resets", "not printed"),
        *(INTERACTIONS, RESETS, EACH),
    ),
    *NOISY_TV,
)


def printed_scale(metric: str) -> float:
    """Return what a metric's values are multiplied by to be printed."""
    return 100.0 if metric in PERCENT else 1.0


def published() -> dict[tuple[str, ...], str]:
    """Return the numbers that the paper prints: table, setups, method, metric -> its text."""
    return {
        (row["table"], row["setups"], row["method"], row["metric"]): row["value"]
        for row in read_table(PUBLISHED)[1]
    }
