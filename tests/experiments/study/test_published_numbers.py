"""The numbers in the tables of results follow from the committed files that the pages name."""

import csv
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from cbet_jax.analysis import intervals
from experiments.study import results
from experiments.study.results import FRAMES_TO_SUCCEED

EXPERIMENTS = Path(results.__file__).parents[1]
EXPLORATION, RESULTS = "exploration.md", "study/RESULTS.md"
METHODS = {
    "C-BET": "cbet",
    "Count": "count",
    "NGU's": "ngu-episodic",
    "NGU's episodic bonus": "ngu-episodic",
    "RE3": "re3",
    "NovelD": "noveld",
    "E3B": "e3b",
    "RND": "rnd",
    "Curiosity": "curiosity",
    "RIDE": "ride",
    "`rnd-normalized` (one value)": "rnd-normalized",
}
AS_PUBLISHED = {"coefficient": "", "starts": "spread", "decay_frames": "100000000"}
FULL_RATE, THIRD = "0.001", "0.0003"
SUCCESS, INTERACTIONS = "success_rate", "unique_interactions"
NOT_REACHED = "-"

Row = dict[str, str]


def table(page: str, *headings: str) -> dict[str, Row]:
    """Return the page's one table that has these first headings: rows by their first cell."""
    lines = (EXPERIMENTS / page).read_text().replace("**", "").replace("| |", "|  |").splitlines()
    begins = "".join(f"| {heading} " for heading in headings) + "|"
    (start,) = [i for i, line in enumerate(lines) if line.startswith(begins)]
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return {row[0]: dict(zip(rows[0], row, strict=True)) for row in rows[2:]}


@cache
def _stored(name: str) -> list[Row]:
    with (EXPERIMENTS / "results" / name).open() as file:
        return list(csv.DictReader(file))


def stored(name: str, **wanted: str) -> list[Row]:
    return those(_stored(name), **wanted)


def those(rows: Iterable[Row], **wanted: str) -> list[Row]:
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def study(name: str, **wanted: str) -> Iterator[Row]:
    """Yield a study's evaluations as the other tables have them: metrics are columns."""
    found: dict[tuple[str, ...], Row] = defaultdict(dict)
    for row in stored(name, stage="evaluation", **wanted):
        found[row["setup"], row["seed"], row["environment"]] |= {**row, row["metric"]: row["value"]}
    yield from found.values()


def each_seed(rows: Iterable[Row], metric: str = SUCCESS) -> np.ndarray:
    """Return each seed's mean over the ten environments, shares in %."""
    seeds = defaultdict(list)
    for row in rows:
        seeds[row["seed"]].append(float(row[metric]) * (100 if metric == SUCCESS else 1))
    assert {len(values) % 10 for values in seeds.values()} == {0}
    return np.array([np.mean(values) for values in seeds.values()])


def text(values: np.ndarray) -> str:
    """Return a mean and its interval as the tables have them, cut at 0."""
    estimate = intervals.mean(values)
    return estimate._replace(low=max(estimate.low, 0.0)).text(1)


@pytest.fixture(scope="module", params=[row for row in METHODS if row not in ("NGU's",)])
def reward(request):
    """A row of the table of rewards, and what was measured of its method."""
    (row,) = [
        cells
        for name, cells in table(EXPLORATION, "reward").items()
        if name.partition(" (9.6")[0] == request.param
    ]
    return row, stored("methods.csv", method=METHODS[request.param])


def tuning(rows: list[Row]) -> dict[float, list[Row]]:
    """Return the runs of 5 million frames by their coefficient, smallest first."""
    found = those(rows, frames="5184000", learning_rate=FULL_RATE)
    coefficients = sorted({float(row["coefficient"]) for row in found})
    return {c: [row for row in found if float(row["coefficient"]) == c] for c in coefficients}


def test_rewards_with_their_own_coefficient(reward):
    row, rows = reward
    if row["reward"].startswith("RE3"):
        own = those(rows, frames="9600000")
    else:
        own = those(rows, frames="9024000", learning_rate=FULL_RATE, **AS_PUBLISHED)
    assert row["after 9 M"] == text(each_seed(own))


def test_tuned_rewards(reward):
    row, rows = reward
    if not row["tuning"]:
        pytest.skip("was not run")
    tuned = [each_seed(runs).item() for runs in tuning(rows).values()]
    slower = each_seed(those(rows, frames="5184000", learning_rate=THIRD))
    wholes = [np.floor(value + 0.5).astype(int) for value in (*tuned, *slower)]
    *by_coefficient, third = map(str, wholes)
    assert row["tuning"] == f"{', '.join(by_coefficient)}; {third}"


def test_rewards_after_33_million_frames_with_the_coefficient_that_interacted_most(reward):
    row, rows = reward
    if not row["after 33 M"]:
        pytest.skip("was not run")
    coefficients = tuning(rows)
    best = max(coefficients, key=lambda c: each_seed(coefficients[c], INTERACTIONS).item())
    if row["reward"] in ("C-BET", "Count"):
        method = METHODS[row["reward"]]
        ran = [*study("study.csv", setup="MultiEnv", method=method, frames="33024000")]
        assert best == [*coefficients][1]
    else:
        ran = those(rows, frames="33024000", coefficient=str(best))
    times = "x 10: " if best == [*coefficients][2] else ""
    assert row["after 33 M"] == times + text(each_seed(ran))
    assert row["interactions"] == text(each_seed(ran, INTERACTIONS))


def test_states_and_changes():
    at_random = {"states": "count-resets", "changes": "changes", "both": "cbet"}
    never = {"states": "count", "both": "cbet-no-resets"}
    episodic = {"states": "count", "changes": "ablation-changes", "both": "cbet"}
    for name, row in table(EXPLORATION, "", "never").items():
        frames = {"frames": "9600000"}
        own = {"method": episodic[name], **frames}
        assert row["each episode"] == text(
            each_seed(stored("episodic.csv", counts="episodic", **own))
        )
        random = study("study.csv", setup="MultiEnv", method=at_random[name], **frames)
        assert row["at random"] == text(each_seed(random)[:3])
        if name in never:
            ran = each_seed(study("study.csv", setup="MultiEnv", method=never[name], **frames))
        else:
            ran = each_seed(stored("episodic.csv", counts="never-reset", **own))
        assert row["never"] == text(ran[:3])


def times_to_succeed(method: str, task: str) -> str:
    """Return each seed's million frames to success, the soonest first."""
    of_task = stored("fine-tuning.csv", stage="transfer", method=method, environment=task)
    seeds = {row["seed"] for row in of_task}
    reached = sorted(float(row["value"]) for row in those(of_task, metric=FRAMES_TO_SUCCEED))
    cells = [f"{frames / 1e6:.1f}" for frames in reached]
    return ", ".join(cells + [NOT_REACHED] * (len(seeds) - len(cells)))


def test_fine_tuned_tasks():
    for task, row in table(EXPLORATION, "task").items():
        for name, cell in row.items():
            if name != "task":
                method = f"{METHODS[name]}-fine-tuned"
                assert cell == times_to_succeed(method, task.split()[0]), (task, name)


@pytest.mark.parametrize("row", ["C-BET, 128 actors", "Count", "RIDE", "Curiosity", "RND"])
def test_the_mean_of_three_setups(row):
    method = METHODS[row.partition(",")[0]]
    ran = [*study("study.csv", method=method, frames="33024000")]
    in_all = {row["seed"] for row in ran if row["setup"] == "DoorKey"}
    ran = [row for row in ran if row["seed"] in in_all]
    said = table(RESULTS, "mean of three setups")[f"{row}, 33 M"]
    assert said["interactions"] == text(each_seed(ran, INTERACTIONS))
    assert said["success"] == text(each_seed(ran))


@pytest.mark.parametrize("setup", ["MultiEnv", "DoorKey", "KeyCorridor"])
def test_each_setup(setup):
    for name, cell in [*table(RESULTS, "after 33 M: interactions, success")[setup].items()][1:]:
        ran = [*study("study.csv", setup=setup, method=METHODS[name], frames="33024000")]
        assert cell == f"{text(each_seed(ran, INTERACTIONS))}, {text(each_seed(ran))}", name


@pytest.mark.parametrize("name", ["C-BET", "Count"])
def test_the_published_network(name):
    (row,) = [
        cells
        for start, cells in table(RESULTS, "", "`paper`").items()
        if start.startswith(f"{name},")
    ]
    frames = {"C-BET": "50160000", "Count": "33120000"}[name]
    small = study("study-40-actors.csv", setup="MultiEnv", method=METHODS[name], frames=frames)
    ran = {"`paper`": study("paper-network.csv", method=METHODS[name]), "`laptop`": small}
    for heading, rows in ran.items():
        seeds = [*rows]
        assert row[heading] == f"{text(each_seed(seeds, INTERACTIONS))}, {text(each_seed(seeds))}"


VARIANTS = {
    "C-BET": "cbet",
    "C-BET without resets": "cbet-no-resets",
    "Count with resets": "count-resets",
    "Count": "count",
    "1 / N(s')": "states-squared",
    "Count with resets, panoramic states": "count-resets-panoramic",
    "1 / N(s'), panoramic states": "states-squared-panoramic",
    "squared sum": "sum-squared",
    "product": "product",
    "sum": "sum",
    "sum inside": "sum-inside",
    "changes only": "changes",
    "product, egocentric changes": "product-egocentric",
    "squared sum, egocentric": "sum-squared-egocentric",
    "C-BET, egocentric changes": "cbet-egocentric",
    "sum, egocentric changes": "sum-egocentric",
    "sum inside, egocentric": "sum-inside-egocentric",
    "changes only, egocentric": "changes-egocentric",
}


def test_the_ablation():
    setups = ("MultiEnv", "DoorKey", "KeyCorridor")
    for name, row in table(RESULTS, "policy", "mean of three").items():
        ran = [*study("study.csv", method=VARIANTS[name], frames="9600000")]
        in_all = {row["seed"] for row in ran if row["setup"] == "DoorKey"}
        ran = [row for row in ran if row["seed"] in in_all and row["setup"] in setups]
        assert row["mean of three"] == text(each_seed(ran)), name


def test_noisy_tv():
    for name, row in table(RESULTS, "policy", "MultiRoom").items():
        for setup in ("MultiRoom", "NoisyTV"):
            method = VARIANTS[name]
            ran = [*study("study.csv", setup=setup, method=method, frames="9600000")]
            assert row[setup] == text(each_seed(ran)), (name, setup)
