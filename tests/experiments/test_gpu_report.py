"""The report on a GPU: what it writes (here of a CPU), what it survives, how it reads a profile."""

import gzip
import json
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import pytest
from jax.profiler import ProfileData

from cbet_jax.config import CountSettings, NetworkSettings
from cbet_jax.train import init, make_trainer, seed_keys
from experiments import benchmark, gpu_report
from experiments.benchmarks import agreement, measure
from experiments.benchmarks import cases as benchmark_cases
from experiments.benchmarks.kernels import (
    conditionals,
    host_calls,
    open_loops,
    read,
    sources,
    summary,
)
from experiments.common.presets import PRESETS
from tests.support.refusal import refused
from tests.support.worlds import corridor, single_env

GPU = """
planes { name: "/device:GPU:0"
  lines { name: "Stream #13(Compute)"
    events { metadata_id: 1 duration_ps: 3000000 } events { metadata_id: 1 duration_ps: 1000000 }
    events { metadata_id: 2 duration_ps: 9000000 } events { metadata_id: 3 duration_ps: 1000000 } }
  lines { name: "Stream #14(MemcpyH2D)" events { metadata_id: 4 duration_ps: 1000000 } }
  lines { name: "XLA Modules" events { metadata_id: 5 duration_ps: 90000000 } }
  event_metadata { key: 1 value { id: 1 name: "loop_add_fusion_7" } }
  event_metadata { key: 2 value { id: 2 name: "gemm" } }
  event_metadata { key: 3 value { id: 3 name: "MemcpyD2H" } }
  event_metadata { key: 4 value { id: 4 name: "MemcpyH2D" } }
  event_metadata { key: 5 value { id: 5 name: "jit_advance" } } }
planes { name: "/host:CPU" }
"""


@pytest.fixture
def quick(monkeypatch):
    """Times everything once, with a network and in a world that compile at once."""
    smoke = PRESETS["smoke"]
    network = NetworkSettings(1, 4, dense_layers=1, dense_units=8, lstm_layers=1, lstm_units=8)
    train = replace(smoke.train, network=network, counts=CountSettings(capacity=64))
    monkeypatch.setitem(PRESETS, "smoke", replace(smoke, train=train))
    monkeypatch.setattr(measure, "ROUND_SECONDS", 0.0)
    monkeypatch.setattr(gpu_report, "ROUNDS", 1)
    worlds = lambda names, number, explore: corridor(number)  # noqa: E731
    monkeypatch.setattr(benchmark_cases, "make_world", worlds)
    forget()
    yield
    forget()


def forget() -> None:
    """Forgets the worlds of other tests."""
    for remembered in ("world_of", "_first_moment", "_beginning"):
        getattr(benchmark_cases, remembered).cache_clear()


@pytest.mark.slow
def test_a_report_of_everything(quick, tmp_path, capsys, monkeypatch):
    compile_case = benchmark_cases.compile_case

    def compile_or_not(case):
        if case.part == "learning":
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes")
        return compile_case(case)

    monkeypatch.setattr(gpu_report, "compile_case", compile_or_not)
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
    assert iteration["bounds"] == agreement.BOUNDS
    assert following["bounds"] == agreement.ROUNDED
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
    monkeypatch.setattr(gpu_report, "SECONDS", 0.0)
    error = refused(benchmark.main, ["--gpu-report", str(tmp_path), "--small"], capsys, status=1)
    assert "were not found to be the CPU's" in error
    cases = json.loads((tmp_path / "report.json").read_text())["cases"]
    assert {case["error"] for case in cases} == {"no time"}


def test_numbers_that_cannot_be_compared_do_not_agree(quick, tmp_path, monkeypatch, capsys):
    def no_cpu(*_):
        raise RuntimeError("Unknown backend cpu")

    monkeypatch.setattr(gpu_report, "compare_with_cpu", no_cpu)
    monkeypatch.setattr(gpu_report, "follow_cpu", no_cpu)
    monkeypatch.setattr(gpu_report, "compile_case", no_cpu)
    error = refused(benchmark.main, ["--gpu-report", str(tmp_path), "--small"], capsys, status=1)
    assert "were not found to be the CPU's" in error
    table = (tmp_path / "report.md").read_text()
    assert table.count("NOT COMPARED with itself, the only device: RuntimeError: Unknown") == 2


def test_seeds_learn_side_by_side(quick):
    (group,) = benchmark_cases.small_cases()
    learning = next(case for case in group if case.part == "learning")
    compiled = benchmark_cases.compile_case(learning._replace(seeds=2))
    before = compiled.begin()
    (learner, _), _ = compiled.program(compiled.begin())
    for leaf, was in zip(*map(jax.tree.leaves, (learner.policy, before[0].policy)), strict=True):
        assert leaf.shape[0] == 2
        assert jnp.isfinite(leaf).all()
        assert not jnp.array_equal(leaf[0], was[0])


def test_the_goal_comes_first():
    groups = benchmark_cases.cases(several_seeds=True)
    assert [case.part for case in groups[0]] == ["training", "acting", "learning"]
    assert groups[0][0].name == "paper, bfloat16, 7 x 40 worlds, training"
    names = [case.name for group in groups for case in group]
    assert len(set(names)) == len(names) == 12
    alone = [case for group in benchmark_cases.cases(several_seeds=False) for case in group]
    assert {case.seeds for case in alone} == {1}


class State(NamedTuple):
    """What is compared of two backends."""

    params: jax.Array
    count: jax.Array
    key: jax.Array


def test_other_numbers_are_noticed():
    begun = State(jnp.zeros(2), jnp.zeros(3, jnp.int32), jax.random.key(0))
    after = begun._replace(params=jnp.array([1.0, -1.0]), count=jnp.arange(3))
    metrics = {"loss": jnp.float32(2.0), "success": jnp.float32(jnp.nan)}
    compare = partial(agreement.compare, begun, (after, metrics), bounds=agreement.BOUNDS)
    assert compare((after, metrics)).agrees
    assert compare((after, metrics)).integers == 3 + 2
    near = after._replace(params=after.params * 1.0005)
    assert compare((near, metrics)).update == pytest.approx(5e-4, rel=0.01)
    assert compare((near, metrics)).agrees
    assert not compare((after._replace(params=after.params * 1.1), metrics)).agrees
    other = compare((after._replace(count=jnp.array([0, 1, 3])), metrics))
    assert not other.agrees
    assert other.different == ("count",)
    assert not compare((after, metrics | {"loss": jnp.float32(2.1)})).agrees
    assert not compare((after, metrics | {"success": jnp.float32(0.0)})).agrees


@pytest.mark.slow
def test_products_without_the_rounding_are_noticed():
    """What differs least from the CPU's bfloat16: the same computed in float32."""
    smoke = PRESETS["smoke"].train
    world = single_env("Unlock", smoke.worlds)
    rounding = replace(smoke, network=replace(smoke.network, factors="bfloat16"))
    trainers = [make_trainer(settings, world) for settings in (rounding, smoke)]
    begin = jax.jit(jax.vmap(partial(init, trainers[0])))
    state = begin(seed_keys(2))
    played = jax.jit(jax.vmap(partial(agreement._trajectories, trainers[0])))(state)
    results = [
        jax.jit(jax.vmap(partial(agreement._follow, trainer)))(state, played)
        for trainer in trainers
    ]
    compare = partial(agreement.compare, state, bounds=agreement.ROUNDED)
    assert compare(results[0], results[0]).agrees
    assert not compare(*results).agrees


def test_a_gpus_profile_is_read():
    seen = read(ProfileData.from_text_proto(GPU))
    assert [(kernel.name, kernel.calls) for kernel in seen.kernels] == [
        ("gemm", 1),
        ("loop_add_fusion_7", 2),
    ]
    assert (seen.to_host, seen.from_host) == (1, 1)
    assert seen.seconds == pytest.approx(13e-6)
    program = '  %loop_add_fusion.7 = f32[] fusion(), metadata={op_name="jit(f)/while/body/add"}'
    found = summary(seen, program, steps=2)
    assert found["kernels_per_step"] == 1.5
    assert found["in_every_step"] == 1
    assert found["largest"][1]["from"] == "jit(f)/add"


def test_what_waits_for_the_host_is_named():
    numbers = jnp.arange(4.0)
    told = jax.ShapeDtypeStruct((4,), jnp.float32)
    asks = lambda x: jax.pure_callback(lambda x: x, told, x)  # noqa: E731
    waits = lambda x: jax.lax.while_loop(lambda x: x.sum() < 99, lambda x: x + 1, x)  # noqa: E731
    scans = lambda x: jax.lax.scan(lambda x, _: (x + 1, None), x, length=9)[0]  # noqa: E731
    bend = lambda x: jax.lax.fori_loop(0, 9, lambda _, x: jnp.sin(x), x)  # noqa: E731
    chooses = lambda x: jax.lax.cond(x.sum() > 9, bend, jnp.cos, x)  # noqa: E731
    asking, waiting, scanning, choosing = (
        jax.jit(function).lower(numbers).compile().as_text()
        for function in (asks, waits, scans, chooses)
    )
    assert len(host_calls(asking)) == 1
    assert host_calls(waiting) == host_calls(scanning) == []
    assert (open_loops(waiting), open_loops(scanning)) == (1, 0)
    assert (conditionals(choosing), conditionals(scanning)) == (1, 0)
    assert any(source.endswith("add") for source in sources(scanning).values())


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--small"], "--gpu-report"),
        (["--gpu-report", "held"], "already holds a report"),
        (["--gpu-report", "held/report.json"], "cannot write"),
    ],
)
def test_bad_command_lines_are_refused(arguments, expected, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    held = tmp_path / "held"
    held.mkdir()
    (held / "report.json").write_text("{}")
    assert expected in refused(benchmark.main, arguments, capsys)
    assert [path.name for path in held.iterdir()] == ["report.json"]
    assert (held / "report.json").read_text() == "{}"
