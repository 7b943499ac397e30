"""Importing a policy of the published code: what it plays, what can be done with it, the faults."""

import errno
import json
import zipfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

from cbet_jax.config import HabitatSettings, NetworkSettings
from cbet_jax.networks import policy_network
from cbet_jax.networks.published_weights import convert
from cbet_jax.runs import checkpoint, memory
from cbet_jax.runs.directory import RunDirectory
from cbet_jax.runs.saved_policies import load_policies
from envs.minigrid import make_world
from envs.names import TRANSFER
from experiments import import_torch, minigrid_pretrain, minigrid_transfer, report
from experiments.common.presets import HABITAT_PRESETS
from experiments.evaluation.gridworlds import open_run
from experiments.published_code import checkpoint as published_checkpoint
from experiments.published_code.checkpoint import PublishedCheckpoint
from experiments.published_code.settings import run_settings
from experiments.watching.players import saved_player
from tests.support.published import FLAGS, FRAMES, HABITAT, NETWORK, UPDATES, content, drawn
from tests.support.refusal import refused
from tests.support.tiny import numbers


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "model.tar"
    path.write_bytes(b"what a test puts into the place of load() is not read from here")
    return path


@pytest.fixture(scope="module")
def imported(tmp_path_factory) -> RunDirectory:
    root = tmp_path_factory.mktemp("imported")
    (root / "model.tar").write_bytes(b"as above")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(published_checkpoint, "load", lambda path: content())
        import_torch.main([str(root / "model.tar"), str(root / "run")])
    return RunDirectory(root / "run")


def policies(directory: RunDirectory):
    world = make_world(("Unlock",), 1, explore=False)
    return load_policies(directory, directory.settings(), world)


def test_an_imported_run_says_where_it_is_from(imported):
    settings = imported.settings()
    assert settings.environments == ("Unlock",)
    assert (settings.stage, settings.seeds) == ("pre-training", 1)
    train = settings.train
    assert (train.method, train.network, train.frames) == ("cbet", NETWORK, FRAMES)
    assert (train.worlds, train.batch, train.unroll) == (2, 2, 10)
    assert (train.intrinsic_coefficient, train.counts.reset_probability) == (0.005, 0.002)
    optimizer, loss = train.optimizer, train.loss
    assert (optimizer.learning_rate, optimizer.rms_decay) == (0.0002, 0.98)
    assert (optimizer.rms_epsilon, optimizer.max_gradient_norm) == (1e-4, 30)
    assert (loss.discount, loss.value_weight, loss.entropy_weight) == (0.98, 0.25, 0.001)
    (session,) = json.loads(imported.manifest.read_text())["sessions"]
    assert session["imported"]["flags"] == FLAGS
    assert session["imported"]["updates"] == UPDATES
    assert len(session["imported"]["sha256"]) == 64


def test_it_is_evaluated_and_watched_like_any_other_run(imported):
    """And its policy is the converted one."""
    run = open_run(imported.root, (), None, Console())
    assert (run.settings.player, run.environments) == ("cbet", TRANSFER)
    assert policies(imported).loaded.position.frames == FRAMES
    world = make_world(TRANSFER[:1], 1, explore=False)
    player = saved_player(imported, imported.settings(), world, 0, None, Console())
    assert player.title == f"cbet, seed 0, {FRAMES} frames"
    wanted = numbers(convert(drawn(), 7, (7, 7, 3)).params)
    for name, value in numbers(player.params.learnt).items():
        np.testing.assert_array_equal(value, wanted[name])


def test_it_is_transferred_like_any_other_run(imported, tmp_path, monkeypatch, not_trained):
    started = []
    monkeypatch.setattr(minigrid_transfer, "save_first_state", lambda *run: started.append(run))
    arguments = ("--preset", "smoke", "--env", "Unlock", "--out", str(tmp_path / "task"))
    minigrid_transfer.main(["--from", str(imported.root), *arguments])
    _, settings, _, pretrained = started[0]
    assert (settings.transfer.network, settings.transfer.frames) == (NETWORK, FRAMES)
    wanted = numbers(policies(imported).params.learnt)
    for name, value in numbers(pretrained.learnt).items():
        np.testing.assert_array_equal(value, wanted[name])


def test_it_has_finished(imported, capsys):
    minigrid_pretrain.main(["--out", str(imported.root), "--resume"])
    assert f"had already finished at {FRAMES} frames" in capsys.readouterr().out
    longer = ["--out", str(imported.root), "--resume", "--frames", str(2 * FRAMES)]
    said = refused(minigrid_pretrain.main, longer, capsys)
    assert "was imported without its optimizer and counts" in said
    assert "has no learning curves" in refused(report.main, [str(imported.root)], capsys)


BAD_CONTENT = {
    "of Habitat": (content(drawn(HABITAT)), "Habitat's images (5 convolutions): gridworlds are"),
    "of no scene": (content(env="HabitatNav-"), "name one scene with --envs"),
    "another shape": (content(drawn(actions=3)), "policy.weight is 3x6, not 7x6"),
    "of other code": ({"model": {}}, "actor_model_state_dict"),
    "of a task, biased": (content(checkpoint="a/model.tar"), "biased by a/model.tar"),
    "unknown method": (content(model="icm"), "'icm'; known: cbet"),
    "unknown world": (content(env="MiniGrid-Fetch-5x5-N2-v0"), "Fetch"),
    "not a number": (content(learning_rate="fast"), "learning_rate is 'fast'"),
    "infinite": (content(unroll_length=float("inf")), "unroll_length is inf"),
    "too many actors": (content(num_actors=10**12, batch_size=10**12), "at most"),
    "huge": (content(unroll_length=10**400), "unroll_length is '1000"),
    "a tensor": (content(no_reward=np.zeros(3)), "no_reward is '[0. 0. 0.]', neither"),
    "not trained": (content() | {"scheduler_state_dict": {"last_epoch": 0}}, "frames"),
    "of no updates": (content() | {"scheduler_state_dict": {}}, "last_epoch is None, no whole"),
    "of a truth": (content() | {"scheduler_state_dict": {"last_epoch": True}}, "True, no whole"),
    "of a fraction": (content(unroll_length=2.5), "unroll_length is 2.5, no whole number"),
    "of no batch": (content(batch_size=0), "batch must be at least 1, not 0"),
    "of no world": (content(env=""), "its flags name no world: name it with --envs"),
    "not finite": (content(drawn() | {"policy.weight": np.full((7, 6), np.nan)}), "not finite"),
    "not finite as float32": (
        content(drawn() | {"policy.weight": np.full((7, 6), 1e300)}),
        "tensor policy.weight holds numbers that are not finite",
    ),
    "no actors": (content(num_actors=0), "worlds must be at least 1, not 0"),
}
DAMAGED_CONTENT = {
    "complex": (content({"policy.weight": np.full(3, 1j)}), "type complex128"),
    "text": (content({"policy.weight": "1"}), "type <U1"),
    "more digits than Python writes": (content(xpid=10**5000), "digits"),
}


@pytest.mark.parametrize(
    ("name", "status"),
    [*((name, 2) for name in BAD_CONTENT), *((name, 3) for name in DAMAGED_CONTENT)],
)
def test_other_checkpoints_are_refused(name, status, file, capsys, monkeypatch):
    stored, expected = (BAD_CONTENT | DAMAGED_CONTENT)[name]
    monkeypatch.setattr(published_checkpoint, "load", lambda path: stored)
    run = file.parent / "run"
    assert expected in refused(import_torch.main, [str(file), str(run)], capsys, status)
    assert not run.exists()


def test_a_flag_that_is_no_number_is_kept_as_text(file, monkeypatch):
    """JSON has neither NaN nor infinity: other programs could not read the manifest."""
    stored = content(clip=float("inf"), seen=float("nan"))
    monkeypatch.setattr(published_checkpoint, "load", lambda path: stored)
    import_torch.main([str(file), str(file.parent / "run")])
    text = RunDirectory(file.parent / "run").manifest.read_text()
    (session,) = json.loads(text, parse_constant=pytest.fail)["sessions"]
    assert session["imported"]["flags"] == {**FLAGS, "clip": "inf", "seen": "nan"}


def test_a_flipped_bit_is_noticed(file, capsys):
    """By the checksums of the zip file that PyTorch writes, at which it does not look itself."""
    np.savez(file.with_suffix(".npz"), zeros=np.zeros(1000))
    damaged = bytearray(file.with_suffix(".npz").read_bytes())
    damaged[5000] ^= 1
    file.write_bytes(damaged)
    words = [str(file), str(file.parent / "run")]
    assert f"{file} cannot be read: it is damaged" in refused(
        import_torch.main, words, capsys, status=3
    )


def test_what_is_not_there_or_in_the_way_is_refused(file, capsys, monkeypatch):
    monkeypatch.setattr(published_checkpoint, "load", lambda path: content())
    run, nowhere = file.parent / "run", file.parent / "nowhere.tar"
    for path in (nowhere, file.parent):
        assert "is no file" in refused(import_torch.main, [str(path), str(run)], capsys)
    assert "DIR" in refused(import_torch.main, [str(file)], capsys)
    full = OSError(errno.ENOSPC, "No space left on device")
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save", Mock(side_effect=full))
        refused(import_torch.main, [str(file), str(run)], capsys, status=3)
    assert not run.exists()
    run.mkdir()
    (run / "thesis.tex").write_text("all my work")
    assert "not empty" in refused(import_torch.main, [str(file), str(run)], capsys)
    assert [path.name for path in run.iterdir()] == ["thesis.tex"]
    (run / "config.json").write_text("{}")
    taken = refused(import_torch.main, [str(file), str(run)], capsys)
    assert taken == f"error: {run} already holds a run: choose another\n"
    arguments = [str(file), str(file.parent / "new")]
    rooms = [*arguments, "--max-steps", "9"]
    assert "leave out what is said of rooms" in refused(import_torch.main, rooms, capsys)
    monkeypatch.setattr(memory, "available", lambda devices: 1000)
    assert "GiB" in refused(import_torch.main, arguments, capsys)
    assert not (file.parent / "new").exists()


def test_a_run_that_another_process_writes_meanwhile_is_left_alone(file, capsys, monkeypatch):
    monkeypatch.setattr(published_checkpoint, "load", lambda path: content())
    run, create = file.parent / "run", RunDirectory.create

    def create_while_another_does(directory, settings):
        create(directory, settings)
        stack.enter_context(RunDirectory(run).lock())
        directory.metrics.write_text("its own")

    monkeypatch.setattr(RunDirectory, "create", create_while_another_does)
    with ExitStack() as stack:
        assert "is in use" in refused(import_torch.main, [str(file), str(run)], capsys)
    assert (run / "config.json").exists()
    assert (run / "metrics.csv").read_text() == "its own"


def test_without_pytorch_it_says_what_to_install(file, capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    assert "the extra `torch`" in refused(import_torch.main, [str(file), "run"], capsys)


def test_a_run_of_tabula_rasa_is_told_from_one_of_pretraining():
    flags = FLAGS | {"model": "vanilla", "no_reward": False}
    settings = run_settings(PublishedCheckpoint({}, flags, UPDATES), NETWORK)
    assert settings.stage == "tabula rasa"
    assert (settings.train.method, settings.train.extrinsic_weight) == ("none", 1)
    assert not settings.train.counts.random_resets
    assert settings.train.counts.reset_probability is None
    settings = run_settings(PublishedCheckpoint({}, flags | {"model": "cbet"}, UPDATES), NETWORK)
    assert settings.train.counts.reset_probability is None


def test_the_learning_rate_of_a_short_run_falls_as_slowly_as_published():
    stored = PublishedCheckpoint({}, FLAGS | {"total_frames": 1000}, UPDATES)
    assert run_settings(stored, NETWORK).train.optimizer.decay_frames == 100_000_000


def test_any_worlds_and_any_number_of_actors_can_be_imported():
    env = "MiniGrid-MultiRoom-N4-S5-v0,MiniGrid-KeyCorridorS3R3-v0"
    flags = FLAGS | {"env": env, "num_actors": 31, "batch_size": 32, "total_frames": 200_000_000}
    settings = run_settings(PublishedCheckpoint({}, flags, UPDATES), NETWORK)
    assert settings.environments == ("MultiRoom-N4-S5", "KeyCorridorS3R3")
    train = settings.train
    assert (train.worlds, train.batch) == (32, 32)
    assert train.optimizer.decay_frames == 200_000_000


def test_a_policy_for_rooms_walks_about_rooms():
    flags = FLAGS | {"env": "HabitatNav-apartment_0", "no_reward": True}
    stored = PublishedCheckpoint({}, flags, UPDATES)
    replica = HabitatSettings(simulator="habitat_sim", folder="replica")
    settings = run_settings(stored, HABITAT, (), replica)
    assert (settings.stage, settings.habitat) == ("pre-training in Habitat", replica)
    rewarded = stored._replace(flags=flags | {"no_reward": False})  # there is no task in rooms
    assert run_settings(rewarded, HABITAT, (), replica) == settings
    assert settings.environments == ("apartment_0",)
    published, train = HABITAT_PRESETS["paper"].train, settings.train
    assert train.counts == replace(published.counts, reset_probability=0.002)
    assert (train.auxiliary, train.network) == (published.auxiliary, HABITAT)
    assert replace(published.network, channels=4, dense_units=8, lstm_units=6) == HABITAT


# From here on with PyTorch.

STEPS, AGENTS = 100, 3


@pytest.fixture(scope="module")
def published():
    """A network of the published architecture, random weights."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            nn, stages = torch.nn, []
            for inputs in (3, 32, 32):
                stages += [nn.Conv2d(inputs, 32, 3, stride=2, padding=1), nn.ELU()]
            self.feat_extract = nn.Sequential(*stages)
            self.fc = nn.Sequential(
                nn.Linear(32, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU()
            )
            self.core = nn.LSTM(1024, 1024, num_layers=2)
            self.policy, self.baseline = nn.Linear(1024, 7), nn.Linear(1024, 1)

        def step(self, views, first, state):
            features = self.fc(self.feat_extract(views.float().transpose(1, 3)).flatten(1))
            state = tuple(part * ~first[None, :, None] for part in state)
            outputs, state = self.core(features[None], state)
            return self.policy(outputs[0]), self.baseline(outputs[0])[:, 0], state

    network = Network()
    for layer in (*network.feat_extract, *network.fc, network.policy, network.baseline):
        if hasattr(layer, "weight"):
            torch.nn.init.orthogonal_(layer.weight, 2**0.5)
    return network


def save(network, path: Path) -> None:
    """Write a checkpoint as the published code does, numbers of numpy 1 included."""
    import torch

    optimizer = torch.optim.RMSprop(network.parameters(), lr=1e-4)
    decay = lambda update: 1 - min(update * 20, 1e8) / np.maximum(5e7, 1e8)  # noqa: E731
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, decay)
    for _ in range(UPDATES):
        optimizer.step()
        schedule.step()
    flags = FLAGS | {"device": torch.device("cpu")}
    stored = {
        "actor_model_state_dict": network.state_dict(),
        "learner_model_optimizer_state_dict": optimizer.state_dict(),
        "scheduler_state_dict": schedule.state_dict(),
        "flags": flags,
    }
    torch.save(stored, path.with_suffix(".new"))
    with zipfile.ZipFile(path.with_suffix(".new")) as new, zipfile.ZipFile(path, "w") as old:
        for name in new.namelist():
            part = new.read(name)
            if name.endswith("data.pkl"):
                assert b"cnumpy._core.multiarray\n" in part
                part = part.replace(b"cnumpy._core.multiarray\n", b"cnumpy.core.multiarray\n")
            old.writestr(name, part)


def test_an_imported_network_computes_what_pytorch_does(published, tmp_path):
    """Over 100 steps of play with episode ends: logits, values, recurrent state."""
    import torch

    save(published, tmp_path / "model.tar")
    import_torch.main([str(tmp_path / "model.tar"), str(tmp_path / "run")])
    found = policies(RunDirectory(tmp_path / "run"))
    assert found.loaded.position.frames == FRAMES
    random = np.random.default_rng(0)
    views = random.integers(0, 11, (STEPS, AGENTS, 7, 7, 3), np.uint8)
    first = random.random((STEPS, AGENTS)) < 0.05
    assert 5 < first.sum() < 50

    state = tuple(torch.zeros(2, AGENTS, 1024) for _ in range(2))
    wanted = []
    with torch.no_grad():
        for view, is_first in zip(views, first, strict=True):
            *outputs, state = published.step(torch.tensor(view), torch.tensor(is_first), state)
            wanted.append(outputs)
    logits, values = (np.stack(each) for each in zip(*wanted, strict=True))
    assert np.ptp(logits, axis=(0, 1)).min() > 0.01

    params = jax.tree.map(lambda leaf: leaf[0], found.params)
    network = NetworkSettings()
    assert RunDirectory(tmp_path / "run").settings().train.network == network
    begin = policy_network.initial_state(network, AGENTS)
    run = jax.jit(found.agent.apply)
    seen = jnp.asarray(views), jnp.asarray(first)
    found_logits, found_values, after, _ = run(params, *seen, begin)
    np.testing.assert_allclose(found_logits, logits, atol=1e-5)
    np.testing.assert_allclose(found_values, values, atol=1e-5)
    for ours, theirs in zip(after, state, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_files_that_are_no_safe_checkpoint_are_refused(tmp_path, capsys):
    torch = pytest.importorskip("torch")
    text, code, cut = (tmp_path / name for name in ("text.tar", "code.tar", "cut.tar"))
    text.write_text("all my work")
    torch.save(content() | {"flags": Path("anything that is no plain setting")}, code)
    cut.write_bytes(code.read_bytes()[:200])
    for path in (text, code, cut):
        error = refused(import_torch.main, [str(path), str(tmp_path / "run")], capsys)
        assert "no checkpoint of PyTorch's of tensors and plain settings only" in error
        assert path.name in error
    assert not (tmp_path / "run").exists()
