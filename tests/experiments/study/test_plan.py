"""The plan of a study: which jobs it has, and what the runs share."""

import json
from collections import Counter
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import jax
import pytest

from cbet_jax.config import CountSettings
from cbet_jax.intrinsic import METHODS
from cbet_jax.runs.directory import RunDirectory
from cbet_jax.runs.saved_policies import load_policies
from cbet_jax.settings.as_json import from_json
from envs.minigrid import make_world
from experiments import minigrid_ablation, minigrid_pretrain, noisy_tv, paper
from experiments.common import opening
from experiments.common.presets import PRESETS, for_task
from experiments.study.plan import PRETRAIN, STAGES, Selection, StudySettings, plan
from experiments.study.variants import VARIANTS, Variant, variant
from experiments.sweeps.jobs import Job
from tests.support.families import slow
from tests.support.own_method import own_method

LAPTOP = {"preset": "laptop", "budget": 9_000_000, "seeds": 3, "episodes": 100}
POLICIES = Path(__file__).parents[3] / "experiments/results/policies"
UNLOCK = {"tasks": ("Unlock",), "envs": ("Unlock",)}
CHOSEN = Selection(methods=("cbet", "count-16-actors"), setups=("MultiEnv",), **UNLOCK)
OWN = """
    from cbet_jax.intrinsic.none import none as make
"""


def settings_of(job: Job):
    """Return the settings that the command line of a run asks for."""
    options, _ = opening.read(import_module(job.module).EXPERIMENT, job.beginning)
    return options.settings


def test_the_plan_says_all_that_is_done_and_where():
    root, study = Path("study"), StudySettings("laptop", 24_000_000, 3, 100, (9_600_000,))
    chosen = Selection(methods=("cbet", "count"), setups=("MultiEnv", "DoorKey"), **UNLOCK)
    where = {str(job.root.relative_to(root)): job for job in plan(root, study, chosen)}
    stages = dict(zip(STAGES, (4, 8, 4, 2), strict=True))
    assert Counter(name.partition("/")[0] for name in where) == stages
    run = where["pretrain/MultiEnv/cbet"]
    assert (run.frames, run.seeds) == (24_000_000, 3)
    assert settings_of(run).environments == PRESETS["laptop"].environments
    assert where["evaluation/DoorKey/count/9600000"].needs.run == root / "pretrain/DoorKey/count"
    transfer = where["transfer/Unlock/MultiEnv-cbet"]
    assert transfer.frames >= 2_400_000  # 5 M in proportion to 50 M
    assert transfer.first == ("--from", "study/pretrain/MultiEnv/cbet", "--checkpoint", "24000000")
    assert "--method" not in transfer.words
    tabula_rasa = settings_of(where["tabula_rasa/Unlock/cbet"])
    assert not tabula_rasa.explore
    assert not tabula_rasa.train.counts.random_resets
    assert not any(job.done for job in where.values())
    limited = replace(chosen, stages=("tabula_rasa",), tasks=("Unlock?max_steps=99",))
    assert plan(root, study, limited)[0].frames == where["tabula_rasa/Unlock/cbet"].frames
    for stage in STAGES:
        only = plan(root, study, replace(chosen, stages=(stage,)))
        assert only == [job for name, job in where.items() if name.startswith(stage)] != []


def test_only_tasks_of_more_frames_pause():
    chosen = replace(CHOSEN, tasks=("Unlock", "KeyCorridorS3R3"), tasks_until=2_000_000)
    jobs = {job.name: job for job in plan(Path("study"), StudySettings(**LAPTOP), chosen)}
    unlock, corridor = (jobs[f"tabula_rasa/{task}/cbet"] for task in chosen.tasks)
    assert "--until" not in unlock.words  # 900,000 frames
    assert corridor.words[corridor.words.index("--until") + 1] == "2000000"
    assert unlock.frames < 2_000_000 <= corridor.frames < 4_500_000


@pytest.mark.parametrize(
    ("changed", "expected"),
    [({"actors": 40}, {"worlds": 40}), ({"first_seed": 100}, {})],
)
def test_all_runs_of_a_study_start_and_learn_alike(changed, expected):
    for job in plan(Path("study"), StudySettings(**LAPTOP, **changed), CHOSEN):
        if job.module == minigrid_pretrain.EXPERIMENT.module or "tabula_rasa" in job.name:
            settings, plain = settings_of(job), PRESETS["laptop"].train
            plain = for_task("laptop", None) if "tabula_rasa" in job.name else plain
            actors = {"worlds": 16} if "16" in job.name else {}
            own = {name: getattr(settings.train, name) for name in ("method", "frames", "counts")}
            own |= {"extrinsic_weight": settings.train.extrinsic_weight}
            assert settings.train == replace(plain, **{**own, **expected, **actors})
            assert (settings.first_seed, settings.seeds) == (changed.get("first_seed", 0), 3)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, (1e-4, True, "final", 1.0, 0.999)),
        ({"tasks_entropy_weight": 1e-5}, (1e-5, True, "final", 1.0, 0.999)),
        ({"tasks_as_published": True}, (5e-4, False, "next", None, 0.99)),
        (
            {"tasks_as_published": True, "tasks_entropy_weight": 1e-5},
            (1e-5, False, "next", None, 0.99),
        ),
    ],
)
def test_tasks_are_kept_near_the_frozen_policy_or_learnt_as_published(changed, expected):
    jobs = plan(Path("study"), StudySettings(**LAPTOP, **changed), CHOSEN)
    for job in (job for job in jobs if job.name.startswith("tabula_rasa")):
        train = settings_of(job).train
        loss = train.loss.entropy_weight, train.loss.relative_entropy, train.loss.bootstrap
        steps = train.optimizer.largest_step, train.optimizer.rms_decay
        assert (*loss, *steps) == expected
        assert train.optimizer.target_kl is None


@pytest.mark.parametrize(
    ("main", "runs"), [slow(minigrid_ablation, 54), (paper, 15), (noisy_tv, 8)]
)
def test_each_study_has_its_runs(main, runs, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    main.main(["--preset", "laptop", "--plan"])
    *lines, last = capsys.readouterr().out.splitlines()
    assert Counter(line.split()[2].removeprefix("experiments.minigrid_") for line in lines) == {
        "pretrain": runs,
        "evaluate": runs,
    }
    frames = f"{runs * 3 * 24_000_000:,}"
    assert last == f"{2 * runs} of {2 * runs} jobs left, {frames} of {frames} frames"


def test_every_method_of_the_package_can_be_studied_and_ones_own(tmp_path):
    for name, known in VARIANTS.items():
        words = (*known.words, "--preset", "smoke")
        train = opening.read(minigrid_pretrain.EXPERIMENT, words)[0].train
        assert train.method == known.method
        assert train.counts == replace(CountSettings(), **known.counts), name
    for name in {*METHODS} - {*VARIANTS}:
        assert variant(name) == Variant(name)
    with own_method(tmp_path, OWN) as path:
        given = ("--method", f"{path}:make")
        options, _ = opening.read(minigrid_pretrain.EXPERIMENT, (*given, "--preset", "smoke"))
        assert variant(options.train.method).words == given


@pytest.mark.parametrize("seed", [2, 3, 4])
def test_tasks_can_begin_with_the_policies_that_are_kept_of_the_study(seed):
    root = POLICIES / f"seed-{seed}"
    settings = from_json(StudySettings, json.loads((root / "study.json").read_text()))
    assert (settings.first_seed, settings.seeds) == (seed, 1)
    selection = Selection(methods=("cbet", "count", "ride"), setups=("MultiEnv",), **UNLOCK)
    jobs = plan(root, settings, selection)
    world = make_world(("Unlock",), 1, explore=False)
    pretrained = [job for job in jobs if job.name.startswith(PRETRAIN)]
    assert len(pretrained) == 3
    for job in pretrained:
        assert job.done
        run = RunDirectory(job.root)
        policies = load_policies(run, run.settings(), world, job.frames)
        leaves = jax.tree.leaves(policies.params.learnt)
        assert {len(leaf) for leaf in leaves} == {settings.seeds}
    assert all(job.ready for job in jobs if job.needs)


@pytest.mark.parametrize("method", ["rnd", "curiosity"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_those_of_rnd_and_curiosity_are_kept_too(method, seed):
    run = RunDirectory(POLICIES / "128-actors" / f"{method}-{seed}")
    settings = run.settings()
    train = settings.train
    assert (train.method, train.worlds, settings.first_seed) == (method, 128, seed)
    world = make_world(("Unlock",), 1, explore=False)
    assert load_policies(run, settings, world).loaded.position.frames == 33_024_000


def test_what_a_study_plays_and_transfers_is_what_was_asked_for():
    """A variant with its own number of actors has its own last chunk."""
    study = StudySettings("laptop", 9_050_000, 3, 57)
    chosen = Selection(methods=("cbet-16-actors",), setups=("MultiEnv",), tasks=("Unlock",))
    run, evaluation, transfer = plan(Path("study"), study, chosen)
    words = ("study/pretrain/MultiEnv/cbet-16-actors", "--checkpoint", str(run.frames))
    assert evaluation.words[:5] == (*words, "--episodes", "57")
    assert transfer.first == ("--from", *words)
    assert transfer.needs.frames == run.frames < study.chunk_end(study.budget)
