"""What is drawn and said when a run ends."""

import signal
from dataclasses import replace

import pytest

from cbet_jax.analysis import figures
from cbet_jax.runs.directory import RunDirectory
from cbet_jax.runs.host_loop import Outcome
from experiments import minigrid_pretrain
from experiments.common import endings
from experiments.common.presets import PRESETS


def test_whoever_asks_to_stop_while_curves_are_drawn_gets_no_film(tmp_path, monkeypatch):
    picture = tmp_path / "curves.png"

    def draw(*_):
        signal.raise_signal(signal.SIGTERM)
        return [picture]

    monkeypatch.setattr(figures, "draw_learning_curves", draw)
    monkeypatch.setattr(endings, "draw_film", lambda *_: pytest.fail("filmed"))
    run = RunDirectory(tmp_path / "run")
    run.create(PRESETS["smoke"])
    assert endings.draw_figures(run) == ([picture], signal.SIGTERM)
    assert endings.show_figures(run, None, film=lambda to: None) == signal.SIGTERM


def test_whoever_asks_to_stop_while_it_is_filmed_gets_the_film(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "draw_learning_curves", lambda *_: [])
    run = RunDirectory(tmp_path / "run")
    run.create(PRESETS["smoke"])

    def film(to):
        signal.raise_signal(signal.SIGTERM)
        to.write_bytes(b"GIF")

    assert endings.show_figures(run, None, film) == signal.SIGTERM
    assert (run.root / "watch.gif").exists()


def test_no_host_films_if_another_was_asked_to_stop(tmp_path, monkeypatch):
    """They film together, or not at all: one would wait for the others for ever."""
    monkeypatch.setattr(figures, "draw_learning_curves", lambda *_: [])
    monkeypatch.setattr(endings.multihost, "largest", lambda number: max(number, signal.SIGTERM))
    monkeypatch.setattr(endings, "draw_film", lambda *_: pytest.fail("filmed"))
    run = RunDirectory(tmp_path / "run")
    run.create(PRESETS["smoke"])
    assert endings.show_figures(run, None, film=lambda to: None) == signal.SIGTERM


@pytest.mark.parametrize(
    ("words", "more"),
    [
        ("--method my.py:make --keep_at 80 90", " --out RUN --resume"),
        ("--out=RUN --no-film", " --resume"),
        ("--out RUN --resume --frames 9M", ""),
    ],
)
def test_a_run_is_continued_by_the_line_that_began_it(words, more, tmp_path):
    run = RunDirectory(tmp_path)
    words, more = (line.replace("RUN", str(tmp_path)) for line in (words, more))
    line = endings.how_to_continue(minigrid_pretrain.EXPERIMENT, run, words.split())
    assert line.endswith(f"experiments.minigrid_pretrain {words}{more}")


@pytest.mark.parametrize("signal", [0, 2])
@pytest.mark.parametrize("until", ["--until 9M", "--until=9M"])
def test_a_run_that_has_reached_until_is_continued_beyond(until, signal, tmp_path):
    run, words = RunDirectory(tmp_path), f"--until-success 0.9 {until} --seeds 2".split()
    end = Outcome(9, finished=False, trained=True, signal=signal)
    line = endings.closing_line(minigrid_pretrain.EXPERIMENT, run, end, words)
    said = f"--until-success 0.9 {until} --seeds 2" if signal else "--until-success 0.9 --seeds 2"
    assert line.endswith(f"experiments.minigrid_pretrain {said} --out {tmp_path} --resume")


@pytest.mark.parametrize(
    ("words", "evaluation", "film"),
    [
        ("--envs Unlock --seeds 2", "", ""),
        ("--envs a.py:one Unlock", " --envs a.py:one Unlock", " --env a.py:one"),
        ("--method my.py:make", "", " --method my.py:make"),
        ("--method rnd", "", ""),
        ("--simulator ./mine.py", " --simulator ./mine.py", " --simulator ./mine.py"),
        ("--simulator-python py", " --simulator-python py", " --simulator-python py"),
        ("--envs whole.py:world", " --envs whole.py:world", None),
        ("--envs XLand-MiniGrid-R4-9x9", " --envs XLand-MiniGrid-R4-9x9", None),
        ("--resume", " --envs XLand-MiniGrid-R4-9x9", None),  # it goes on
    ],
)
def test_the_next_commands_name_the_code_that_they_need(
    words, evaluation, film, tmp_path, monkeypatch
):
    """A world with rules of its own cannot be filmed: `watch` is not suggested."""
    monkeypatch.setattr(endings, "is_whole_world", lambda name: film is None)
    run = RunDirectory(tmp_path / "run")
    played = {"environments": ("XLand-MiniGrid-R4-9x9",)} if film is None else {}
    run.create(replace(PRESETS["smoke"], **played))
    end = Outcome(9, finished=True, trained=True, signal=0)
    said = endings.closing_line(minigrid_pretrain.EXPERIMENT, run, end, words.split()).split("\n")
    assert said[0].endswith(f"experiments.minigrid_evaluate {run.root}{evaluation}")
    watching = [f"experiments.watch {run.root}{film}"] if film is not None else []
    assert [line.partition("-m ")[2] for line in said[1:]] == watching
