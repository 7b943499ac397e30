"""Pictures, by what is drawn in them."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from cbet_jax.analysis import figures
from cbet_jax.analysis.intervals import Estimate
from cbet_jax.runs.metrics_table import HEADER


@pytest.fixture
def drawn(monkeypatch) -> dict[str, Figure]:
    """The figures that were saved, by their files' stems."""
    saved = {}

    def keep(path, figure, **_):
        saved[path.stem] = figure
        return path

    monkeypatch.setattr(figures, "save", keep)
    return saved


def write(folder, rows) -> None:
    lines = [f"0,{at},{name},{value}\n" for at in (100, 200) for name, value in rows.items()]
    (folder / "metrics.csv").write_text(HEADER + "".join(lines))


def test_diagnostics_without_news_are_named_and_not_drawn(tmp_path, drawn):
    zero = ("success", "intrinsic_reward", "levels_replayed", "count_overflow")
    write(tmp_path, {**dict.fromkeys(zero, 0), "policy_loss": 2})
    figures.draw_learning_curves(tmp_path / "metrics.csv", tmp_path, 1)
    (panel,) = drawn["diagnostics"].axes
    assert panel.get_title() == "Policy-gradient loss"
    caption = drawn["diagnostics"].get_suptitle()
    for zero in ("visits that found no room in count tables", "intrinsic reward", "levels played"):
        assert zero in caption.partition("0 throughout: ")[2]
    (success,) = drawn["learning_curves"].axes
    assert success.get_ylim() == (0, 1)


def test_numbers_are_of_all_worlds_together_and_means_of_each(tmp_path, drawn):
    worlds = {"episodes": 5, "episodes/A": 1, "episodes/B": 4}
    means = {"success": 0.8, "success/A": 0.0, "success/B": 1.0}
    write(tmp_path, worlds | means)
    figures.draw_learning_curves(tmp_path / "metrics.csv", tmp_path, 1)
    for picture, wanted in (("diagnostics", 5), ("learning_curves", 0.5)):
        (panel,) = drawn[picture].axes
        assert panel.lines[0].get_ydata() == pytest.approx(wanted)
        assert panel.lines[0].get_xdata() == pytest.approx([0.1, 0.2])
        assert panel.get_xlabel() == "frames per seed (thousands)"


def test_a_picture_is_read_at_the_width_of_a_page(tmp_path, drawn):
    names = ("interactions", "success", "intrinsic_reward", "entropy", "episode_length")
    write(tmp_path, dict.fromkeys(names, 3.0))
    figures.draw_learning_curves(tmp_path / "metrics.csv", tmp_path, 1)
    assert drawn["learning_curves"].get_figwidth() <= 10
    bar = Estimate(2.0, 1.0, 3.0)
    panels = {"share": {"cbet": [bar] * 10}, "number": {"cbet": [bar] * 10}}
    figures.draw_bars(
        tmp_path / "bars.png", "Bars", panels, [f"MultiEnv + World{i}" for i in range(10)]
    )
    upper, lower = drawn["bars"].axes
    assert drawn["bars"].get_figwidth() <= 10
    assert upper.get_position().x0 == lower.get_position().x0
    assert upper.get_xticklabels()[0].get_text() == "MultiEnv +\nWorld0"


def test_published_numbers_are_diamonds_in_the_methods_colour(tmp_path, drawn):
    bars = {"cbet": [Estimate(2.0, 1.0, 3.0)] * 2, "rnd": [Estimate(1.0, 1.0, 1.0)] * 2}
    published = {"share": {"cbet": [5.0, np.nan], "rnd": [np.nan] * 2}}
    figures.draw_bars(
        tmp_path / "bars.png", "Bars", {"share": bars, "return": bars}, ["A", "B"], published
    )
    found = [[x for x in panel.lines if x.get_marker() == "D"] for panel in drawn["bars"].axes]
    (diamonds,), of_return = found
    assert not of_return
    np.testing.assert_array_equal(diamonds.get_ydata(), [5.0, np.nan])
    assert diamonds.get_color() == "#0072B2"
    legend = [text.get_text() for text in drawn["bars"].legends[0].get_texts()]
    assert legend == ["C-BET", "RND", "published"]


def test_bars_of_a_group_stand_around_its_name_with_their_intervals(tmp_path, drawn):
    bars = {"cbet": [Estimate(2.0, 1.5, 4.0)] * 2, "rnd": [Estimate(1.0, 0.5, 1.25)] * 2}
    figures.draw_bars(tmp_path / "bars.png", "Bars", {"share": bars}, ["A", "B"])
    (panel,) = drawn["bars"].axes
    centres = []
    for measured, errors, shown in zip(
        bars.values(), panel.containers[::2], panel.containers[1::2], strict=True
    ):
        assert [bar.get_height() for bar in shown] == [bar.value for bar in measured]
        (ends,) = errors.lines[2]
        found = [segment[:, 1] for segment in ends.get_segments()]
        np.testing.assert_allclose(found, [(bar.low, bar.high) for bar in measured])
        centres.append([bar.get_x() + bar.get_width() / 2 for bar in shown])
    np.testing.assert_allclose(np.mean(centres, axis=0), [0, 1], atol=1e-12)
    assert np.diff(centres, axis=0).min() >= panel.patches[0].get_width()


def test_a_legend_names_what_only_a_later_panel_has(tmp_path, drawn):
    bar = [Estimate(2.0, 1.0, 3.0)]
    panels = {"share": {"cbet": bar}, "number": {"cbet": bar, "count": bar, "_mine": bar}}
    figures.draw_bars(tmp_path / "bars.png", "Bars", panels, ["A"])
    (legend,) = drawn["bars"].legends
    assert [text.get_text() for text in legend.get_texts()] == ["C-BET", "Count", "_mine"]
    colors = [legend.legend_handles[i].get_facecolor() for i in range(3)]
    assert colors == [bars[0].get_facecolor() for bars in drawn["bars"].axes[1].containers[1::2]]


def test_bars_of_negative_values_are_in_their_picture(tmp_path, drawn):
    bars = {"cbet": [Estimate(-120.0, -130.0, -110.0)], "rnd": [Estimate(-200.0, -210.0, -190.0)]}
    figures.draw_bars(tmp_path / "bars.png", "Bars", {"return": bars, "other": bars}, ["A"])
    assert all(panel.get_ylim()[0] <= -200 for panel in drawn["bars"].axes)


def test_a_legend_is_no_wider_than_its_picture(tmp_path, drawn):
    bar = [Estimate(2.0, 1.0, 3.0)] * 4
    names = [f"a method with a long name, number {number}" for number in range(6)]
    figures.draw_bars(
        tmp_path / "bars.png", "Bars", {"share": dict.fromkeys(names, bar)}, list("ABCD")
    )
    figure = drawn["bars"]
    (legend,) = figure.legends
    assert legend.get_window_extent().width <= figure.bbox.width
    assert [text.get_text() for text in legend.get_texts()] == names


def test_a_picture_of_one_panel_grows_by_its_legend(tmp_path, drawn):
    line = figures.Curve(np.arange(3.0), *[np.arange(3.0)] * 3)
    names = [f"a method with a long name, number {number}" for number in range(10)]
    panel = figures.Panel("Tasks", "x", "y", dict.fromkeys(names, line))
    figures.draw_lines(tmp_path / "lines.png", "Lines", [panel])
    figure = drawn["lines"]
    figure.draw_without_rendering()
    (legend,), (axis,) = figure.legends, figure.axes
    assert not legend.get_window_extent().overlaps(axis.get_tightbbox())
    assert axis.get_window_extent().height > 2 * figure.dpi


def test_a_curve_has_a_band_and_is_dotted_where_its_seeds_have_ended(tmp_path, drawn):
    line = figures.Curve(np.arange(4.0), *np.array([[2, 3, 4, 4], [1, 2, 2, 2], [4, 5, 6, 6.0]]))
    lines = {"rnd, first": line, "rnd, second": line}
    panel = figures.Panel("", "x", "y", lines, flat_from={"rnd, second": 2.0})
    figures.draw_lines(tmp_path / "lines.png", "Lines", [panel])
    (axis,) = drawn["lines"].axes
    first, second, ended = axis.lines
    assert first.get_xdata().tolist() == [0, 1, 2, 3]
    assert second.get_xdata().tolist() == [0, 1, 2]
    assert ended.get_xdata().tolist() == [2, 3]
    assert [each.get_linestyle() for each in (first, second)] == ["-", "--"]
    assert {each.get_color() for each in axis.lines} == {"#E69F00"}
    for band in axis.collections:
        heights = band.get_paths()[0].vertices[:, 1]
        assert (heights.min(), heights.max()) == (1, 6)


@pytest.mark.filterwarnings("error")
def test_minutes_stand_above_a_panel_whose_speed_is_known(tmp_path, drawn):
    line = figures.Curve(np.arange(3.0), *[np.arange(3.0)] * 3)
    figures.draw_lines(
        tmp_path / "lines.png", "Lines", [figures.Panel("", "x", "y", {"a": line}, speed=2.0)]
    )
    (axis,) = drawn["lines"].axes
    (above,) = axis.child_axes
    assert above.get_xlabel() == "minutes for one seed"
    drawn["lines"].draw_without_rendering()
    np.testing.assert_allclose(2 * np.array(above.get_xlim()), axis.get_xlim())
