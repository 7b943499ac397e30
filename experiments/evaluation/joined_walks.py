"""Tables of earlier walks as one: of other seeds, or in other scenes.

A table does not say how its policies were trained: those of one name are taken for seeds of one.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from cbet_jax.analysis.intervals import Estimate
from cbet_jax.config import SettingsError
from cbet_jax.runs.reading import read_table, reading
from cbet_jax.settings.as_json import first_difference
from experiments.evaluation.evaluation_table import UNIFORM, UNTRAINED
from experiments.evaluation.walk_table import ALL_SCENES, ALL_SEEDS, HEADER, WalkConditions, WalkRow

WAY = ("simulator", "steps", "random_starts", "evaluation_seed")  # columns that all rows share


def join(paths: Iterable[Path]) -> tuple[list[WalkRow], WalkConditions]:
    """Read tables as if they were one: rows of single seeds, and how all of them were played.

    What they have in common (uniformly random actions) is there once.

    Raises:
        RunDirectoryError: one cannot be read. SettingsError: one was played in another way than
            those before, or holds another value of the same number; or together they lack a scene
            of some policy and seed, or have unequal numbers of episodes.
    """
    found: dict[tuple[str, str, str], WalkRow] = {}
    conditions: WalkConditions | None = None
    for path in paths:
        rows, played = read(Path(os.path.realpath(path)))  # the user may name a link
        conditions = _joined(conditions, played, path) if conditions else played
        for row in rows:
            earlier = found.setdefault((row.scene, row.policy, row.seed), row)
            if earlier != row:
                raise SettingsError(
                    f"{path} holds other numbers of {row.policy}, seed {row.seed}, in {row.scene} "
                    "than those before"
                )
    assert conditions is not None
    _refuse_gaps(found)
    return list(found.values()), conditions


def _joined(before: WalkConditions, played: WalkConditions, path: Path) -> WalkConditions:
    """Return the conditions of both; each may have policies that the other has not."""
    frames = {**before.frames, **played.frames}
    wanted = before._replace(frames={**frames, **before.frames})
    joined = played._replace(frames=frames)
    other = first_difference(wanted._asdict(), joined._asdict())
    if other:
        raise SettingsError(f"{path} was played in another way than those before: {other}")
    return joined


def _refuse_gaps(found: Mapping[tuple[str, str, str], WalkRow]) -> None:
    """Refuse what has no mean: a policy and seed that are missing in a scene, unequal episodes."""
    episodes = sorted({row.episodes for row in found.values()})
    if len(episodes) > 1:
        raise SettingsError(f"the tables have {episodes[0]} to {episodes[-1]} episodes of a seed")
    scenes = dict.fromkeys(scene for scene, _, _ in found)
    for _, policy, seed in found:
        for scene in scenes:
            if (scene, policy, seed) not in found:
                raise SettingsError(f"no table has {policy}, seed {seed}, in {scene}")


def read(path: Path) -> tuple[list[WalkRow], WalkConditions]:
    """Read the rows of single seeds, and how they were played.

    Raises:
        RunDirectoryError: there is no such table.
    """
    with reading(path):
        header, named = read_table(path)
        if header != HEADER:
            raise ValueError("its columns are not " + ",".join(HEADER))
        own = [n for n in named if n["seed"] != ALL_SEEDS and n["scene"] != ALL_SCENES]
        ways = {tuple(each[name] for name in WAY) for each in own}
        if len(ways) != 1:
            raise ValueError("its rows were not all played in the same way")
        ((simulator, steps, random_starts, seed),) = ways
        learnt = [each for each in own if each["policy"] not in (UNTRAINED, UNIFORM)]
        if not learnt:
            raise ValueError("it holds no learnt policy")
        frames = {each["policy"]: int(each["checkpoint_frames"]) for each in learnt}
        conditions = WalkConditions(
            simulator, int(steps), random_starts == "True", frames, int(seed)
        )
        return [_row(each) for each in own], conditions


def _row(cells: dict[str, str]) -> WalkRow:
    ends = (float(cells[f"positions{end}"]) for end in ("", "_low", "_high"))
    return WalkRow(
        *(cells["policy"], cells["seed"], cells["scene"], int(cells["episodes"])),
        *(Estimate(*ends), float(cells["positions_of_all_episodes"])),
    )
