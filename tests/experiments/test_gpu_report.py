"""The report on a GPU: what it writes (here of a CPU), and what it survives."""

import gzip
import json
from dataclasses import replace
from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.config import CountSettings
from cbet_jax.learner import LearnerState
from cbet_jax.program import seed_keys
from cbet_jax.train import TrainState, init
from experiments import benchmark, gpu_report
from experiments.benchmarks import arithmetic, gpu_report_agreement, timing
from experiments.benchmarks import gpu_report_cases as cases
from experiments.benchmarks import gpu_report_measurements as measurements
from experiments.benchmarks import gpu_report_programs as programs
from experiments.common.presets import PRESETS
from tests.support.refusal import refused
from tests.support.tiny import NETWORK
from tests.support.worlds import corridor


@pytest.fixture
def quick(monkeypatch):
    """Times everything once, with a network and in a world that compile at once."""
    smoke = PRESETS["smoke"]
    train = replace(smoke.train, network=NETWORK, counts=CountSettings(capacity=64))
    monkeypatch.setitem(PRESETS, "smoke", replace(smoke, train=train))
    monkeypatch.setattr(timing, "ROUND_SECONDS", 0.0)
    monkeypatch.setattr(arithmetic, "MATRIX_SHAPE", (8, 8, 8))
    monkeypatch.setattr(measurements, "ROUNDS", 1)
    monkeypatch.setattr(cases, "make_world", lambda names, number, explore: corridor(number))
    forget()
    yield
    forget()


def forget() -> None:
    """Forgets the worlds of other tests."""
    cases.world_of.cache_clear()
    programs._first_moment.cache_clear()
    programs._beginning.cache_clear()


@pytest.mark.slow
def test_a_report_of_everything(quick, tmp_path, capsys, monkeypatch):
    compile_case = programs.compile_case

    def compile_or_not(case):
        if case.part == "learning":
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes")
        return compile_case(case)

    monkeypatch.setattr(measurements, "compile_case", compile_or_not)
    folder = tmp_path / "new" / "report"
    benchmark.main(["--gpu-report", str(folder), "--small"])
    shown = capsys.readouterr().out
    text = (folder / "report.json").read_text()
    content = json.loads(text)
    assert len(text) < 100_000
    assert content["finished"]
    assert "no GPU" in shown
    iteration, following = content["agreement"].values()
    assert iteration["agrees"]
    assert following["agrees"]
    assert iteration["integers"] > 1000
    assert iteration["bounds"] == gpu_report_agreement.BOUNDS
    assert following["bounds"] == gpu_report_agreement.ROUNDED
    training, acting, learning = content["cases"]
    assert learning == {"case": learning["case"], "error": "out of memory"}
    assert training["minutes"] > 0
    for case in (training, acting):
        assert case["frames_per_second"] > 0
        assert case["planned_bytes"] > 0
        assert case["host_calls"] == []
        assert case["open_loops"] == case["conditionals"] == 0  # in a corridor
        assert case["profile"]["steps"] == 5
        assert case["profile"]["kernels_per_step"] > 1
    with gzip.open(folder / "trace.json.gz") as file:
        assert "traceEvents" in json.load(file)
    table = (folder / "report.md").read_text()
    assert learning["case"] in table
    assert table.count("agrees with itself") == 2
    assert table.strip() in shown.replace("\r", "")


def test_no_case_is_begun_when_time_is_up(quick, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(measurements, "REPORT_SECONDS", 0.0)
    error = refused(benchmark.main, ["--gpu-report", str(tmp_path), "--small"], capsys, status=1)
    assert "were not found to be the CPU's" in error
    content = json.loads((tmp_path / "report.json").read_text())
    assert {case["error"] for case in content["cases"]} == {"no time"}


def test_numbers_that_cannot_be_compared_do_not_agree(quick, tmp_path, monkeypatch, capsys):
    def no_cpu(*_):
        raise RuntimeError("Unknown backend cpu")

    monkeypatch.setattr(measurements, "compare_with_cpu", no_cpu)
    monkeypatch.setattr(measurements, "follow_cpu", no_cpu)
    monkeypatch.setattr(measurements, "compile_case", no_cpu)
    error = refused(benchmark.main, ["--gpu-report", str(tmp_path), "--small"], capsys, status=1)
    assert "were not found to be the CPU's" in error
    table = (tmp_path / "report.md").read_text()
    assert table.count("NOT COMPARED with itself, the only device: RuntimeError: Unknown") == 2


def check_that_two_seeds_learn():
    (group,) = cases.small_cases()
    learning = next(case for case in group if case.part == "learning")
    compiled = programs.compile_case(learning._replace(seeds=2))
    before = jax.device_get(compiled.begin()[0].policy)
    (learner, _), _ = compiled.program(compiled.begin())
    after = jax.device_get(learner.policy)
    for leaf, was in zip(*map(jax.tree.leaves, (after, before)), strict=True):
        assert leaf.shape[0] == 2
        assert np.isfinite(leaf).all()
        assert not np.array_equal(leaf[0], was[0])


def test_a_part_is_compiled_for_seeds_side_by_side(quick, monkeypatch):
    """With stand-ins that compile at once for what begins, plays and learns."""

    def begin(trainer, key):
        learner = LearnerState(jax.random.normal(key, (3,)), (), (), {})
        return TrainState(learner, jnp.zeros(0), key, jnp.zeros((), jnp.int32))

    def play(trainer, learner, actor, key):
        played = {
            "view": jnp.zeros(4, jnp.uint8),
            "first": jnp.zeros(4, bool),
            "seen": jax.random.normal(key, (4,)),
        }
        return actor, played, ()

    def learn(trainer, learner, played):
        return learner._replace(policy=learner.policy + played["seen"].sum()), {}

    for name, stand_in in (("init", begin), ("play", play), ("learn", learn)):
        monkeypatch.setattr(programs, name, stand_in)
    check_that_two_seeds_learn()


def test_what_seeds_learn_from_is_what_they_play(quick):
    """All that the real programs take and return has the right shapes. They are traced only."""
    (group,) = cases.small_cases()
    trainer = programs._trainer(group[0])
    state = jax.eval_shape(jax.vmap(partial(init, trainer)), seed_keys(2))
    _, played = jax.eval_shape(programs._over_seeds(partial(programs._act, trainer), 2), state)
    given = state.learner, played
    learning = programs._over_seeds(partial(programs._learn, trainer), 2)
    chex.assert_trees_all_equal_shapes_and_dtypes(jax.eval_shape(learning, given)[0], given)


@pytest.mark.slow
def test_seeds_learn_side_by_side(quick):
    check_that_two_seeds_learn()


@pytest.mark.parametrize(
    ("arguments", "expected", "status"),
    [
        (["--small"], "--gpu-report", 2),
        (["--gpu-report", "held"], "already holds a report", 2),
        (["--gpu-report", "held/report.json"], "held/report.json", 3),  # a file, not a folder
    ],
)
def test_bad_command_lines_are_refused(arguments, expected, status, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    held = tmp_path / "held"
    held.mkdir()
    (held / "report.json").write_text("{}")
    assert expected in refused(benchmark.main, arguments, capsys, status)
    assert [path.name for path in held.iterdir()] == ["report.json"]
    assert (held / "report.json").read_text() == "{}"


@pytest.mark.parametrize("name", ["report.md", "trace.json.gz"])
def test_a_file_of_somebody_elses_is_not_replaced(name, capsys, tmp_path):
    (tmp_path / name).write_text("mine")
    error = refused(gpu_report.main, [str(tmp_path), "--small"], capsys)
    assert f"already holds a {name}" in error
    assert (tmp_path / name).read_text() == "mine"


def test_it_is_a_command_of_its_own(quick, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(measurements, "REPORT_SECONDS", 0.0)
    error = refused(gpu_report.main, [str(tmp_path), "--small"], capsys, status=1)
    assert f"see {tmp_path}/report.md" in error
    assert "DIR" in refused(gpu_report.main, [], capsys)
