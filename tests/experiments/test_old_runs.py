"""Directories that older versions have written still open, go on, and can be evaluated.

`tests/data/old_runs` holds one of each kind, made with tiny numbers before modules were moved and
renamed. Runs were stopped midway; `finished.csv` in each is what the same old program wrote when
it went on to the end.
"""

import csv
import tarfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import jax
import numpy as np
import pytest

from cbet_jax.program import seed_keys
from cbet_jax.runs import checkpoint, metrics_table
from cbet_jax.runs.directory import RunDirectory
from cbet_jax.settings_json import to_json
from envs.habitat.world import UNMEASURED
from experiments import (
    habitat_evaluate,
    habitat_pretrain,
    minigrid_evaluate,
    minigrid_pretrain,
    minigrid_tabula_rasa,
    minigrid_transfer,
    paper,
)
from experiments.common import training
from experiments.common.presets import PRESETS
from experiments.evaluation import gridworlds
from experiments.study import execute, results
from experiments.study.plan import reached
from experiments.sweeps import command as sweep
from tests.support.small_study import TINY, playing, walking
from tests.support.tiny import saved_frames
from tests.support.unrendered import leave_unrendered

OLD_RUNS = Path(__file__).parents[1] / "data" / "old_runs"
STOPPED, FRAMES = 40, 80
COMMANDS = {
    "pretraining": minigrid_pretrain,
    "transfer": minigrid_transfer,  # the run that it was transferred from is not there
    "tabula_rasa": minigrid_tabula_rasa,
    "habitat": habitat_pretrain,
}


@pytest.fixture(autouse=True)
def _unrendered(monkeypatch):
    leave_unrendered(monkeypatch)


@pytest.fixture(scope="module")
def old(tmp_path_factory) -> Path:
    """A folder with all of them, shared by the tests below."""
    root = tmp_path_factory.mktemp("old_runs")
    for path in OLD_RUNS.glob("*.tar.xz"):
        with tarfile.open(path) as archive:
            archive.extractall(root, filter="data")
    return root


@pytest.fixture(scope="module")
def finish(old) -> Callable[[str], Path]:
    """Returns a function that lets a run go on to its end, once, and returns its directory."""

    @cache
    def finish(name: str) -> Path:
        root = old / name
        assert saved_frames(RunDirectory(root)) == [STOPPED]
        COMMANDS[name].main(["--out", str(root), "--resume", "--no-film"])
        return root

    return finish


def evaluation(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


BY_DEFAULT = ("pretraining",)  # others compile programs that differ little, or see images
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in COMMANDS if name not in BY_DEFAULT]


@pytest.mark.parametrize("name", [*BY_DEFAULT, *SLOW])
def test_a_run_finishes_with_the_numbers_of_its_time(name, finish):
    run = RunDirectory(finish(name))
    assert saved_frames(run)[-1] == FRAMES
    # New since then, and, in rooms, left out since then.
    other = ("episodes", *(UNMEASURED if name == "habitat" else ()))
    found, wanted = (
        {key: column for key, column in table.items() if key.partition("/")[0] not in other}
        for table in map(metrics_table.read, (run.metrics, run.root / "finished.csv"))
    )
    assert found.keys() == wanted.keys()
    for metric, seeds in wanted.items():
        assert found[metric].keys() == seeds.keys()
        for seed, column in seeds.items():
            np.testing.assert_array_equal(found[metric][seed].frames, column.frames)
            # Another processor may add in another order.
            np.testing.assert_allclose(found[metric][seed].values, column.values, rtol=1e-4)


@pytest.mark.parametrize("name", ["habitat"])
def test_a_run_opens_with_the_program_of_today(name, old, monkeypatch):
    """Its checkpoint fits the program, which is traced and not compiled."""
    opened = []

    def trace(_, directory, run, host):
        settings = run.settings
        keys = seed_keys(settings.seeds, settings.first_seed)
        template = jax.eval_shape(run.program.init, keys)
        loaded = checkpoint.load_newest(directory.checkpoints, template, to_json(settings))
        after, _ = jax.eval_shape(run.program.advance, loaded.state)
        opened.append((loaded.position.frames, jax.tree.structure(after), template))

    monkeypatch.setattr(training, "execute", trace)
    COMMANDS[name].main(["--out", str(old / name), "--resume", "--no-film"])
    ((frames, structure, template),) = opened
    assert frames == saved_frames(RunDirectory(old / name))[-1]
    assert structure == jax.tree.structure(template)


@pytest.mark.slow
def test_gridworld_policies_are_evaluated(finish):
    runs = [finish(name) for name in ("pretraining", "transfer", "tabula_rasa")]
    words = ("--envs", "Unlock", "--episodes", "2")
    minigrid_evaluate.main([*map(str, runs), *words])
    tables = [evaluation(run / "evaluation.csv") for run in runs]
    names = [table[0]["method"] for table in tables]
    assert names == ["cbet", "transfer", "curiosity tabula rasa"]
    assert {row["checkpoint_frames"] for table in tables for row in table} == {str(FRAMES)}


@pytest.mark.slow  # an evaluation of a new run is tested by default
def test_policies_in_rooms_are_evaluated(finish):
    run = finish("habitat")
    words = ("--scenes", "studio", "--episodes", "1", "--steps", "3")
    habitat_evaluate.main([str(run), *words])
    table = evaluation(run / "habitat-evaluation.csv")
    assert [row["policy"] for row in table] == ["rnd", "untrained", "uniform"]


def measured(root):
    """Return a study's results without its settings and its curves.

    More settings are written by now, and the curves are means of the worlds' own.
    """
    found = results.read(root / "results.csv")
    return [r for r in found if r.stage != results.STUDY and r.metric not in results.CURVES]


def test_a_study_is_reported_and_goes_on(old, monkeypatch):
    """What trains and plays is a stand-in, which takes the old policies and goes on with them."""
    monkeypatch.setitem(PRESETS, "smoke", TINY)
    monkeypatch.setattr(execute, "build", walking)
    monkeypatch.setattr(gridworlds, "play_each_world", playing)
    root = old / "study"
    before = measured(root)
    paper.main(["--out", str(root), "--report-only"])
    assert measured(root) == before
    run = root / "pretrain/DoorKey/cbet"
    assert reached(run) == STOPPED
    selected = ("--setups", "DoorKey", "--methods", "cbet", "--envs", "Unlock", "--tasks")
    paper.main(["--out", str(root), *selected, "--checkpoint-seconds", "0"])
    assert reached(run) == TINY.train.frames
    assert {path.name for path in (root / "evaluation/DoorKey/cbet").iterdir()} == {"40", "120"}


def test_a_sweep_is_collected(old, monkeypatch, capsys):
    monkeypatch.setenv("SUBMITIT_LOG_LEVEL", "NOCONFIG")
    root = old / "sweep"
    table = (root / "results.csv").read_bytes()
    train = RunDirectory(root / "runs/method=count").settings().train
    network = ("conv-layers", "channels", "dense-units", "lstm-units")
    sizes = [f"--network.{n}={getattr(train.network, n.replace('-', '_'))}" for n in network]
    same = ("--preset", "smoke", "--chunk", "2", "--worlds", "2", "--batch", "2", "--unroll", "5")
    fixed = (*same, "--counts.capacity", "256", "--frames", "40", "--envs", "Unlock", *sizes)
    sweep.main(["--out", str(root), "--grid", "method=count", *fixed])
    assert "1 runs, 1 of them done" in capsys.readouterr().out
    assert (root / "results.csv").read_bytes() == table
