"""Watching a policy: what is told of each step, the files, the terminal, and the faults."""

import io
from collections import Counter

import imageio_ffmpeg
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from cbet_jax.agent import AgentParams, network_agent, uniform
from cbet_jax.config import (
    CountSettings,
    NetworkSettings,
    RunSettings,
    SettingsError,
    TrainSettings,
)
from cbet_jax.intrinsic import make_intrinsic
from cbet_jax.runs import checkpoint
from cbet_jax.runs.directory import RunDirectory
from cbet_jax.runs.json_files import to_json
from cbet_jax.train import make_program, seed_keys
from envs.minigrid import make_world, rules, views
from envs.minigrid.generators.generator import one_by_one
from envs.minigrid.level import REACH_GOAL
from envs.minigrid.level_text import from_text, to_text
from envs.minigrid.world import gridworld
from experiments import watch
from experiments.common.presets import PRESETS
from experiments.watching import film, terminal
from experiments.watching.playing import Player, play
from tests.support.refusal import refused

MAX_STEPS = 30
CORRIDOR = "WGWGWGWGWG\nWG>>  GGWG\nWGWGWGWGWG"
KEY = jax.random.key(3)  # chance finds the goal in both episodes
TITLE = "a corridor"
SEEDS = 2


def corridor(*, explore: bool):
    level = from_text(CORRIDOR, task=REACH_GOAL, max_steps=MAX_STEPS)

    def draw_one(key):
        return level, jnp.array(True)

    generator = one_by_one(TITLE, 5, 3, MAX_STEPS, REACH_GOAL, draw_one)
    return gridworld([generator], 1, explore=explore)


def player(agent=None, params=None) -> Player:
    settings = TrainSettings(counts=CountSettings(reset_probability=0.0))
    intrinsic = make_intrinsic(settings, len(rules.ACTIONS))
    agent, params = agent or uniform(len(rules.ACTIONS)), params or AgentParams(())
    return Player("somebody", agent, params, intrinsic, None)


@pytest.fixture(scope="module")
def moments():
    """Two episodes of chance in the corridor."""
    return list(play(corridor(explore=False), player(), KEY, 2))


@pytest.fixture(scope="module")
def explored():
    """An episode of chance in the corridor that success does not end."""
    return list(play(corridor(explore=True), player(), KEY, 1))


@pytest.fixture(scope="module")
def frames(moments):
    return [film.frame(TITLE, moment) for moment in moments[:5]]


def test_an_episode_ends_with_success_unless_it_explores(moments, explored):
    assert {moment.episode for moment in moments} == {1, 2}
    for number in (1, 2):
        episode = [moment for moment in moments if moment.episode == number]
        assert [moment.step for moment in episode] == list(range(len(episode)))
        last = episode[-1]
        assert last.event == "success"
        assert last.extrinsic == pytest.approx(1 - 0.9 * last.step / MAX_STEPS)
        assert last.state.level.agent_position.tolist() == [3, 1]  # not yet in the next episode
        assert not any(moment.event or moment.extrinsic for moment in episode[:-1])
    assert len(explored) == MAX_STEPS + 1
    assert explored[-1].event == "out of time"
    assert sum(moment.event == "success" for moment in explored) == 1
    assert sum(moment.extrinsic > 0 for moment in explored) == 1


@jax.jit
def look(state):
    return views.egocentric(state, views.look_around(state)), views.panorama(state)


def test_each_step_has_the_reward_that_it_would_have_in_training(explored):
    seen, around = [], []
    for moment in explored:
        view, panorama = look(moment.state)
        seen.append(np.asarray(view).tobytes())
        around.append(np.asarray(panorama, int))
    states, changes = Counter(seen[:1]), Counter()
    for step in range(1, MAX_STEPS):  # what the last step reveals is of the next episode
        change = (around[step] - around[step - 1]).tobytes()
        states[seen[step]] += 1
        changes[change] += 1
        expected = 1 / (states[seen[step]] + changes[change])
        assert explored[step].intrinsic == pytest.approx(expected), step


def test_a_network_acts_with_its_memory():
    network = NetworkSettings(1, 4, 1, 16, 1, 16)
    agent = network_agent(network, len(rules.ACTIONS), (7, 7, 3))
    params = jax.jit(agent.init)(jax.random.key(6))
    params = jax.tree.map(lambda leaf: 2 * leaf, params)  # so that the memory has a say
    params.learnt["params"]["policy"]["kernel"] *= 1e6  # and chance has not
    played = list(play(corridor(explore=True), player(agent, params), KEY, 1, steps=12))
    seen = jnp.stack([look(moment.state)[0] for moment in played[:-1]])[:, None]

    @jax.jit
    def act(first):
        logits, _, _ = agent.apply(params, seen, first[:, None], agent.initial_state(1))
        return logits[:, 0].argmax(-1)

    def actions(first):
        return [rules.ACTIONS[action] for action in act(jnp.array(first))]

    done = [True] + [moment.event == "success" for moment in played[1:-1]]
    assert [moment.action for moment in played[1:]] == actions(done)
    assert actions(done) != actions([True] * 12)


def read_mp4(path) -> list[np.ndarray]:
    reader = imageio_ffmpeg.read_frames(str(path))
    width, height = next(reader)["size"]
    return [np.frombuffer(frame, np.uint8).reshape(height, width, 3) for frame in reader]


def read_gif(path) -> list[np.ndarray]:
    with Image.open(path) as gif:
        pictures = []
        for number in range(gif.n_frames):
            gif.seek(number)
            pictures.append(np.array(gif.convert("RGB")))
        return pictures


@pytest.mark.parametrize(("suffix", "read"), [(".gif", read_gif), (".mp4", read_mp4)])
def test_a_film_shows_every_frame(suffix, read, frames, tmp_path):
    path = tmp_path / "new" / f"film{suffix}"
    assert film.write(path, iter(frames), 5) == len(frames)
    shown = read(path)
    assert len(shown) == len(frames)
    for picture, frame in zip(shown, frames, strict=True):
        assert picture.shape == frame.shape
        assert np.abs(picture.astype(int) - frame).mean() < 2
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_png_shows_the_first_frame(frames, tmp_path):
    path = tmp_path / "level.PNG"
    assert film.write(path, iter(frames), 5) == 1
    with Image.open(path) as picture:
        assert np.array_equal(np.asarray(picture), frames[0])


def test_no_file_is_written_over(frames, tmp_path):
    path = tmp_path / "film.gif"
    path.write_text("mine")
    with pytest.raises(SettingsError, match="already exists"):
        film.write(path, iter(frames), 5)
    assert path.read_text() == "mine"
    with pytest.raises(SettingsError, match="cannot write"):
        film.write(path / "film.gif", iter(frames), 5)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_a_terminal_shows_the_grid_the_view_and_the_facts(moments):
    printed, drawn = io.StringIO(), io.StringIO()
    terminal.show(Console(file=printed, width=100), TITLE, moments[:3], 50)
    in_colour = Console(file=drawn, force_terminal=True, color_system="truecolor", width=100)
    terminal.show(in_colour, TITLE, moments[:3], 50)
    assert printed.getvalue().count(TITLE) == 3
    assert "\x1b" not in printed.getvalue()
    assert "\x1b[1;97;" in drawn.getvalue()  # the agent
    for moment in moments[:3]:
        for line in to_text(moment.state.level).splitlines()[:3]:
            assert line in printed.getvalue()
        assert f"step             {moment.step} of {MAX_STEPS}" in printed.getvalue()
        assert f"step             {moment.step} of {MAX_STEPS}" in drawn.getvalue()
    assert "....WG^^WG...." in printed.getvalue()  # the last line of a view: walls on both sides
    assert f"action           {moments[1].action}" in printed.getvalue()


@pytest.fixture(scope="module")
def run_directory(tmp_path_factory) -> RunDirectory:
    """A run that has saved networks of zeros."""
    directory = RunDirectory(tmp_path_factory.mktemp("run"))
    train = PRESETS["smoke"].train
    settings = RunSettings(train, ("LavaGapS5",), SEEDS, first_seed=7)
    directory.create(settings)
    world = make_world(settings.environments, train.worlds, explore=True)
    keys = seed_keys(SEEDS, 7)
    state = jax.eval_shape(make_program(train, world, SEEDS, 1).init, keys)
    is_key = lambda leaf: jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)  # noqa: E731
    state = jax.tree.map(
        lambda leaf: keys if is_key(leaf) else np.zeros(leaf.shape, leaf.dtype), state
    )
    checkpoint.save(directory.checkpoints, state, checkpoint.Position(), to_json(settings))
    return directory


def test_a_run_is_watched(run_directory, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    arguments = [str(run_directory.root), "--steps", "2", "--seed-index", "1"]
    watch.main([*arguments, "--terminal"])
    shown = capsys.readouterr().out
    assert shown.count("LavaGapS5: cbet, seed 8, 0 frames") == 3
    occupied = run_directory.root / "watch-LavaGapS5.gif"
    occupied.write_text("mine")
    watch.main(arguments)
    assert "watch-LavaGapS5-2.gif (3 frames)" in capsys.readouterr().out
    assert read_gif(occupied.with_name("watch-LavaGapS5-2.gif"))[0].shape == (480, 432, 3)
    assert occupied.read_text() == "mine"


def test_a_random_policy_is_watched(tmp_path, capsys):
    out = tmp_path / "level.png"
    watch.main(["--env", "LavaGapS5", "--out", str(out)])
    assert f"saved: {out} (1 frames)" in capsys.readouterr().out
    with Image.open(out) as picture:
        assert picture.size == (432, 480)


def test_a_run_without_a_checkpoint_is_refused(tmp_path, capsys):
    RunDirectory(tmp_path).create(RunSettings(PRESETS["smoke"].train, ("LavaGapS5",)))
    assert "holds no checkpoint yet" in refused(watch.main, [str(tmp_path)], capsys)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "--env NAME"),
        (["nowhere"], "holds no run"),
        (["--env", "KeyCoridorS3R3"], "KeyCorridorS3R3"),
        (["--env", "KeyCorridorS3R3", "--out", "film.avi"], ".gif, .mp4, .png"),
        (["--env", "KeyCorridorS3R3", "--out", "here.gif"], "already exists"),
        (["--env", "KeyCorridorS3R3", "--out", "a.gif", "--terminal"], "--terminal"),
        (["--env", "KeyCorridorS3R3", "--episodes", "0"], "episodes must be at least 1"),
        (["--env", "KeyCorridorS3R3", "--steps", "0"], "steps must be at least 1"),
        (["--env", "KeyCorridorS3R3", "--seed", "-1"], "seed must be at least 0"),
        (["--env", "KeyCorridorS3R3", "--fps", "0"], "fps must be at least 1"),
        (["--env", "KeyCorridorS3R3", "--fps", "51"], "fps must be at most 50"),
        (["--env", "KeyCorridorS3R3", "--seed-index", "1"], "seed_index must lie in 0..0"),
        (["--env", "KeyCorridorS3R3", "--checkpoint", "80"], "--checkpoint needs DIR"),
    ],
)
def test_what_cannot_be_watched_is_refused(arguments, expected, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here.gif").write_text("mine")
    assert expected in refused(watch.main, arguments, capsys)
    assert [path.name for path in tmp_path.iterdir()] == ["here.gif"]
    assert (tmp_path / "here.gif").read_text() == "mine"
