"""What is drawn and said when a run ends."""

import signal

import pytest

from cbet_jax.analysis import figures
from cbet_jax.runs.directory import RunDirectory
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
    assert endings.show_figures(run, None, film=()) == signal.SIGTERM


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("--preset smoke --method cbet --seeds 2", ""),
        ("--method my.py:make --own power=1 --seeds 2", "--method my.py:make"),
        ("--envs a.py:one Unlock --frames 9 --method=b:c", "--envs a.py:one Unlock --method=b:c"),
        ("--simulator ./mine.py", "--simulator ./mine.py"),
    ],
)
def test_a_run_is_continued_with_the_code_that_it_needs(words, kept):
    assert endings.naming_own_code(words.split()) == kept.split()
