"""The plan of a study: what all of its runs share."""

import json
from pathlib import Path

import jax
import pytest

from cbet_jax.config import SettingsError, TrainSettings
from cbet_jax.intrinsic import METHODS
from cbet_jax.runs.directory import RunDirectory
from cbet_jax.runs.saved_policies import load_policies
from cbet_jax.settings_json import from_json
from envs.minigrid import make_world
from experiments.common.presets import PRESETS
from experiments.study.plan import EVALUATION, PRETRAIN, STAGES, Selection, StudySettings, plan
from experiments.study.variants import VARIANTS, Variant, variant

BEFORE = {"preset": "laptop", "budget": 9_000_000, "seeds": 3, "episodes": 100}
POLICIES = Path(__file__).parents[3] / "experiments/results/policies"
SELECTION = Selection(("cbet", "rnd"), ("MultiEnv",), (), ("Unlock",))


def test_all_runs_of_a_study_start_and_learn_alike():
    runs = [job.settings.train for job in plan(Path("study"), StudySettings(**BEFORE), SELECTION)]
    assert {run.network for run in runs} == {PRESETS["laptop"].train.network}
    assert {run.unroll for run in runs} == {PRESETS["laptop"].train.unroll}


def test_a_study_may_begin_with_any_seed():
    chosen = SELECTION._replace(tasks=("Unlock",))
    for first in (0, 100):
        jobs = plan(Path("study"), StudySettings(**BEFORE, first_seed=first), chosen)
        assert {(job.settings.first_seed, job.settings.seeds) for job in jobs} == {(first, 3)}
    with pytest.raises(SettingsError, match="first_seed must be at most"):
        StudySettings(**BEFORE, first_seed=2**32 - 1)


def test_a_study_may_have_its_own_number_of_actors():
    chosen = SELECTION._replace(methods=("cbet", "count-16-actors"), tasks=("Unlock",))
    jobs = plan(Path("study"), StudySettings(**BEFORE, actors=40), chosen)
    assert {job.settings.train.worlds for job in jobs if job.method == "cbet"} == {40}
    assert {job.settings.train.worlds for job in jobs if job.stage == PRETRAIN} == {40, 16}
    jobs = plan(Path("study"), StudySettings(**BEFORE), chosen)
    assert {job.settings.train.worlds for job in jobs if job.method == "cbet"} == {128}


def test_stages_do_not_change_what_a_run_keeps():
    settings = StudySettings(**BEFORE, evaluate_at=(3_000_000,))
    chosen = SELECTION._replace(tasks=("Unlock",))
    jobs = plan(Path("study"), settings, chosen)
    for stage in STAGES:
        only = plan(Path("study"), settings, chosen._replace(stages=(stage,)))
        assert only == [job for job in jobs if job.stage == stage] != []
    kept = {job.frames for job in jobs if job.stage == EVALUATION}
    assert {job.keep_at for job in jobs if job.stage == PRETRAIN} == {tuple(sorted(kept))}


def test_presets_of_a_version_to_come_are_refused():
    with pytest.raises(SettingsError, match="version 9"):
        StudySettings(**BEFORE, presets_of="9")


def test_every_method_of_the_package_can_be_studied_and_ones_own():
    for name in (*METHODS, "bonus.py:make@12345678"):
        assert variant(name).apply(TrainSettings()).method == name
        assert variant(name) == Variant(name)
    assert variant("count-resets") is VARIANTS["count-resets"]


def test_tasks_can_begin_with_the_policies_that_are_kept_of_the_study():
    settings = from_json(StudySettings, json.loads((POLICIES / "study.json").read_text()))
    selection = Selection(("cbet", "count", "ride"), ("MultiEnv",), ("Unlock",), ("Unlock",))
    jobs = plan(POLICIES, settings, selection)
    world = make_world(("Unlock",), 1, explore=False)
    for job in (job for job in jobs if job.stage == PRETRAIN):
        assert job.done
        run = RunDirectory(job.root)
        policies = load_policies(run, run.settings(), world, job.frames)
        leaves = jax.tree.leaves(policies.params.learnt)
        assert {len(leaf) for leaf in leaves} == {settings.seeds}
