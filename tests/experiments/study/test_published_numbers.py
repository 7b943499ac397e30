"""The numbers in the tables of results follow from the committed files that the pages name."""

import csv
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import dropwhile
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import t as student

from cbet_jax.analysis import intervals
from cbet_jax.analysis.method_style import title
from experiments.common.presets import TASK_FRAMES
from experiments.study import results, tables
from experiments.study.contents import (
    NOISY_METHODS,
    SOLVABLE,
    TABLES,
    printed_scale,
    published,
)
from experiments.study.findings import Findings
from experiments.study.results import FRAMES_TO_SOLVE, FRAMES_TO_SUCCEED, SUCCEEDS

EXPERIMENTS = Path(results.__file__).parents[1]
EXPLORATION, RESULTS = "exploration.md", "study/RESULTS.md"
REWARDS = ("cbet", "count", "ngu-episodic", "re3", "noveld", "e3b", "rnd", "curiosity", "ride")
ROWS = {title(name): name for name in REWARDS}
ROWS["`rnd-normalized`"] = "rnd-normalized"
METHODS = {**ROWS, "NGU's": "ngu-episodic"}
AS_PUBLISHED = {"coefficient": "", "starts": "spread", "decay_frames": "100000000"}
FULL_RATE, THIRD = "0.001", "0.0003"
SUCCESS, INTERACTIONS = "success_rate", "unique_interactions"
NOT_REACHED = "-"
EASY = {"Unlock", "DoorKey-8x8", "UnlockPickup", "BlockedUnlockPickup", "KeyCorridorS3R3"}
# Methods fine-tuned in all tasks, by how many runs learnt.
TUNED = (
    "cbet",
    "cbet-episodic",
    "noveld",
    "re3",
    "count",
    "ngu-episodic",
    "e3b",
    "rnd-normalized",
    *("ride", "rnd", "curiosity"),
)

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
    names = [f"{name} again" if name in rows[0][:i] else name for i, name in enumerate(rows[0])]
    return {row[0]: dict(zip(names, row, strict=True)) for row in rows[2:]}


@cache
def _stored(name: str) -> list[Row]:
    with (EXPERIMENTS / "results" / name).open() as file:
        return list(csv.DictReader(file))


def prose(page: str) -> str:
    """Return a page's text, with one space between words."""
    return " ".join((EXPERIMENTS / page).read_text().split())


@cache
def _indexed(name: str, columns: tuple[str, ...]) -> dict[tuple[str, ...], list[Row]]:
    found = defaultdict(list)
    for row in _stored(name):
        found[tuple(row[column] for column in columns)].append(row)
    return dict(found)


def stored(name: str, **wanted: str) -> list[Row]:
    """Return the rows of a table that have all of these values."""
    columns = tuple(sorted(wanted))
    return [*_indexed(name, columns).get(tuple(wanted[column] for column in columns), [])]


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


def in_all_setups(rows: list[Row]) -> list[Row]:
    """Return evaluations in the paper's setups, of the seeds that were in all of them."""
    setups = {row["setup"] for row in rows} & {"", "MultiEnv", "DoorKey", "KeyCorridor"}
    of_setup = [{row["seed"] for row in those(rows, setup=setup)} for setup in setups]
    seeds = set.intersection(*of_setup)
    return [row for row in rows if row["setup"] in setups and row["seed"] in seeds]


def text(values: np.ndarray) -> str:
    """Return a mean and its interval as the tables have them, cut at 0."""
    estimate = intervals.mean(values)
    return estimate._replace(low=max(estimate.low, 0.0)).text(1)


def millions(frames: float) -> str:
    """Return million frames with one digit, halves rounded up."""
    return f"{np.floor(frames / 1e5 + 0.5) / 10:.1f}"


@pytest.fixture(scope="module", params=ROWS)
def reward(request):
    """A row of the table of rewards, and what was measured of its method."""
    (row,) = [
        cells
        for name, cells in table(EXPLORATION, "reward").items()
        if name.partition(" (9.6")[0] == request.param
    ]
    return row, stored("methods.csv", setup="MultiEnv", method=METHODS[request.param])


def tuning(rows: list[Row]) -> dict[float, list[Row]]:
    """Return the runs of 5 million frames by their coefficient, smallest first."""
    found = those(rows, frames="5184000", learning_rate=FULL_RATE)
    coefficients = sorted({float(row["coefficient"]) for row in found})
    return {c: [row for row in found if float(row["coefficient"]) == c] for c in coefficients}


def most_interactive(tuned: dict[float, list[Row]]) -> float:
    """Return the coefficient whose run interacted most."""
    return max(tuned, key=lambda c: each_seed(tuned[c], INTERACTIONS).item())


def test_rewards_with_their_own_coefficient(reward):
    row, rows = reward
    if row["reward"].startswith("RE3"):
        own = those(rows, frames="9600000")
    else:
        own = those(rows, frames="9024000", learning_rate=FULL_RATE, **AS_PUBLISHED)
    assert row["after 9 M"] == text(each_seed(own))


def test_tuned_rewards(reward):
    row, rows = reward
    tuned = [each_seed(runs).item() for runs in tuning(rows).values()]
    slower = each_seed(those(rows, frames="5184000", learning_rate=THIRD))
    wholes = [np.floor(value + 0.5).astype(int) for value in (*tuned, *slower)]
    *by_coefficient, third = map(str, wholes)
    assert row["tuning"] == f"{', '.join(by_coefficient)}; {third}"


def after_33_million(setup: str, method: str, coefficient: float | None = None) -> list[Row]:
    """Return evaluations, by default with the coefficient that interacted most in MultiEnv."""
    wanted = {"setup": setup, "method": method, "frames": "33024000"}
    if method in ("cbet", "count"):  # with their own
        return [*study("study.csv", **wanted)]
    tuned = tuning(stored("methods.csv", setup="MultiEnv", method=method))
    used = str(coefficient or most_interactive(tuned))
    return stored("methods.csv", coefficient=used, **wanted)


def test_rewards_after_33_million_frames_with_the_coefficient_that_interacted_most(reward):
    row, rows = reward
    coefficients, method = tuning(rows), rows[0]["method"]
    best = most_interactive(coefficients)
    if method in ("cbet", "count"):
        assert best == [*coefficients][1]
    times = ("x 0.1: ", "", "x 10: ")[[*coefficients].index(best)]
    ran = after_33_million("MultiEnv", method)
    assert row["after 33 M"] == times + text(each_seed(ran))
    assert row["interactions"] == text(each_seed(ran, INTERACTIONS))


def test_rewards_on_another_cpu():
    wanted = {"setup": "MultiEnv, another CPU", "frames": "33024000"}
    there = {m: each_seed(stored("methods.csv", method=m, **wanted)) for m in ("cbet", "re3")}
    (noveld,) = each_seed(stored("methods.csv", method="noveld", **wanted))
    here = each_seed(r for r in after_33_million("MultiEnv", "noveld") if r["seed"] == "0")
    said = f"C-BET's 0 to 2 have {text(there['cbet'])} there, RE3's {text(there['re3'])}, "
    assert f"{said}NovelD's 0 {noveld:.1f} (here {here[0]:.1f})." in prose(EXPLORATION)


def test_rewards_with_forty_actors():
    wanted = {"setup": "MultiEnv, 40 actors", "frames": "50160000"}
    of = {
        m: each_seed(stored("methods.csv", method=m, **wanted))
        for m in ("ride", "rnd", "curiosity")
    }
    assert {len(seeds) for seeds in of.values()} == {5}
    ride, rnd, curiosity = map(text, of.values())
    said = f"after 50 million, five seeds: RIDE {ride}, RND {rnd}, Curiosity {curiosity}."
    assert said in prose(EXPLORATION)


def test_rewards_in_one_world_with_forty_actors():
    def of(method, setup):
        wanted = {"setup": f"{setup}, 40 actors", "frames": "50160000"}
        seeds = each_seed(stored("methods.csv", method=method, **wanted))
        return ", ".join(f"{value:.1f}" for value in seeds)

    ride, rnd, curiosity = (
        f"{of(method, 'DoorKey')} ({of(method, 'KeyCorridor')})"
        for method in ("ride", "rnd", "curiosity")
    )
    said = f"RIDE {ride}, seeds 0, 1; seed 0: RND {rnd}, Curiosity {curiosity}."
    assert f"In DoorKey (KeyCorridor): {said}" in prose(EXPLORATION)


@pytest.mark.parametrize("setup", ["DoorKey", "KeyCorridor"])
def test_rewards_in_one_world(setup):
    for name, cell in [*table(EXPLORATION, "pre-trained in")[setup].items()][1:]:
        assert cell == text(each_seed(after_33_million(setup, METHODS[name]))), name


def test_rewards_in_one_world_beside_cbet():
    def seeds(*which):
        return each_seed(after_33_million(*which))

    page = prose(EXPLORATION)
    ngu, cbet = seeds("KeyCorridor", "ngu-episodic", 0.001), seeds("KeyCorridor", "cbet")
    apart = intervals.difference(ngu, cbet)
    assert apart.low < 0 < apart.high
    strong = seeds("KeyCorridor", "ngu-episodic").mean()
    said = f"it has {strong:.1f} % (as strong as published: {text(ngu)}), C-BET {cbet.mean():.1f}."
    assert said in page
    lead = intervals.difference(seeds("MultiEnv", "ngu-episodic"), seeds("MultiEnv", "cbet"))
    assert f"{lead.text(1)} points more than C-BET" in page
    for setup, method in (("DoorKey", "re3"), ("DoorKey", "noveld"), ("KeyCorridor", "noveld")):
        apart = intervals.difference(seeds(setup, method), seeds(setup, "cbet"))
        assert apart.low < 0 < apart.high, (setup, method)  # as the page says
    behind = ("DoorKey", "count"), ("KeyCorridor", "ngu-episodic")
    both = [(setup, method) for setup in ("DoorKey", "KeyCorridor") for method in ("e3b", "ride")]
    for setup, method in (*behind, *both):
        apart = intervals.difference(seeds(setup, method), seeds(setup, "cbet"))
        assert apart.high < 0, (setup, method)


def test_ride_is_ahead_of_an_untrained_network_in_each_setup():
    untrained = each_seed([*study("study.csv", method="untrained", frames="0")])
    assert f"ahead of an untrained network ({untrained.mean():.1f})" in prose(EXPLORATION)
    for setup in ("MultiEnv", "DoorKey", "KeyCorridor"):
        ride = each_seed(after_33_million(setup, "ride"))
        assert intervals.difference(ride, untrained).low > 0, setup


def in_mazes(rows: Iterable[Row], by: str) -> dict[str, np.ndarray]:
    """Return success in the three ObstructedMazes in %, `by` seed or environment."""
    found = defaultdict(list)
    for row in rows:
        if row["environment"].startswith("ObstructedMaze"):
            found[row[by]].append(100 * float(row[SUCCESS]))
    return {name: np.array(shares) for name, shares in found.items()}


def test_keys_out_of_boxes():
    mazes = {m: in_mazes(after_33_million("MultiEnv", m), "environment") for m in ROWS.values()}
    means = {method: sorted(map(np.mean, each.values())) for method, each in mazes.items()}
    cbet, re3 = (f"{means[m][0]:.0f} to {means[m][-1]:.0f}" for m in ("cbet", "re3"))
    most = max(means[method][-1] for method in means.keys() - {"cbet", "re3"})
    said = f"({cbet} % in three mazes; RE3's {re3}, told apart in one; others {most:.0f} at most)"
    assert said in prose(EXPLORATION)
    leads = [intervals.difference(mazes["cbet"][m], mazes["re3"][m]) for m in mazes["cbet"]]
    assert sum(lead.low > 0 for lead in leads) == 1


OF_STUDY = {  # cells of the grid that a study has, too; others are in episodic.csv
    ("states", "never"): "count",
    ("states", "at random"): "count-resets",
    ("changes", "at random"): "changes",
    ("both", "never"): "cbet-no-resets",
    ("both", "at random"): "cbet",
}
REWARDED = {"states": "count", "changes": "ablation-changes", "both": "cbet"}
RESET = {"never": "never-reset", "at random": "random", "each episode": "episodic"}


def of_grid(what: str, when: str, frames: str) -> np.ndarray:
    """Return each seed's success with counts of `what` that are reset `when`."""
    variant = OF_STUDY.get((what, when), "")
    known = [*study("study.csv", setup="MultiEnv", method=variant, frames=frames)]
    own = {"method": REWARDED[what], "counts": RESET[when], "frames": frames}
    return each_seed(known or stored("episodic.csv", **own))


def test_states_and_changes():
    page, frames = prose(EXPLORATION), "33024000"
    for what, row in table(EXPLORATION, "", "never").items():
        for when in RESET:
            assert row[when] == text(of_grid(what, when, frames))
    for what, when, other in (
        ("both", "at random", "never"),
        ("both", "each episode", "never"),
        ("changes", "at random", "never"),
        ("changes", "each episode", "never"),
        ("states", "never", "at random"),
        ("states", "never", "each episode"),
    ):
        sides = (of_grid(what, each, frames) for each in (when, other))
        assert intervals.difference(*sides).text(1) in page


def times_to_succeed(method: str, task: str) -> tuple[list[str], int]:
    """Return the million frames to success of each run that learnt, and how many ran."""
    of_task = stored("fine-tuning.csv", stage="transfer", method=method, environment=task)
    reached = sorted(float(row["value"]) for row in those(of_task, metric=FRAMES_TO_SUCCEED))
    return [millions(frames) for frames in reached], len({row["seed"] for row in of_task})


def span_to_succeed(method: str, task: str, runs: int = 5) -> str:
    """Return the soonest and latest million frames to success, and of how many if not of all."""
    reached, ran = times_to_succeed(method, task)
    assert ran == runs, (method, task)
    return soonest_to_latest(reached, ran) if reached else NOT_REACHED


def soonest_to_latest(reached: list[str], ran: int) -> str:
    """Return the first and last of some times in order, and how many if not all have one."""
    ends = " to ".join(dict.fromkeys((reached[0], reached[-1])))
    return ends if len(reached) == ran else f"{ends} ({len(reached)})"


LEARNT, MEANS = "learnt, of 55 runs", "interquartile mean"


def fine_tuned_tasks() -> dict[str, Row]:
    """Return the rows of single tasks, without those of all tasks together."""
    rows = table(EXPLORATION, "task")
    return {task: row for task, row in rows.items() if task not in (LEARNT, MEANS)}


def test_fine_tuned_tasks():
    two, chance = {"Unlock", "DoorKey-8x8"}, ("ride", "rnd", "curiosity")
    alone = ("cbet", "e3b", "others", "rnd-normalized", *chance)
    times: dict[str, list[float]] = {name: [] for name in alone}
    for run in stored("fine-tuning.csv", stage="transfer", metric=FRAMES_TO_SUCCEED):
        if run["environment"] in EASY:
            name = run["method"].removesuffix("-fine-tuned")
            first = name if name in times else name.partition("-")[0]
            times[first if first in times else "others"].append(float(run["value"]))
    spans = {name: f"{millions(min(t))} to {millions(max(t))}" for name, t in times.items()}
    page = prose(EXPLORATION)
    said = "take C-BET's policies {cbet}, E3B's {e3b}, others here {others}."
    assert said.format(**spans) in page
    runs, span = len(times["rnd-normalized"]), spans["rnd-normalized"]
    said = f"learn {runs} of these 15 runs ({span}), two of 1Dlh ({{}}), "
    said += "one of 2Dlh ({});"
    mazes = [
        times_to_succeed("rnd-normalized-fine-tuned", f"ObstructedMaze-{m}")[0]
        for m in ("1Dlh", "2Dlh")
    ]
    assert said.format(*map(", ".join, mazes)) in page
    each = ", ".join(spans[name] for name in chance)
    assert f"only Unlock and DoorKey-8x8 ({each}; two of Curiosity's not)" in page
    for name in chance:
        ran = stored("fine-tuning.csv", method=f"{name}-fine-tuned", metric=FRAMES_TO_SUCCEED)
        assert {run["environment"] for run in ran} == two
        assert len(ran) == (4 if name == "curiosity" else 6)
    bare = stored("fine-tuning.csv", stage="tabula_rasa", method="none", metric=FRAMES_TO_SUCCEED)
    took = [float(run["value"]) for run in bare if run["environment"] in two]
    assert len(took) == 6
    assert (
        f"take {millions(min(took))} to {millions(max(took))} from nothing without bonus." in page
    )
    episodic = span_to_succeed("cbet-episodic-fine-tuned", "ObstructedMaze-2Dlhb")
    assert f"take as long, but {episodic} in 2Dlhb." in page
    tasks = fine_tuned_tasks()
    for task in tasks.keys() - {"ObstructedMaze-2Dlhb"}:
        both = (times_to_succeed(f"{m}-fine-tuned", task)[0] for m in ("cbet", "cbet-episodic"))
        slowest, its_slowest = (float(reached[-1]) for reached in both)
        assert its_slowest < 1.5 * slowest
    for task, row in tasks.items():
        for name, cell in row.items():
            if name != "task":
                method = f"{METHODS[name]}-fine-tuned"
                assert cell == span_to_succeed(method, task), (task, name)


def test_where_count_and_ngu_fail_and_where_they_are_soonest():
    page, tasks = prose(EXPLORATION), fine_tuned_tasks()
    said = "Count's never learn two, NGU's seldom those with boxes, and both are soonest"
    assert said in page
    assert sum(row["Count"] == NOT_REACHED for row in tasks.values()) == 2
    mazes = [row["NGU's"] for task, row in tasks.items() if "Maze" in task]
    assert all(cell == NOT_REACHED or int(cell[-2]) < 3 for cell in mazes)
    last = {
        name: float(np.mean(list(map(float, reached)))) if reached else np.inf
        for name in ("cbet", "count", "ngu-episodic", "re3", "noveld", "e3b")
        for reached in [times_to_succeed(f"{name}-fine-tuned", "KeyCorridorS6R3")[0]]
    }
    assert {"count", "ngu-episodic"} == {*sorted(last, key=last.__getitem__)[:2]}


def test_all_tasks_together():
    """How many runs of each method learnt, and the interquartile means of their returns."""
    known = [
        row
        for row in results.read(EXPERIMENTS / "results" / "fine-tuning.csv")
        if row.method.endswith("-fine-tuned")
    ]
    tried = [{row.environment for row in known if row.method == f"{m}-fine-tuned"} for m in TUNED]
    tasks = set.intersection(*tried)
    found = Findings(row for row in known if row.environment in tasks)
    means = {row[1]: row[3] for row in tables.aggregates(found).rows}
    said = [means[f"{title(method)} fine tuned"] for method in TUNED]
    assert said[8:] == ["0.00 [0.00, 0.00]"] * 3
    page = prose(EXPLORATION)
    assert len(tasks) == 11
    reached = (row for row in known if row.metric == FRAMES_TO_SUCCEED)
    learnt = Counter(row.method for row in reached if row.environment in tasks)
    of_each = [learnt[f"{m}-fine-tuned"] for m in TUNED]
    together = table(EXPLORATION, "task")
    names = together[LEARNT].keys() - {"task"}
    assert {METHODS[name] for name in names} == {*TUNED[:7]} - {"cbet-episodic"}
    for name in names:
        way = TUNED.index(METHODS[name])
        assert together[LEARNT][name] == str(of_each[way]), name
        assert together[MEANS][name] == said[way], name
    others = "C-BET's episodic policies learn {} ({}); of 33, normalized RND's {} ({}), RIDE's {}, "
    others += "RND's {}, Curiosity's {} (0.00)."
    numbers = of_each[1], said[1], of_each[7], said[7], *of_each[8:]
    assert others.format(*numbers) in page
    assert of_each[:2] == [55, 55]
    assert f"NovelD's {of_each[2]} of 55 runs, RE3's {of_each[3]};" in page
    for way, number in zip(TUNED, [55] * 7 + [33] * 4, strict=True):
        ran = {(row.environment, row.seed) for row in known if row.method == f"{way}-fine-tuned"}
        assert len({run for run in ran if run[0] in tasks}) == number


OF_SETUPS = {
    "C-BET, 40 actors, 50 M frames (five seeds)": ("study-40-actors.csv", "cbet", "50160000"),
    "Count, 40 actors, 50 M (five seeds)": ("study-40-actors.csv", "count", "50160000"),
    "C-BET, 128 actors, 33 M": ("study.csv", "cbet", "33024000"),
    "Count, 33 M": ("study.csv", "count", "33024000"),
    "RIDE, 33 M": ("study.csv", "ride", "33024000"),
    "Curiosity, 33 M": ("study.csv", "curiosity", "33024000"),
    "RND, 33 M": ("study.csv", "rnd", "33024000"),
    "untrained network (eleven seeds)": ("study.csv", "untrained", "0"),
}


@pytest.mark.parametrize("name", OF_SETUPS)
def test_the_mean_of_three_setups(name):
    file, method, frames = OF_SETUPS[name]
    ran = in_all_setups([*study(file, method=method, frames=frames)])
    row = table(RESULTS, "mean of three setups")[name]
    assert row["interactions"] == text(each_seed(ran, INTERACTIONS))
    assert row["success"] == text(each_seed(ran))


def test_the_first_page_has_the_same_numbers():
    results = table(RESULTS, "mean of three setups")
    for name, row in table("../README.md", "after pre-training").items():
        there = next(cells for start, cells in results.items() if start.startswith(name))
        assert [*row.values()][1:] == [*there.values()][1:], name


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


def test_a_task_with_the_published_network():
    points = defaultdict(list)
    for row in stored("paper-network.csv", stage="transfer", metric="success"):
        points[row["method"]].append((int(row["frames"]), 100 * float(row["value"])))
    for method in ("cbet", "count"):
        assert {frames for frames, _ in points[method]} >= {3_360_000, 25_200_000}
        assert all(success < 1 for frames, success in points[method] if frames >= 3_360_000)

    cbet, count = (
        " and ".join(f"{success:.0f}" for frames, success in points[method] if frames == 7_200_000)
        for method in ("cbet-near", "count-near")
    )
    text_of_page = prose(RESULTS)
    assert f"it is {cbet} % after 7.2 M, Count's {count}." in text_of_page


def test_speeds_on_a_gpu():
    rows = [
        row
        for name in ("worlds", "training")
        for row in json.loads(
            (EXPERIMENTS / "results" / f"benchmark-h100-{name}.json").read_text()
        )["rows"]
    ]
    measured = {row["what"]: row for row in rows}
    training = "training, laptop preset, float32, seeds: "
    page = (EXPERIMENTS / "benchmarks/README.md").read_text()
    for start, name, beside, digits in (
        ("worlds, 8,192 at once: steps", "cbet-jax, 8192 worlds", "navix at its fastest", -5),
        ("`laptop` preset, one seed: frames", f"{training}1", None, -3),
        ("eight seeds", f"{training}8", f"{training}1", -3),
    ):
        speed = f"{round(measured[name]['value'], digits):,.0f}"
        (line,) = [line for line in page.splitlines() if line.startswith(f"| {start} |")]
        assert f"| {speed} |" in line
        if beside:
            assert f"{measured[name]['ratios'][beside]['value']:.1f}" in line


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
    "squared sum, egocentric changes": "sum-squared-egocentric",
    "C-BET, egocentric changes": "cbet-egocentric",
    "sum, egocentric changes": "sum-egocentric",
    "sum inside, egocentric changes": "sum-inside-egocentric",
    "changes only, egocentric": "changes-egocentric",
}


def chance_to_hold(seeds: int) -> float:
    """Return how often an interval holds a published mean, of seven seeds, of the same truth."""
    end = student.ppf(0.975, seeds - 1) / np.sqrt(1 + seeds / 7)
    return float(2 * student.cdf(end, seeds - 1) - 1)


def test_the_ablation():
    where, printed, held, expected = " ".join(THREE), published(), {}, 0.0
    for name, row in table(RESULTS, "policy", "mean of three setups").items():
        seeds = seeds_in(THREE, VARIANTS[name])
        assert row["mean of three setups"] == text(seeds), name
        of = where, VARIANTS[name], SUCCESS
        theirs = {number for (_, *key), number in printed.items() if tuple(key) == of}
        assert row["published (50 M)"] in theirs, name
        mean = intervals.mean(seeds)
        held[name] = mean.low <= float(row["published (50 M)"]) <= mean.high
        expected += chance_to_hold(len(seeds))
    said = f"Our intervals hold {sum(held.values())} of {len(held)} published numbers"
    assert f"{said} (expected: {expected:.0f})." in prose(RESULTS)
    with_resets, without = (
        float(printed["resets", where, method, SUCCESS]) for method in ("cbet", "cbet-no-resets")
    )
    needs = table(RESULTS, "claim of the paper")["C-BET needs resets"]["here"]
    assert f"without (published {with_resets - without:.1f})" in needs


def test_where_policies_of_multienv_succeed_and_interact():
    """The claims on single environments, with 40 actors after 50 million frames."""

    def means(method: str, metric: str) -> dict[str, float]:
        found = defaultdict(list)
        for row in study("study-40-actors.csv", setup="MultiEnv", method=method, frames="50160000"):
            found[row["environment"]].append(float(row[metric]))
        assert {len(seeds) for seeds in found.values()} == {5}
        return {environment: float(np.mean(seeds)) for environment, seeds in found.items()}

    def span(shares: Iterable[float]) -> str:
        low, *_, high = sorted(shares)
        return f"{100 * low:.0f} to {100 * high:.0f}"

    def in_boxes(method: str) -> str:
        made = means(method, INTERACTIONS)
        mazes = (number for name, number in made.items() if name.startswith("ObstructedMaze"))
        return f"{100 * sum(mazes) / sum(made.values()):.0f}"

    claims = table(RESULTS, "claim of the paper")
    cbet, count = (means(method, SUCCESS) for method in ("cbet", "count"))
    assert claims["it succeeds in all ten environments"]["here"] == f"{span(cbet.values())} %"
    familiar = span(count.pop(name) for name in EASY)
    said = f"{familiar} %; in others {span(count.values())}"
    assert claims["Count succeeds in the five familiar ones only"]["here"] == said
    said = f"{in_boxes('count')} % (C-BET: {in_boxes('cbet')})"
    assert claims["most of its interactions are in ObstructedMazes"]["here"] == said


THREE = ("MultiEnv", "DoorKey", "KeyCorridor")
MULTI, DOOR, NOISY = ("MultiEnv",), ("DoorKey",), ("NoisyTV",)
WHOLE = "study.csv", "33024000"
WITH_40_ACTORS = "study-40-actors.csv", "50160000"
CLAIMS = (  # of the paper -> table and frames, metric, and setup and method of both sides
    ("C-BET's policy succeeds most", WITH_40_ACTORS, SUCCESS, (THREE, "cbet"), (THREE, "count")),
    ("it makes the most", WITH_40_ACTORS, INTERACTIONS, (THREE, "cbet"), (THREE, "count")),
    ("RIDE, Curiosity, RND play", WHOLE, INTERACTIONS, (THREE, "ride"), None),
    ("RIDE, Curiosity, RND play", WHOLE, INTERACTIONS, (THREE, "rnd"), None),
    *(
        ("MultiEnv is the best", WHOLE, SUCCESS, (("MultiEnv",), "cbet"), other)
        for other in ((("DoorKey",), "cbet"), (("KeyCorridor",), "cbet"))
    ),
    *(
        (claim, when, SUCCESS, (setups, ours), (setups, theirs))
        for when, setups, claim, ours, theirs in (
            (WHOLE, MULTI, "panoramas are for changes", "cbet", "cbet-egocentric"),
            (WHOLE, MULTI, "panoramas are for changes", "sum", "sum-egocentric"),
            (WHOLE, MULTI, "panoramas are for changes", "changes", "changes-egocentric"),
            (WHOLE, MULTI, "panoramas are for changes", "sum-inside", "sum-inside-egocentric"),
            (WHOLE, MULTI, "C-BET needs resets", "cbet", "cbet-no-resets"),
            (WHOLE, MULTI, "resets help Count", "count-resets", "count"),
            (WHOLE, NOISY, "with noise, Count needs", "count-resets", "count"),
            (WHOLE, THREE, "panoramas are for changes", "cbet", "cbet-egocentric"),
            (WHOLE, THREE, "panoramas are for changes", "changes", "changes-egocentric"),
            (WHOLE, THREE, "panoramas are for changes", "sum", "sum-egocentric"),
            (WHOLE, THREE, "panoramas are for changes", "sum-inside", "sum-inside-egocentric"),
            (WHOLE, THREE, "and not for states", "count-resets", "count-resets-panoramic"),
            (WHOLE, DOOR, "and not for states", "count-resets", "count-resets-panoramic"),
            (WHOLE, THREE, "and not for states", "states-squared", "states-squared-panoramic"),
            (WHOLE, DOOR, "and not for states", "states-squared", "states-squared-panoramic"),
            (WHOLE, THREE, "C-BET needs resets", "cbet", "cbet-no-resets"),
            (WHOLE, THREE, "resets help Count", "count-resets", "count"),
            (WHOLE, DOOR, "resets help Count", "count-resets", "count"),
            (WHOLE, NOISY, "C-BET, too", "cbet", "cbet-no-resets"),
        )
    ),
)


def seeds_in(
    setups: tuple[str, ...], method: str, where: tuple[str, str] = WHOLE, metric: str = SUCCESS
) -> np.ndarray:
    """Return each seed's mean in some setups; in all three, of the seeds that were in all."""
    file, frames = where
    wanted = {"method": method, "frames": frames}
    ran = [row for setup in setups for row in study(file, setup=setup, **wanted)]
    return each_seed(in_all_setups(ran) if setups == THREE else ran, metric)


def lead_in(setups: tuple[str, ...], ours: str, theirs: str) -> intervals.Estimate:
    """Return how far a method is ahead of another one after 33 million frames."""
    return intervals.difference(seeds_in(setups, ours), seeds_in(setups, theirs))


@pytest.mark.parametrize(("claim", "where", "metric", "ours", "theirs"), CLAIMS)
def test_claims(claim, where, metric, ours, theirs):
    untrained = ("",), "untrained", (where[0], "0"), metric
    against = seeds_in(*theirs, where, metric) if theirs else seeds_in(*untrained)
    (said,) = [
        row["here"]
        for name, row in table(RESULTS, "claim of the paper").items()
        if name.startswith(claim)
    ]
    assert intervals.difference(seeds_in(*ours, where, metric), against).text(1) in said


def test_combinations_in_all_setups_after_33_million_frames():
    claims = table(RESULTS, "claim of the paper")
    methods = ("cbet", "product", "sum", "sum-squared", "sum-inside")
    leads = [lead_in(THREE, method, "changes") for method in methods]
    cbet, product, total, squared, inside = (each.text(1) for each in leads)
    said = f"C-BET by {cbet} points, product {product}, sum {total}"
    said += f", squared sum {squared}, sum inside {inside}"
    assert claims["states and changes are ahead of changes only"]["here"] == said
    assert all(each.low > 0 for each in leads)
    printed, where = published(), " ".join(THREE)
    theirs = [float(printed["combinations", where, method, SUCCESS]) for method in methods]
    points = ("", " points"), ("sum ", ""), ("squared sum ", ""), ("sum inside ", "")
    said = []
    for (name, unit), other, number in zip(points, methods[1:], theirs[1:], strict=True):
        ahead = lead_in(THREE, "cbet", other)
        assert 0 < ahead.low < theirs[0] - number < ahead.high, other
        assert len(seeds_in(THREE, other)) == 5
        note = f"published {theirs[0] - number:.1f}" if unit else f"{theirs[0] - number:.1f}"
        said.append(f"{name}{ahead.text(1)}{unit} ({note})")
    claim = claims["C-BET is ahead of other combinations"]["here"]
    apart = "KeyCorridor (all), DoorKey (sum), MultiEnv (squared sum)"
    ends = f"not told apart in {apart}, nor before two seeds were added"
    assert claim == f"in all three of the product by {', '.join(said)}; {ends}"
    for other in methods[1:]:
        alone = {setup: lead_in((setup,), "cbet", other) for setup in THREE}
        unclear = {setup for setup, lead in alone.items() if lead.low < 0 < lead.high}
        named = {"sum": {"DoorKey"}, "sum-squared": {"MultiEnv"}}.get(other, set())
        assert unclear == {"KeyCorridor"} | named, other
        before = intervals.difference(seeds_in(THREE, "cbet"), seeds_in(THREE, other)[:3])
        assert before.low < 0 < before.high, other


def test_panoramas_that_make_no_difference_after_33_million_frames():
    """Pairs with and without them that are not told apart."""
    claims = table(RESULTS, "claim of the paper")
    for name, said, setups, pairs in (
        (
            "panoramas are for changes",
            "product and squared sum not told apart",
            (THREE, MULTI),
            {"product": "product-egocentric", "sum-squared": "sum-squared-egocentric"},
        ),
        (
            "and not for states",
            "in MultiEnv and KeyCorridor not told apart",
            (MULTI, ("KeyCorridor",)),
            {
                "count-resets": "count-resets-panoramic",
                "states-squared": "states-squared-panoramic",
            },
        ),
    ):
        assert claims[name]["here"].endswith(said)
        for pair in pairs.items():
            for setup in setups:
                apart = lead_in(setup, *pair)
                assert apart.low < 0 < apart.high, (setup, pair)


def test_mazes_after_combinations_in_multienv():
    """Mean success in three mazes with boxes, of the policies after 33 million frames."""

    def seeds(method):
        ran = study("study.csv", setup="MultiEnv", method=method, frames="33024000")
        found = in_mazes(ran, "seed")
        assert {len(mazes) for mazes in found.values()} == {3}
        return np.array([np.mean(mazes) for mazes in found.values()])

    claims = table(RESULTS, "claim of the paper")
    said = claims["from MultiEnv it alone transfers to ObstructedMazes"]["here"]
    others = ("sum inside", "sum", "product", "squared sum")
    ahead = [intervals.difference(seeds("cbet"), seeds(VARIANTS[other])) for other in others]
    means = ", ".join(f"{other} {np.mean(seeds(VARIANTS[other])):.1f}" for other in others)
    own = f"{np.mean(seeds('cbet')):.1f} % in three"
    assert said == f"{own}, {means}: ahead of each by {ahead[0].text(1)} or more"
    assert ahead[0].value == min(one.value for one in ahead)
    assert all(one.low > 0 for one in ahead)


def test_noisy_tv():
    for name, row in table(RESULTS, "policy", "MultiRoom").items():
        for setup in ("MultiRoom", "NoisyTV"):
            method = VARIANTS[name]
            ran = [*study("study.csv", setup=setup, method=method, frames="33024000")]
            assert row[setup] == text(each_seed(ran)), (name, setup)


@pytest.fixture(scope="module")
def printed_cells():
    """Return the cells of a printed table: our seeds, in the unit of the paper's numbers."""
    found = Findings(results.read(EXPERIMENTS / "results" / "study.csv"))

    def of(name: str) -> list[tuple[tables.Cell, np.ndarray]]:
        (printed,) = [table for table in TABLES if table.name == name]
        return [
            (cell, printed_scale(cell.metric) * np.array([*cell.ours.values.values()]))
            for cell in tables.cells(printed, found)
            if cell.ours
        ]

    return of


def test_actions_with_noise(printed_cells):
    cells, held = printed_cells("noisy_tv_actions"), 0
    more, dropped, expected = [], {}, 0.0
    for cell, seeds in cells:
        if cell.metric == "share_of_toggle":
            more.append(seeds.mean() - float(cell.published))
        if cell.metric == "share_of_drop":
            dropped[*cell.setups, cell.method] = seeds
        mean = intervals.mean(seeds)
        held += mean.low <= float(cell.published) <= mean.high
        expected += chance_to_hold(len(seeds))
    said = f"Our intervals hold {held} of {len(cells)} published action shares and entropies"
    said += f" (expected: {expected:.0f}). All toggle more than published, "
    assert f"{said}by {min(more):.0f} to {max(more):.0f} points." in prose(RESULTS)
    added = [
        intervals.difference(dropped["NoisyTV", method], dropped["MultiRoom", method])
        for method in NOISY_METHODS
    ]
    assert all(difference.low > 0 for difference in added)
    least, *_, most = sorted(difference.value for difference in added)
    claims = table(RESULTS, "claim of the paper")
    assert claims["with noise, all drop more"]["here"] == f"by {least:.0f} to {most:.0f} points"


def test_turns(printed_cells):
    ours, theirs = defaultdict(float), defaultdict(float)
    for cell, seeds in printed_cells("actions"):
        if cell.metric in ("share_of_left", "share_of_right"):
            ours[cell.method] += seeds
            theirs[cell.method] += float(cell.published)
    name = "changes-egocentric"
    assert intervals.mean(ours[name]).low > 50
    said = f"{ours[name].mean():.0f} % of its actions (published {theirs[name]:.0f}), "
    said += f"C-BET {ours['cbet'].mean():.0f} ({theirs['cbet']:.0f})"
    claims = table(RESULTS, "claim of the paper")
    assert claims["`changes only` mostly turns if changes are egocentric"]["here"] == said


OF_TASKS = {
    "C-BET's policy": ("study-tasks.csv", "transfer", "cbet"),
    "fine-tuned": ("fine-tuning.csv", "transfer", "cbet-fine-tuned"),
    "Count's policy": ("study-tasks.csv", "transfer", "count"),
    "C-BET from nothing": ("fine-tuning.csv", "tabula_rasa", "cbet"),
}


def task_cell(task: str, column: str) -> str:
    """Return the soonest and latest million frames to the task's goal, as the page has them."""
    file, stage, method = OF_TASKS[column]
    ran = stored(file, stage=stage, method=method, environment=task)
    seeds = {row["seed"] for row in ran}
    assert len(seeds) == 5, (task, column)
    to_success = "2Dlh" in task or (stage == "tabula_rasa" and "Room" in task)
    goal = FRAMES_TO_SUCCEED if to_success else FRAMES_TO_SOLVE
    frames = [float(row["value"]) for row in those(ran, metric=goal)]
    if not frames:
        last = {row["seed"]: float(row["frames"]) for row in those(ran, metric="success")}
        longest = [f"{frames / 1e6:.0f}" for frames in sorted(last.values())]
        return f"not in {soonest_to_latest(longest, len(seeds))}"
    cell = soonest_to_latest(list(map(millions, sorted(frames))), len(seeds))
    return f"95 %: {cell}" if to_success else cell


def test_tasks():
    shown = table(RESULTS, "task (published frames)")
    for name, row in shown.items():
        for column in OF_TASKS:
            task = name.split()[0]
            assert row[column] == task_cell(task, column), (task, column)
    from_nothing = [cells["C-BET from nothing"] for cells in shown.values()]
    assert sum("not in" not in cell for cell in from_nothing) == 7
    assert "learn all ten in five of five seeds (from nothing seven)" in prose("../README.md")


def test_tasks_are_kept_until_their_runs_end():
    least = {}  # the lowest success since the first of 95 %, after its frames; and the last one
    for file, stage, method in OF_TASKS.values():
        curves = defaultdict(list)
        for row in stored(file, stage=stage, method=method, metric="success"):
            if row["environment"] in TASK_FRAMES:
                share = float(row["value"]) / SOLVABLE.get(row["environment"], 1.0)
                curves[row["environment"], row["seed"]].append((float(row["frames"]), share))
        for run, points in curves.items():
            after = [*dropwhile(lambda point: point[1] < SUCCEEDS, sorted(points))]
            lowest = min(after, key=lambda point: point[1], default=None)
            least |= {(stage, method, *run): (*lowest, after[-1][1])} if after else {}
    later, at_first, fallen = sorted(
        (run for run, (_, lowest, _) in least.items() if lowest < SUCCEEDS),
        key=lambda run: -least[run][1],
    )
    assert fallen == ("tabula_rasa", "cbet", "MultiRoom-N12-S10", "0")
    assert least[fallen][2] >= SUCCEEDS  # it came back
    assert least[at_first][0] < 200_000 < least[later][0]
    page = prose(RESULTS)
    said = f"In {len(least) - 3} of {len(least)} runs of the first table, success stayed at 95 %"
    assert said in page
    lowest = " and, at first, ".join(f"{100 * least[run][1]:.1f}" for run in (later, at_first))
    assert f"Two fell to {lowest} %; one, from nothing in N12, to 0 %" in page


LAPTOP = {"target_kl": "0.02", "forward_kl": "yes"}
WEIGHTS = {"no": "0.0005", "yes": "0.001"}  # frozen, fine-tuned
ARMS = {
    "neither, 1e-4": {},
    "`--optimizer.target-kl 0.02`": {"target_kl": "0.02"},
    "`--loss.forward-kl`": {"forward_kl": "yes"},
    "both, weight 5e-4": {**LAPTOP, "entropy_weight": "0.0005"},
    "only the first, 5e-4": {"target_kl": "0.02", "entropy_weight": "0.0005"},
    "neither, 5e-4": {"entropy_weight": "0.0005"},
}
LEARNT_TWICE = [(f"MultiRoom-{name}", "0") for name in ("N6", "N12-S10")]
LEARNT_TWICE += [(name, "1") for name in ("ObstructedMaze-2Dlh", "MultiRoom-N12-S10")]
KEPT = [("MultiRoom-N6", "no"), ("ObstructedMaze-2Dlh", "no")]  # and whether fine-tuned
KEPT += [(name, "yes") for name in ("MultiRoom-N6", "ObstructedMaze-2Dlh", "MultiRoom-N12-S10")]


def played_on(environment: str, seed: str, **settings: str) -> tuple[int, np.ndarray]:
    """Return the frames to 95 % over 0.1 million, and each later success over so many."""
    usual = {"target_kl": "", "forward_kl": "no", "entropy_weight": "0.0001", "largest_step": "1"}
    usual |= {"fine_tune": "no", "max_gradient_norm": "40", "environment": environment}
    ran = stored("played-on.csv", **{**usual, **settings}, seed=seed)
    rows = [*dropwhile(lambda row: float(row["success"]) < SUCCEEDS, ran)]
    shares = np.array([float(row["success"]) for row in rows[1:]])
    return int(rows[0]["frames"]) if rows else 0, shares


def below_half(*runs: np.ndarray) -> str:
    """Return how many million frames of runs had a success of less than 50 %, of how many."""
    shares = np.concatenate(runs)
    return f"{(shares < 0.5).sum() / 10:.1f} of {len(shares) / 10:.0f}"


def test_tasks_played_on():
    page = prose(RESULTS)
    for name, row in table(RESULTS, "near the frozen policy in N12").items():
        runs = [played_on("MultiRoom-N12-S10", seed, **ARMS[name])[1] for seed in "01234"]
        runs = [after for after in runs if len(after)]
        assert (row["below 50 %"], row["runs"]) == (below_half(*runs), str(len(runs))), name
    kept = [played_on("MultiRoom-N6", "0")[1]]
    kept += [played_on("ObstructedMaze-2Dlh", seed)[1] for seed in "01"]
    assert min(len(after) for after in kept) > 300
    assert f"N6 and 2Dlh are kept ({min(map(min, kept)):.0%}".replace("%", " %") in page
    ratios = sorted(
        played_on(*run, **ARMS["both, weight 5e-4"])[0] / played_on(*run)[0] for run in LEARNT_TWICE
    )
    assert f"{ratios[0]:.1f} to {ratios[-1]:.1f} times the frames until 95 %" in page
    kept = [
        played_on(name, seed, **LAPTOP, fine_tune=tuned, entropy_weight=WEIGHTS[tuned])[1]
        for name, tuned in KEPT
        for seed in "01234"
    ]
    assert min(len(after) for after in kept) > 240
    lowest = int(100 * min(map(min, kept)))
    played = sum(map(len, kept)) / 10
    said = f"fine-tuned copies stay above {lowest} % ({played:.0f} M, {len(kept)} runs)"
    assert said in page


def test_tasks_with_the_former_settings():
    def frames(file: str, column: str, **wanted: str) -> dict[tuple[str, str], float]:
        rows = [row for row in stored(file, **wanted) if row[column]]
        return {(row["environment"], row["seed"]): float(row[column]) for row in rows}

    page, file = prose(RESULTS), "tasks-former-settings.csv"
    former = frames(file, FRAMES_TO_SOLVE, method="cbet")
    now = frames("study-tasks.csv", "value", method="cbet", metric=FRAMES_TO_SOLVE)
    ratios = np.array([now[run] / former[run] for run in former.keys() & now.keys()])
    said = f"{len(ratios)} of C-BET's {len(former)} runs {ratios.min():.1f} to {ratios.max():.1f}"
    said += f", mean {np.exp(np.log(ratios).mean()):.1f}; three in 2Dlh end before)"
    assert said in page
    assert [task for task, _ in former.keys() - now.keys()] == ["ObstructedMaze-2Dlh"] * 3
    of_count = frames(file, FRAMES_TO_SUCCEED, method="count", environment="ObstructedMaze-2Dlh")
    assert len(of_count) == 3
    span = soonest_to_latest([*map(millions, sorted(of_count.values()))], 3)
    assert f"three of Count's learnt 2Dlh in {span}." in page


def test_where_counts_policies_are_sooner():
    """Than C-BET's, both frozen."""
    said = table(RESULTS, "claim of the paper")["C-BET's policy is best for tasks"]["here"]
    sooner, alike = said.split(", not told apart in ")
    for task in EASY | {"ObstructedMaze-1Dlh"}:
        both = (
            stored("study-tasks.csv", method=method, environment=task, metric=FRAMES_TO_SOLVE)
            for method in ("cbet", "count")
        )
        later = intervals.difference(*(np.array([float(x["value"]) for x in of]) for of in both))
        assert later.high >= 0
        assert re.search(rf"\b{task}\b", sooner if later.low > 0 else alike), task


def test_hard_tasks_near_the_frozen_policy():
    claims = table(RESULTS, "claim of the paper")

    def played(method: str, task: str) -> tuple[list[float], float]:
        """Return the frames to success of those that learnt it, and the fewest of the others."""
        ran = stored("study-tasks.csv", stage="transfer", method=method, environment=task)
        reached = {x["seed"]: float(x["value"]) for x in those(ran, metric=FRAMES_TO_SUCCEED)}
        last = {x["seed"]: float(x["frames"]) for x in those(ran, metric="success")}
        assert last.keys() == {*"01234"}
        others = [frames for seed, frames in last.items() if seed not in reached]
        return sorted(reached.values()), min(others, default=np.inf)

    learnt, others = played("count", "MultiRoom-N6")
    assert len(learnt) == 3
    said = f"Count's learns it with three seeds of five in {others / 1e6:.0f} M"
    assert said in claims["only C-BET's transfers to MultiRoom-N6"]["here"]
    assert len(played("cbet", "MultiRoom-N12-S10")[0]) == 5
    said = "95 % in five of five seeds near the frozen policy"
    assert said in claims["no method learns MultiRoom-N12-S10"]["here"]
    learnt, _ = played("cbet", "ObstructedMaze-2Dlhb")
    assert len(learnt) == 5
    none, others = played("count", "ObstructedMaze-2Dlhb")
    assert not none
    said = f"frozen: in {learnt[0] / 1e6:.0f} to {learnt[-1] / 1e6:.0f} M, Count's not in "
    said += f"{others / 1e6:.0f}; fine-tuned"
    assert said in claims["it alone solves ObstructedMaze-2Dlhb"]["here"]


def test_weights_of_tasks():
    """Frames to success with 1e-5, 1e-4 and 1e-3; the seed is no reported one."""

    def times(stage: str, method: str, task: str = "KeyCorridorS3R3") -> str:
        here = {"stage": stage, "method": method, "environment": task}
        ran = stored("task-weights.csv", seed="100", **here)
        ran.sort(key=lambda row: float(row["entropy_weight"]))
        assert [float(row["entropy_weight"]) for row in ran] == [1e-5, 1e-4, 1e-3]
        frames = [row["frames_to_success_0.95"] for row in ran]
        return ", ".join(millions(float(each)) if each else NOT_REACHED for each in frames)

    arms = {"C-BET": "cbet", "Count": "count", "RIDE": "ride", "no bonus": "none"}
    shown = table(RESULTS, "", *arms)
    assert shown.keys() == {"KeyCorridorS3R3", "DoorKey-8x8", "UnlockPickup"}
    for task, row in shown.items():
        for name, method in arms.items():
            assert row[name] == times("tabula_rasa", method, task), (task, name)
    assert f"C-BET's policy takes {times('transfer', 'cbet')} in KeyCorridorS3R3." in prose(RESULTS)


def test_the_weight_that_is_best_in_one_task_in_others():
    """Entropy weight 1e-3, chosen with another seed in KeyCorridorS3R3, and 1e-4."""
    four = ("DoorKey-8x8", "KeyCorridorS3R3", "UnlockPickup", "ObstructedMaze-1Dlh")

    def times(method: str, task: str, weight: str = "1e-3") -> list[float]:
        here = {"stage": "tabula_rasa", "method": method, "environment": task}
        ran = stored("task-weights.csv", entropy_weight=weight, **here)
        frames = [row["frames_to_success_0.95"] for row in ran if row["seed"] in "234"]
        assert len(frames) == 3
        return [float(each) for each in frames if each]

    def before(method: str, task: str) -> list[float]:
        ran = stored("fine-tuning.csv", stage="tabula_rasa", method=method, environment=task)
        reached = those(ran, metric=FRAMES_TO_SUCCEED)
        return [float(row["value"]) for row in reached if row["seed"] in "234"]

    def span(found, method: str) -> str:
        frames = np.concatenate([found(method, task) for task in four])
        assert len(frames) == 12
        return f"{millions(min(frames))} to {millions(max(frames))}"

    count, cbet = ((span(times, name), span(before, name)) for name in ("count", "cbet"))
    said = f"Count from nothing takes {count[0]} in {', '.join(four[:3])} and {four[3]}"
    said += f" (1e-4: {count[1]}), C-BET {cbet[0]} ({cbet[1]}); neither learns MultiRoom-N6, N12,"
    only = times("count", "BlockedUnlockPickup")
    assert len(only) == 3
    said += " 2Dlh or 2Dlhb, Count alone BlockedUnlockPickup "
    said += f"({millions(min(only))} to {millions(max(only))})."
    none = np.concatenate([times("none", task, "1e-5") for task in four[1:3]])
    assert len(none) == 6
    said += f" No bonus with 1e-5: {millions(min(none))} to {millions(max(none))} in "
    said += f"{', '.join(four[1:3])}."
    assert said in prose(RESULTS)
    for method in ("count", "cbet"):
        assert len(before(method, "MultiRoom-N6")) == 3
        assert not before(method, "BlockedUnlockPickup")
        assert not times(method, "MultiRoom-N6") + times(method, "MultiRoom-N12-S10")
    assert not times("cbet", "BlockedUnlockPickup")
    for task in ("ObstructedMaze-2Dlh", "ObstructedMaze-2Dlhb"):
        assert not times("count", task) + times("cbet", task)


def test_tasks_of_ride():
    """Its policy beside its reward from nothing, and beside no bonus."""

    def times(file, stage, method, seeds, task):
        ran = stored(file, stage=stage, method=method, environment=task)
        assert {row["seed"] for row in ran} == {*seeds}, (stage, method, task)
        reached = those(ran, metric=FRAMES_TO_SOLVE)
        return np.sort([float(row["value"]) for row in reached])

    arms = {
        "RIDE's policy": ("study-tasks.csv", "transfer", "ride", "234"),
        "RND's policy": ("study-tasks.csv", "transfer", "rnd", "012"),
        "Curiosity's policy": ("study-tasks.csv", "transfer", "curiosity", "012"),
        "RIDE from nothing": ("fine-tuning.csv", "tabula_rasa", "ride", "234"),
        "Count from nothing": ("fine-tuning.csv", "tabula_rasa", "count", "234"),
        "no bonus": ("fine-tuning.csv", "tabula_rasa", "none", "234"),
    }
    shown, easy = table(RESULTS, "", *arms), ("Unlock", "DoorKey-8x8")
    together = shown.pop(", ".join(easy))
    took = {(task, arm): times(*of, task) for task in (*easy, *shown) for arm, of in arms.items()}
    for task, row in shown.items():
        for arm in arms:
            cells = [*map(millions, took[task, arm]), NOT_REACHED, NOT_REACHED, NOT_REACHED]
            assert row[arm] == ", ".join(cells[:3]), (task, arm)
    page = prose(RESULTS)
    by_count = ("MultiRoom-N6", "ObstructedMaze-1Dlh")
    of_count = np.concatenate([times(*arms["Count from nothing"], task) for task in by_count])
    spans = [np.concatenate([took[task, arm] for task in easy]) for arm in arms]
    assert {len(frames) for frames in (of_count, *spans)} == {6}
    *said, more = [f"{millions(min(x))} to {millions(max(x))}" for x in (*spans, of_count)]
    assert [*together.values()] == ["Unlock, DoorKey-8x8", *said]
    (once,) = times(*arms["Curiosity's policy"], "ObstructedMaze-1Dlh")
    assert f"but one seed of Curiosity's ObstructedMaze-1Dlh ({millions(once)}):" in page
    assert not len(took["UnlockPickup", "RND's policy"])
    said = f"Count from nothing learns MultiRoom-N6 and ObstructedMaze-1Dlh, too ({more}), "
    by_ride = ("MultiRoom-N6", "MultiRoom-N12-S10")
    of_ride = [times(*arms["RIDE from nothing"], task) for task in by_ride]
    assert [len(frames) for frames in of_ride] == [2, 2]
    six, twelve = (", ".join([*map(millions, frames), NOT_REACHED]) for frames in of_ride)
    said += f"no other; RIDE MultiRoom-N6 ({six}) and N12 ({twelve}), no other."
    assert said in page
    for task in TASK_FRAMES.keys() - {*easy, *shown}:
        assert bool(len(times(*arms["RIDE from nothing"], task))) == (task in by_ride)
        for arm in ("RIDE's policy", "RND's policy", "Curiosity's policy", "no bonus"):
            once = (arm, task) == ("Curiosity's policy", "ObstructedMaze-1Dlh")
            assert len(times(*arms[arm], task)) == once, (arm, task)
        assert bool(len(times(*arms["Count from nothing"], task))) == (task in by_count)

    def later(task, other):
        return intervals.difference(took[task, "RIDE's policy"] / 1e6, took[task, other] / 1e6)

    for task in {task for task, _ in took} - {"KeyCorridorS3R3"}:
        assert later(task, "no bonus").low < 0 < later(task, "no bonus").high
    # The third seed without bonus would have taken longer.
    assert later("KeyCorridorS3R3", "no bonus").low < 0
    more = later("KeyCorridorS3R3", "RIDE from nothing")
    fewer = later("Unlock", "RIDE from nothing")
    fewer = fewer._replace(value=-fewer.value, low=-fewer.high, high=-fewer.low)
    assert f"it takes {more.text(1)} million frames more than RIDE from nothing" in page
    said = f"in Unlock {fewer.text(1)} fewer; it learns no MultiRoom, which RIDE does;"
    assert said in page  # both are counted above


def test_the_laptop_preset():
    rows = table("laptop.md", "frames", "C-BET: interactions")
    assert [*rows] == ["9.6 M", "24 M"]
    for frames, row in zip(("9600000", "24000000"), rows.values(), strict=True):
        for method, cells in {"cbet": [*row.values()][1:3], "count": [*row.values()][3:]}.items():
            ran = stored("laptop_confirmation.csv", method=method, frames=frames)
            assert cells == [text(each_seed(ran, INTERACTIONS)), text(each_seed(ran))]


CLIMBERS = {
    "C-BET, fine-tuned": "cbet",
    "C-BET episodic (33 M)": "cbet-episodic",
    "Count, fine-tuned": "count",
}


def on_levels(method: str, world: str) -> np.ndarray:
    """Return each seed's success in %."""
    ran = stored("levels.csv", method=method, environment=world)
    return np.array([100 * float(row[SUCCESS]) for row in ran])


def test_harder_worlds():
    worlds, source = table(EXPLORATION, "", "C-BET"), (EXPERIMENTS / EXPLORATION).read_text()
    untrained = (
        row for row in stored("levels.csv", method="untrained") if row["environment"] in worlds
    )
    shares = [round(100 * float(row[SUCCESS])) for row in untrained]
    page = prose(EXPLORATION)
    assert f"(untrained: {min(shares)} to {max(shares)};" in page
    for name, row in worlds.items():
        for heading in ("C-BET", "Count"):
            shares = on_levels(METHODS[heading], name)
            assert len(shares) == 5
            assert row[heading] == intervals.mean(shares).text(0)
        lead = intervals.difference(*(on_levels(method, name) for method in ("cbet", "count")))
        if name == "ObstructedMaze-Full-v1":
            readme = prose("../README.md")
            assert f"the policy solves {row['C-BET']} % of {name}." in readme
            soonest = span_to_succeed("cbet-fine-tuned", "MultiRoom-N12-S10")
            assert f"it learns N12 in {soonest} million frames" in readme
        assert (f"| {name} | **" in source) == (lead.low > 0)
        for heading, method in CLIMBERS.items():
            cells = [span_to_succeed(f"{method}-fine-tuned", name, 5 if "S6" in name else 3)]
            if stored("fine-tuning.csv", method=f"{method}-chain", environment=name):
                cells.append(span_to_succeed(f"{method}-chain", name, runs=3))
            assert row[heading] == "; ".join(cells), (name, heading)


def test_rooms():
    row = table("../envs/habitat/README.md", "mean of")["eight scenes"]
    names = {**METHODS, "uniformly random": "uniform", "egocentric": "cbet-egocentric"}
    for heading, cell in [*row.items()][1:]:
        policy = names.get(heading, heading)
        runs = stored("habitat.csv", policy=policy, scene="all")
        seeds = [run for run in runs if run["seed"] != "all"]
        said = intervals.mean(np.array([float(run["positions"]) for run in seeds]))
        if len(seeds) == 1:
            low, high = (float(seeds[0][f"positions_{end}"]) for end in ("low", "high"))
            said = said._replace(low=low, high=high)
        assert cell == said._replace(low=max(said.low, 0.0)).text(0), heading


def test_differences_in_rooms():
    cbet, egocentric, count = (
        np.array([float(run["positions"]) for run in runs if run["seed"] != "all"])
        for runs in (
            stored("habitat.csv", policy=policy, scene="all")
            for policy in ("cbet", "cbet-egocentric", "count")
        )
    )
    worse, better = (
        intervals.difference(*sides).text(0) for sides in ((cbet, egocentric), (egocentric, count))
    )
    page = (EXPERIMENTS / "../envs/habitat/README.md").read_text()
    assert f"{intervals.difference(cbet, count).text(0)} positions ahead of Count" in page
    assert f"and {worse} of" in page
    claim = table(RESULTS, "claim of the paper")
    said = claim["with egocentric changes it comes less far, but farther than baselines"]["here"]
    assert f"{worse} positions; {better} ahead of Count" in said


def test_positions_while_pre_training_in_rooms():
    ends = stored("habitat-pretraining.csv", frames="300000")
    cbet, count = (
        np.array([float(row["positions"]) for row in those(ends, method=method)])
        for method in ("cbet", "count")
    )
    said = table(RESULTS, "claim of the paper")["while pre-training C-BET visits twice as much"]
    assert f"{cbet.mean():,.0f} positions, Count {count.mean():,.0f}" in said["here"]
    assert intervals.difference(cbet, count).text(0) in said["here"]
