"""Tests of what a study costs: whose speed stands for a method that was not measured."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cbet_jax.config import RunSettings
from cbet_jax.runs import manifest
from cbet_jax.runs.directory import RunDirectory
from experiments.common import presets
from experiments.study.costs import Costs, Speed
from experiments.study.plan import PRETRAIN, StudyJob


def settings(method: str) -> RunSettings:
    run = presets.PRESETS["smoke"]
    return replace(run, train=replace(run.train, method=method))


def job(method: str) -> StudyJob:
    return StudyJob(PRETRAIN, "MultiEnv", method, Path("run"), settings(method), 1, ("Unlock",))


@pytest.mark.parametrize(
    ("measured", "method", "stands"),
    [
        ({"cbet": 50.0, "count": 40.0, "rnd": 10.0}, "cbet", "cbet"),
        ({"cbet": 50.0, "count": 40.0, "rnd": 10.0}, "ablation-changes", "count"),
        ({"cbet": 50.0, "rnd": 10.0, "ride": 8.0}, "curiosity", "ride"),
        ({"cbet": 50.0, "count": 40.0}, "ride", "count"),
        ({}, "cbet", None),
    ],
)
def test_the_slowest_of_its_kind_stands_for_a_method(
    measured, method, stands, tmp_path, monkeypatch
):
    speeds = [
        Speed(Path(name), settings(name), rate, 0.0, 0.0, "2026") for name, rate in measured.items()
    ]
    monkeypatch.setattr(Costs, "_find_speeds", lambda self, root: speeds)
    costs = Costs(tmp_path / "study")
    speed = costs.speed(job(method))
    assert (speed and str(speed.run)) == stands
    assert costs.unmeasured == ({method} if stands not in (method, None) else set())


def test_damaged_records_of_other_runs_are_passed_over(tmp_path):
    session = manifest.describe(()) | {"frames_per_second": 10.0, "last_checkpoint": "2026"}
    for name, text in {
        "whole": json.dumps({"sessions": [session]}),
        "deep": "[" * 100_000,
        "list": '{"sessions": [1]}',
        "word": json.dumps({"sessions": [session | {"frames_per_second": "fast"}]}),
        "short": json.dumps({"sessions": [manifest.describe(()) | {"frames_per_second": 1.0}]}),
    }.items():
        RunDirectory(tmp_path / name).create(settings("cbet"))
        (tmp_path / name / "manifest.json").write_text(text)
    costs = Costs(tmp_path / "study")
    assert costs.speed(job("cbet")).run == tmp_path / "whole"
    assert costs.speed(job("cbet")).frames_per_second == 10.0
