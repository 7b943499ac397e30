"""The commands that made a report's numbers."""

import shlex
from collections.abc import Sequence
from itertools import groupby

from experiments.study.contents import TASKS
from experiments.study.estimates import Findings
from experiments.study.plan import EVALUATION
from experiments.study.tables import Lines

PROGRAM = "uv run python -m experiments.paper"  # it runs any method in any setup
SWITCHES = {
    "lockstep": "--lockstep",
    "decay_rate": "--decay-rate",
    "bfloat16": "--factors bfloat16",
}


def made_by(found: Findings, groups: Sequence[Sequence[str]], methods: Sequence[str]) -> Lines:
    """Return the commands that make a table's numbers.

    There is one for each number of frames and each set of seeds. Studies from before this was
    recorded, and those of an earlier version's preset, have none.

    Args:
        found: the results.
        groups: of setups, each a part of the table.
        methods: of the table.
    """
    asked = found.asked
    if "first_seed" not in asked or asked.get("earlier_preset"):
        return []
    made: dict[tuple[int, int, int], tuple[dict[str, None], dict[str, None]]] = {}
    for setups in groups:
        for method in methods:
            for setup, frames in zip(setups, found.compared_at(setups, method), strict=True):
                for seeds in _consecutive(found.seeds(setup, method, frames)):
                    part = made.setdefault((frames, *seeds), ({}, {}))
                    part[0][setup], part[1][method] = None, None
    lines = [_command(found, *key, *map(tuple, parts)) for key, parts in made.items()]
    return ["Made by:", "", "```bash", *lines, "```", ""] if lines else []


def _consecutive(seeds: Sequence[int]) -> list[tuple[int, int]]:
    """Return the first of each run of consecutive seeds, and how many there are."""
    parts = (list(part) for _, part in groupby(enumerate(seeds), lambda pair: pair[1] - pair[0]))
    return [(part[0][1], len(part)) for part in parts]


def _command(
    found: Findings,
    frames: int,
    first_seed: int,
    seeds: int,
    setups: Sequence[str],
    methods: Sequence[str],
) -> str:
    asked, budget = found.asked, int(found.asked["budget"])
    words: list[object] = ["--preset", found.preset, "--budget", budget, "--seeds", seeds]
    words += ["--first-seed", first_seed] if first_seed else []
    words += ["--setups", *setups, "--methods", *methods]
    kept = [at for at in _evaluated_at(found, first_seed, seeds) if at < budget]
    words += ["--evaluate-at", *kept] if kept else []
    words += ["--until", frames] if frames < budget else []
    words += ["--tasks"] if found.preset in TASKS else []  # none: no table needs them
    words += ["--episodes", int(asked["episodes"])]
    words += ["--actors", int(asked["actors"])] if asked.get("actors") else []
    for name, option in SWITCHES.items():
        words += option.split() if asked.get(name) else []
    out = f"runs/study-seeds-{first_seed}-to-{first_seed + seeds - 1}"
    return f"{PROGRAM} {shlex.join(map(str, words))} --out {out}"


def _evaluated_at(found: Findings, first_seed: int, seeds: int) -> list[int]:
    """Return all frames after which these seeds were evaluated: they belong to the study."""
    runs = [(s, m) for s in found.setups() for m in found.names(EVALUATION, 2)]
    own = first_seed, seeds
    return sorted(
        {
            at
            for s, m in runs
            for at in found.evaluated_at(s, m)
            if own in _consecutive(found.seeds(s, m, at))
        }
    )
