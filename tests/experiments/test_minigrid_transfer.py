"""Transfer and tabula rasa: their mains with tiny numbers, and what they refuse."""

import csv
import shutil
import signal
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from cbet_jax.agent import AgentParams, Bias, network_agent
from cbet_jax.config import ObservationSettings, RunSettings, TrainSettings, TransferSettings
from cbet_jax.intrinsic import make_intrinsic
from cbet_jax.intrinsic.interface import Params
from cbet_jax.learner import LearnerState
from cbet_jax.program import seed_keys
from cbet_jax.runs import checkpoint, metrics_table, saved_policies
from cbet_jax.runs.checkpoint import Position
from cbet_jax.runs.directory import BEST, NEWEST, RunDirectory, checkpoints
from cbet_jax.train import TrainState
from envs.minigrid import make_world
from envs.minigrid.generators import GENERATORS, TRANSFER
from experiments import (
    minigrid_evaluate,
    minigrid_pretrain,
    minigrid_tabula_rasa,
    minigrid_transfer,
)
from experiments.common import gridworlds, opening, presets
from experiments.common.presets import PRESETS
from experiments.common.screen import Screen
from experiments.evaluation import evaluation_table
from tests.support.evaluated import EPISODES, WORLDS
from tests.support.fake_program import fake_program
from tests.support.families import others_slow
from tests.support.refusal import refused
from tests.support.saved_runs import save_run
from tests.support.tiny import (
    ARGUMENTS,
    CHUNK_FRAMES,
    NETWORK,
    SEEDS,
    drawn,
    numbers,
    pretrained,
    saved_frames,
)
from tests.support.unrendered import leave_unrendered
from tests.support.worlds import corridor

FRAMES = 4 * CHUNK_FRAMES
TINY = (*ARGUMENTS, "--frames", str(FRAMES))
TASK = WORLDS[-1]  # what evaluates policies of other tests in it is compiled once
ENV = ("--env", TASK)


@pytest.fixture(scope="module", autouse=True)
def built_once():
    """All train in a corridor, each program traced once for its sessions; none draws pictures."""
    build = cache(gridworlds.build)
    with pytest.MonkeyPatch.context() as patch:
        leave_unrendered(patch)
        in_a_corridor = lambda _, number, **__: corridor(number, num_actions=7)  # noqa: E731
        patch.setattr("envs.make_world", in_a_corridor)
        for module in (gridworlds, minigrid_transfer):
            patch.setattr(module, "build", build)
        yield


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> RunDirectory:
    return pretrained(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="module")
def finished(source, tmp_path_factory) -> RunDirectory:
    """A run of transfer that was never interrupted."""
    root = tmp_path_factory.mktemp("finished") / "run"
    arguments = ["--from", str(source.root), *ENV, *TINY, "--out", str(root)]
    minigrid_transfer.main([*arguments, "--alpha-frames", "80"])
    return RunDirectory(root)


def saved(directory: RunDirectory):
    """Return the newest state of a run, as the program has it."""
    settings = directory.settings()
    keys = seed_keys(settings.seeds, settings.first_seed)
    template = jax.eval_shape(gridworlds.build(settings).init, keys)
    load = partial(checkpoint.load, template=template)
    return checkpoint.newest_good(directory.checkpoints, load).state


def test_a_transfer_leaves_the_pretrained_policies_as_they_were(finished, source):
    """Bit for bit, and each seed's is the one of the same index."""
    stored = checkpoint.checkpoints(source.checkpoints)[0]
    template = jax.eval_shape(jax.vmap(network_agent(NETWORK, 7, (7, 7, 3)).init), seed_keys(SEEDS))
    wanted, _ = checkpoint.load(stored, {"learner": {"policy": template.learnt}})
    learner = saved(finished).learner
    found = numbers(learner.fixed.policy.learnt)
    for name, value in numbers(wanted["learner"]["policy"]).items():
        assert found[name].tobytes() == value.tobytes(), name
    np.testing.assert_array_equal(learner.fixed.alpha, [0, 0])
    table = metrics_table.read(finished.metrics)
    assert sorted(table["entropy"]) == list(range(SEEDS))
    assert table["entropy"][0].frames[-1] == FRAMES
    assert not np.array_equal(table["entropy"][0].values, table["entropy"][1].values)
    assert set(table["intrinsic_reward"][0].values) == {0}
    settings = finished.settings()
    assert (settings.train.method, settings.train.extrinsic_weight) == ("none", 1)
    assert not settings.explore
    assert (finished.figures / "learning_curves.png").is_file()


def test_an_untrained_policy_of_a_transfer_is_biased_as_at_its_first_frame(finished):
    settings = finished.settings()
    world = make_world((TASK,), 2, explore=False)
    loaded = saved_policies.load_policies(finished, settings, world, NEWEST)
    drawn = saved_policies.untrained(loaded, settings)
    np.testing.assert_array_equal(loaded.params.fixed.alpha, [0, 0])
    np.testing.assert_array_equal(drawn.fixed.alpha, [1, 1])
    jax.tree.map(np.testing.assert_array_equal, drawn.fixed.policy, loaded.params.fixed.policy)


def test_a_transfer_goes_on_without_its_source(finished, source, tmp_path):
    """From an older checkpoint it ends with the same numbers, bit for bit."""
    died = RunDirectory(tmp_path / "died")
    shutil.copytree(finished.root, died.root)
    config = died.config.read_text()
    assert str(source.root) in config
    hidden = source.root.rename(source.root.with_name("elsewhere"))
    shutil.rmtree(checkpoint.checkpoints(died.checkpoints)[-1])
    assert saved_frames(died)[-1] == FRAMES - CHUNK_FRAMES
    try:
        minigrid_transfer.main(["--out", str(died.root), "--resume"])
    finally:
        hidden.rename(source.root)
    assert died.metrics.read_bytes() == finished.metrics.read_bytes()
    resumed, unbroken = numbers(saved(died)), numbers(saved(finished))
    assert resumed.keys() == unbroken.keys()
    for name, value in unbroken.items():
        assert resumed[name].tobytes() == value.tobytes(), name


def test_a_run_that_died_before_its_first_checkpoint_begins_again(finished, tmp_path, not_trained):
    died = RunDirectory(tmp_path / "died")
    died.create(finished.settings())
    minigrid_transfer.main(["--out", str(died.root), "--resume"])
    assert saved_frames(died) == [0]
    fixed = saved(died).learner.fixed
    np.testing.assert_array_equal(fixed.alpha, [1, 1])
    found, wanted = numbers(fixed.policy), numbers(saved(finished).learner.fixed.policy)
    assert all(found[name].tobytes() == wanted[name].tobytes() for name in wanted)


def test_a_transfer_that_lost_its_checkpoints_is_not_begun_anew(finished, tmp_path, capsys):
    lost = RunDirectory(tmp_path / "lost")
    shutil.copytree(finished.root, lost.root)
    shutil.rmtree(lost.checkpoints)
    error = refused(minigrid_transfer.main, ["--out", str(lost.root), "--resume"], capsys)
    assert "has lost its checkpoints: begin a new run" in error
    assert not lost.checkpoints.exists()
    assert lost.metrics.read_bytes() == finished.metrics.read_bytes()


def test_it_begins_again_with_the_same_policies(finished, tmp_path, not_trained):
    """Its source's best policies at first; those of that checkpoint, if others are best by now."""
    source, died = RunDirectory(tmp_path / "source"), RunDirectory(tmp_path / "died")
    shutil.copytree(finished.root, source.root)
    checkpoints, best = source.checkpoints, source.best
    older = checkpoint.checkpoints(checkpoints)[0]
    shutil.rmtree(best, ignore_errors=True)
    best.mkdir()
    older.rename(best / older.name)
    transferred(source, died.root, fine_tune=False)
    begun = numbers(saved(died).learner.fixed.policy)
    for elsewhere in (False, True):
        shutil.rmtree(died.checkpoints)
        if elsewhere:
            (best / older.name).rename(checkpoints / older.name)
        minigrid_transfer.main(["--out", str(died.root), "--resume"])
        again = numbers(saved(died).learner.fixed.policy)
        assert all(again[name].tobytes() == begun[name].tobytes() for name in begun)


def test_it_begins_again_with_the_newest_policies_if_these_were_asked_for(
    finished, tmp_path, not_trained
):
    """Not with the best ones, although both are of the same frames."""
    source, died = RunDirectory(tmp_path / "source"), RunDirectory(tmp_path / "died")
    shutil.copytree(finished.root, source.root)
    shutil.rmtree(source.best, ignore_errors=True)
    older, newest = checkpoint.checkpoints(source.checkpoints)[-2:]
    arrays, _ = checkpoint.read_arrays(older, ("",))
    _, position = checkpoint.read_arrays(newest, ("",))
    checkpoint.save(source.best, arrays, position)
    load = partial(saved_policies.load_params, source)
    wanted, others = (numbers(load(which).state) for which in (NEWEST, BEST))
    assert any(wanted[name].tobytes() != others[name].tobytes() for name in wanted)
    options = ["--from", str(source.root), *ENV, *TINY, "--checkpoint", "newest"]
    minigrid_transfer.main([*options, "--out", str(died.root)])
    for again in (False, True):
        if again:
            shutil.rmtree(died.checkpoints)
            minigrid_transfer.main(["--out", str(died.root), "--resume"])
        begun = numbers(saved(died).learner.fixed.policy)
        assert all(begun[name].tobytes() == wanted[name].tobytes() for name in wanted)


@pytest.mark.parametrize("view", ["full", "rgb"])
def test_agents_still_see_as_the_source_does_where_a_preset_is_named_again(view, finished):
    stored = replace(finished.settings(), observation=ObservationSettings(view))
    options = minigrid_transfer.defaults({"--preset": ["smoke"]}, stored)
    assert options.observation == stored.observation
    assert options.train.network.conv_layers == (5 if view == "rgb" else 3)


def test_a_new_network_divides_views_as_that_of_its_source(finished):
    train = finished.settings().train
    train = replace(train, network=replace(train.network, brightest=255))
    stored = replace(finished.settings(), train=train)
    options = minigrid_transfer.defaults({"--preset": ["smoke"]}, stored)
    assert options.train.network.brightest == 255


def test_fine_tuning_has_the_network_of_its_source(source, tmp_path, capsys):
    words = ["--from", str(source.root), *ENV, "--preset", "smoke", "--fine-tune"]
    options, _ = opening.read(minigrid_transfer.EXPERIMENT, words)
    assert options.train.network == NETWORK
    words += ["--network.dense-units", "9", "--out", str(tmp_path / "run")]
    assert "leave --network.* out" in refused(minigrid_transfer.main, words, capsys)


def test_fine_tuning_goes_on_with_the_network_that_it_began_with(tmp_path, capsys):
    train = presets.for_task("laptop", TASK, presets.FINE_TUNING)
    train = replace(train, method="none", network=NETWORK)
    transfer = TransferSettings("source", 0, NETWORK, fine_tune=True)
    preset = replace(presets.named("laptop"), environments=(TASK,), explore=False)
    RunDirectory(tmp_path).create(replace(preset, train=train, transfer=transfer))
    words = ["--out", str(tmp_path), "--resume"]
    again, _ = opening.read(minigrid_transfer.EXPERIMENT, [*words, "--preset", "laptop"])
    assert again.train == train
    error = refused(minigrid_transfer.main, [*words, "--network.dense-units", "9"], capsys)
    assert "train.network.dense_units is 4, not 9" in error


def test_one_pretrained_seed_can_bias_all_agents(source, tmp_path, not_trained):
    root = tmp_path / "run"
    chosen = ("--seed-index", "1", "--seeds", "2", "--alpha-frames", "80", "--out", str(root))
    minigrid_transfer.main(["--from", str(source.root), *ENV, *TINY, *chosen])
    kernel = saved(RunDirectory(root)).learner.fixed.policy.learnt["params"]["policy"]["kernel"]
    expected = drawn().learnt["params"]["policy"]["kernel"][1]
    assert len(kernel) == 2
    for each in kernel:
        np.testing.assert_array_equal(each, expected)


def transferred(source: RunDirectory, root: Path, *, fine_tune: bool, frames: int = FRAMES):
    """Transfer a run's policies, and return the new run, and what it has of theirs."""
    words = ["--from", str(source.root), *ENV, *TINY, "--frames", str(frames), "--out", str(root)]
    how = ["--fine-tune"] if fine_tune else ["--network.dense-units", "8"]
    minigrid_transfer.main([*words, *how])
    learner = saved(RunDirectory(root)).learner
    copied = AgentParams(learner.policy, learner.fixed.policy.fixed)
    return RunDirectory(root), copied if fine_tune else learner.fixed.policy


def valued_anew(params: AgentParams) -> AgentParams:
    """Return a policy as fine-tuning begins with it: all of it, but its values are 0."""
    value = jax.tree.map(np.zeros_like, params.learnt["params"]["value"])
    return params._replace(learnt={"params": {**params.learnt["params"], "value": value}})


@pytest.mark.parametrize("fine_tune", others_slow((False, True), (True,)))
def test_a_policy_of_a_task_transfers_too(fine_tune, finished, tmp_path, not_trained):
    """As a bias, or learnt on: it begins with what the first task learnt, its own bias included."""
    run, begun = transferred(finished, tmp_path / "run", fine_tune=fine_tune)
    wanted = saved_policies.load_params(finished).state
    wanted = valued_anew(wanted) if fine_tune else wanted
    jax.tree.map(np.testing.assert_array_equal, begun, wanted)
    assert run.settings().transfer.transfer == finished.settings().transfer
    assert (run.settings().train.network == NETWORK) == fine_tune


@pytest.mark.slow
@pytest.mark.parametrize("fine_tune", [False, True])
def test_such_a_policy_learns_and_is_evaluated(fine_tune, finished, tmp_path, capsys):
    before = saved_policies.load_params(finished).state
    frames = {"fine_tune": fine_tune, "frames": CHUNK_FRAMES}
    run, now = transferred(finished, tmp_path / "run", **frames)
    jax.tree.map(np.testing.assert_array_equal, now.fixed, before.fixed)
    same = all(map(np.array_equal, jax.tree.leaves(now.learnt), jax.tree.leaves(before.learnt)))
    assert same != fine_tune
    minigrid_evaluate.main([str(run.root), "--episodes", str(EPISODES)])
    assert "frozen" in capsys.readouterr().out


def test_fine_tuning_holds_the_frozen_policy_and_begins_with_its_copy(
    source, tmp_path, not_trained
):
    run, begun = transferred(source, tmp_path / "run", fine_tune=True)
    settings, frozen = run.settings(), saved_policies.load_params(source).state
    assert settings.train.network == NETWORK
    jax.tree.map(np.testing.assert_array_equal, begun, valued_anew(frozen))
    learner = saved(run).learner
    jax.tree.map(np.testing.assert_array_equal, learner.fixed.policy, frozen)
    world = make_world((TASK,), 2, explore=False)
    loaded = saved_policies.load_policies(run, settings, world, NEWEST)
    moved = jax.tree.map(lambda leaf: leaf + 1, loaded.params.learnt)
    loaded = loaded._replace(params=loaded.params._replace(learnt=moved))
    again = saved_policies.untrained(loaded, settings)
    jax.tree.map(np.testing.assert_array_equal, again.learnt, frozen.learnt)


def test_a_chain_of_fine_tuning_holds_one_frozen_policy(source, tmp_path, not_trained):
    first, _ = transferred(source, tmp_path / "first", fine_tune=True)
    second, _ = transferred(first, tmp_path / "second", fine_tune=True)
    assert second.settings().transfer.transfer is None
    learner, before = saved(second).learner, saved(first).learner
    jax.tree.map(np.testing.assert_array_equal, learner.fixed.policy, AgentParams(before.policy))


def test_several_runs_are_evaluated_each_in_its_own_directory(
    finished, tmp_path, capsys, monkeypatch
):
    def stopped(*arguments):
        """Draw a picture while a signal comes."""
        signal.raise_signal(signal.SIGTERM)
        return draw(*arguments)

    draw = evaluation_table._draw
    monkeypatch.setattr(evaluation_table, "_draw", stopped)
    other = RunDirectory(tmp_path / "other")
    shutil.copytree(finished.root, other.root)
    with pytest.raises(SystemExit) as ending:
        minigrid_evaluate.main([str(finished.root), str(other.root), "--episodes", str(EPISODES)])
    assert ending.value.code == 128 + signal.SIGTERM
    assert f"saved: {other.root}/evaluation.csv" in capsys.readouterr().out
    assert all((run.root / "evaluation.png").exists() for run in (finished, other))
    table = (finished.root / "evaluation.csv").read_bytes()
    assert table == (other.root / "evaluation.csv").read_bytes()
    rows = list(csv.DictReader(table.decode().splitlines()))
    assert {row["environment"] for row in rows} == {TASK}  # the one whose task was learnt
    assert [row["method"] for row in rows] == ["transfer"] * 3 + ["frozen"] * 3 + ["uniform"]
    for row in rows:
        shares = [float(row[name]) for name in row if name.startswith("share_of_")]
        assert (len(shares), sum(shares)) == (7, pytest.approx(1, abs=1e-4))
        assert 1 <= float(row["episode_length"]) <= GENERATORS[TASK].max_steps


def test_a_task_is_learnt_from_nothing(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(gridworlds, "build", fake_program)
    root = tmp_path / "run"
    arguments = [*ENV, *TINY, "--frames", "40", "--out", str(root)]
    minigrid_tabula_rasa.main(arguments)
    assert "finished at 40 frames" in capsys.readouterr().out
    directory = RunDirectory(root)
    settings = directory.settings()
    assert (settings.explore, settings.train.extrinsic_weight) == (False, 1)
    assert (directory.figures / "learning_curves.png").is_file()
    for other, stage in ((minigrid_pretrain, "pre-training"), (minigrid_transfer, "transfer")):
        error = refused(other.main, ["--out", str(root), "--resume"], capsys)
        assert f"is a run of tabula rasa, not {stage}" in error


@pytest.mark.parametrize("method", ["cbet", "count", "ride", "rnd", "ablation-changes"])
def test_without_pretraining_nothing_is_reset_at_random(method):
    words = ("--env", "Unlock")
    read, _ = opening.read(minigrid_tabula_rasa.EXPERIMENT, [*words, "--method", method])
    assert read.train.frames == 5_000_000  # published, for Unlock
    assert make_intrinsic(read.train, 7).name == method
    assert not read.train.counts.random_resets


def test_a_task_goes_on_with_the_preset_that_it_began_with(tmp_path):
    words = ["--preset", "paper", "--out", str(tmp_path)]
    begun, _ = opening.read(minigrid_tabula_rasa.EXPERIMENT, ["--env", "Unlock", *words])
    RunDirectory(tmp_path).create(begun.settings)
    again, _ = opening.read(minigrid_tabula_rasa.EXPERIMENT, ["--resume", *words])
    assert again.settings == begun.settings


def test_tasks_have_the_published_settings_but_for_what_a_task_needs():
    published = opening.read(minigrid_pretrain.EXPERIMENT, [])[0].train
    words = ["--env", "ObstructedMaze-2Dlh"]
    options, _ = opening.read(minigrid_tabula_rasa.EXPERIMENT, words)
    back = replace(options.train, frames=50_000_000, extrinsic_weight=0.0, counts=published.counts)
    assert back == published
    assert options.train.frames == 100_000_000
    assert options.settings.environments == ("ObstructedMaze-2Dlh",)
    assert presets.for_task("paper", "LavaGapS5").frames == 50_000_000
    from_nothing, frozen, tuned = (
        presets.for_task("laptop", "Unlock", how) for how in presets.LAPTOP_TASKS
    )
    assert (from_nothing.frames, from_nothing.loss.relative_entropy) == (24_000_000, True)
    assert (from_nothing.loss.bootstrap, from_nothing.optimizer.target_kl) == ("final", None)
    loss = replace(from_nothing.loss, entropy_weight=5e-4, forward_kl=True)
    optimizer = replace(from_nothing.optimizer, target_kl=0.02)
    assert frozen == replace(from_nothing, loss=loss, optimizer=optimizer)
    loss, optimizer = replace(loss, entropy_weight=1e-3), replace(optimizer, learning_rate=3e-4)
    assert tuned == replace(frozen, loss=loss, optimizer=optimizer)
    words = ["--from", "pretrained/cbet-multienv", "--env", "Unlock", "--preset", "laptop"]
    fine_tuned, _ = opening.read(minigrid_transfer.EXPERIMENT, [*words, "--fine-tune"])
    assert fine_tuned.train.loss == tuned.loss
    assert opening.read(minigrid_transfer.EXPERIMENT, words)[0].train.loss == frozen.loss
    assert presets.for_task("laptop", "own.py:make").loss.bootstrap == "next"


def test_a_source_that_is_not_finished_is_named(tmp_path, capsys):
    words = ["--from", str(save_run(tmp_path).root), "--env", "Unlock", "--preset", "smoke"]
    options, _ = opening.read(minigrid_transfer.EXPERIMENT, words)
    minigrid_transfer.load_pretrained(options, Screen())
    assert f"{tmp_path} is unfinished, at 0 of 8,000 frames" in capsys.readouterr().out


def test_a_transfer_goes_on_as_it_began(finished, capsys):
    arguments = ["--out", str(finished.root), "--resume", "--alpha", "2"]
    error = refused(minigrid_transfer.main, arguments, capsys)
    assert "transfer.alpha is 1.0, not 2.0" in error


@pytest.mark.parametrize("main", [minigrid_transfer.main, minigrid_evaluate.main])
def test_policies_that_do_not_fit_are_refused(main, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def error(root):
        given = ["--from", root, *ENV] if main == minigrid_transfer.main else [root]
        return refused(main, given, capsys)

    world = TASK if main == minigrid_transfer.main else TRANSFER[0]
    pretrained(Path("three"), actions=3)
    assert f"chooses among 3 actions, but {world} has 7" in error("three")
    pretrained(Path("photographs"), view=(64, 64, 3))
    assert f"was made for other views than the 7x7x3 of {world}" in error("photographs")
    settings = RunSettings(TrainSettings(network=NETWORK))
    RunDirectory(Path("new")).create(settings)
    assert "new holds no checkpoint yet" in error("new")
    blind = RunDirectory(Path("blind"))
    blind.create(settings)
    state = {"counts": np.zeros(3)}
    checkpoint.save(blind.checkpoints, state, Position(1, 80))
    assert "blind holds no policy" in error("blind")


def task_settings(**fields) -> RunSettings:
    train = replace(presets.for_task("smoke", "LavaGapS6"), method="none", network=NETWORK)
    transfer = TransferSettings("source", 0, NETWORK, **fields)
    return RunSettings(train, ("LavaGapS6",), 2, first_seed=5, explore=False, transfer=transfer)


def test_a_transfer_begins_with_the_numbers_of_its_own_seeds(tmp_path):
    """Else runs of other seeds would begin, and play, as those of the first ones do."""
    settings, run, params = task_settings(), RunDirectory(tmp_path), drawn()

    def begin(keys):
        learner = LearnerState({}, Params({}, {}), (), {}, Bias(params, np.ones(2, np.float32)))
        return TrainState(learner, (), (), keys, np.zeros(2, np.int32))

    run.create(settings)
    program = SimpleNamespace(init=begin)
    gridworlds.save_first_state(run, settings, program, params)
    arrays, _ = checkpoint.read_arrays(checkpoints(run.checkpoints)[0])
    wanted = jax.random.key_data(seed_keys(2, 5))
    np.testing.assert_array_equal(arrays["key"], wanted)


def test_a_new_transfer_has_as_many_agents_as_were_pretrained(tmp_path):
    words = ["--from", str(save_run(tmp_path).root), "--env", "Unlock", "--preset", "smoke"]
    read = lambda *more: opening.read(minigrid_transfer.EXPERIMENT, [*words, *more])[0]  # noqa: E731
    assert PRESETS["smoke"].seeds == read("--seed-index", "1").seeds == 1
    assert read().seeds == 2


def test_a_transfer_has_the_published_frames_of_its_task():
    words = ["--from", "pretrained/cbet-multienv", "--env", "Unlock"]
    assert opening.read(minigrid_transfer.EXPERIMENT, words)[0].train.frames == 5_000_000


def test_a_transfer_goes_on_with_the_weight_that_it_began_with(tmp_path):
    settings = task_settings(alpha=2.0, alpha_frames=80, seed_index=1)
    RunDirectory(tmp_path).create(settings)
    words = ["--out", str(tmp_path), "--resume"]
    again, _ = opening.read(minigrid_transfer.EXPERIMENT, words)
    transfer = settings.transfer
    assert again.settings_from(0, NETWORK, None).transfer == transfer
