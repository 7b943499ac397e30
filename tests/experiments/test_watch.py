"""The command that shows a policy: files, the terminal, and the faults."""

import jax
import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from cbet_jax.runs.directory import RunDirectory
from envs.minigrid import make_world
from experiments import watch
from experiments.watching import film, players
from experiments.watching import film_command as command
from experiments.watching.players import saved_player
from tests.support.refusal import refused
from tests.support.saved_runs import save_run
from tests.support.watched import read_gif


@pytest.fixture(scope="module")
def run_directory(tmp_path_factory) -> RunDirectory:
    """A run that has saved networks."""
    return save_run(tmp_path_factory.mktemp("run"))


@pytest.fixture
def chance(run_directory, monkeypatch):
    """A network of drawn numbers, instead of random play: the run's program plays it, too."""
    world, random = make_world(("LavaGapS5",), 1, explore=False), np.random.default_rng(0)
    saved = saved_player(run_directory, run_directory.settings(), world, 0, None, Console())
    drawn = jax.tree.map(lambda x: random.normal(size=x.shape).astype(x.dtype), saved.params)
    player = saved._replace(title=players.random_player().title, params=drawn)
    monkeypatch.setattr(players, "random_player", lambda: player)


def test_a_run_is_watched(run_directory, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    arguments = [str(run_directory.root), "--steps", "2", "--seed-index", "1"]
    occupied = run_directory.root / "watch-LavaGapS5.gif"
    occupied.write_text("mine")
    watch.main(arguments)
    said = capsys.readouterr().out.splitlines()
    assert said[:2] == [f"loading {run_directory.root}", "playing LavaGapS5"]
    assert said[2].endswith("watch-LavaGapS5-2.gif (3 frames)")
    assert read_gif(occupied.with_name("watch-LavaGapS5-2.gif"))[0].shape == (480, 432, 3)
    assert occupied.read_text() == "mine"


@pytest.mark.slow
def test_a_run_is_watched_beside_a_random_policy(chance, run_directory, capsys, monkeypatch):
    """Both meet the same levels, whatever they did in the episode before."""
    monkeypatch.setenv("COLUMNS", "200")
    watch.main([str(run_directory.root), "--beside-random", "--terminal", "--episodes", "2"])
    _, *scenes = capsys.readouterr().out.split("\nLavaGapS5\n")
    levels = {}
    for scene in scenes:
        players, *lines = scene.splitlines()
        column = players.index("uniformly random")
        assert players[:column].strip() == "cbet, seed 7, 0 frames"
        one = [line[:column].strip() for line in lines]
        other = [line[column:].strip() for line in lines]
        if "step             0 of 100" in one and "step             0 of 100" in other:
            levels[one[5]] = (one[:5], other[:5])
    assert list(levels) == ["episode          1", "episode          2"]
    for one, other in levels.values():
        assert one == other
        assert one[0] == 5 * "WG"


def test_both_players_are_rewarded_by_the_runs_method(run_directory, monkeypatch):
    seen = []
    monkeypatch.setattr(command, "play", lambda world, player, *_: seen.append(player))
    monkeypatch.setattr(command, "side_by_side", lambda *plays: iter(plays))
    monkeypatch.setattr(command.terminal, "show", lambda *_: None)
    watch.main([str(run_directory.root), "--beside-random", "--terminal"])
    one, other = seen
    assert (one.title, other.title) == ("cbet, seed 7, 0 frames", "uniformly random")
    assert other.intrinsic is one.intrinsic
    assert other.intrinsic_params is one.intrinsic_params


def test_a_random_policy_is_watched(chance, tmp_path, capsys):
    out = tmp_path / "level.png"
    watch.main(["--env", "LavaGapS5", "--out", str(out)])
    assert f"saved: {out} (1 frame)" in capsys.readouterr().out
    with Image.open(out) as picture:
        assert picture.size == (432, 480)


@pytest.mark.parametrize(
    ("words", "steps"),
    [([], 140), (["--steps", "500"], 500), (["--episodes", "2"], None), (["--episodes", "1"], 140)],
)
def test_a_film_of_one_episode_is_short(words, steps, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(command, "watch_gridworld", lambda options, *_: asked.append(options.steps))
    monkeypatch.chdir(tmp_path)
    watch.main(["--env", "KeyCorridorS3R3", *words])
    assert asked == [steps]


def test_a_video_without_ffmpeg_is_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(film, "find_spec", lambda name: None)
    arguments = ["--env", "KeyCorridorS3R3", "--out", str(tmp_path / "film.mp4")]
    assert "--extra video" in refused(watch.main, arguments, capsys)
