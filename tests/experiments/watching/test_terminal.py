"""Watching as text."""

import io

from rich.console import Console

from envs.minigrid.level_text import to_text
from experiments.watching import terminal
from tests.support.watched import MAX_STEPS, TITLE


def test_a_terminal_shows_the_grid_the_view_and_the_facts(moments):
    printed, drawn = io.StringIO(), io.StringIO()
    scenes = [(moment,) for moment in moments[:3]]
    terminal.show(Console(file=printed, width=100), TITLE, ["somebody"], scenes, 50)
    in_colour = Console(file=drawn, force_terminal=True, color_system="truecolor", width=100)
    terminal.show(in_colour, TITLE, ["somebody"], scenes, 50)
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
    assert printed.getvalue().startswith(terminal.LEGEND)
    assert all(line.strip() for line in printed.getvalue().splitlines())
    beside = io.StringIO()
    scene = [tuple(moments[:2])]
    terminal.show(Console(file=beside, width=100), TITLE, ["one", "other"], scene, 50)
    grids = [to_text(moment.state.level).splitlines()[1] for moment in moments[:2]]
    assert any(
        line.startswith(grids[0]) and line.rstrip().endswith(grids[1])
        for line in beside.getvalue().splitlines()
    )
