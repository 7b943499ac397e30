"""The walkable floor, and walking on it."""

import numpy as np
import pytest
import shapely

from envs.habitat.raycast.cells import CELL
from envs.habitat.raycast.floor import Floor, find_floor, sample_points
from envs.habitat.raycast.walking import snap, walk
from envs.habitat.simulator import (
    AGENT_HEIGHT,
    AGENT_RADIUS,
    PUBLISHED_AGENT,
    STEP_LENGTH,
    AgentSize,
    SimulatorError,
)
from tests.support.scenes import box, room, together


def floor_of(*meshes, agent=PUBLISHED_AGENT) -> Floor:
    mesh = together(*meshes)
    return find_floor(np.asarray(mesh.vertices), np.asarray(mesh.faces), agent)


EDGE = 2.0 - AGENT_RADIUS - CELL  # of the floor of a room of 4 m: walls are in cells of their own


def clear_area(width: float, depth: float) -> float:
    margin = AGENT_RADIUS + CELL
    return (width - 2 * margin) * (depth - 2 * margin)


def test_keeps_the_agents_radius_from_the_walls() -> None:
    floor = floor_of(room(4.0, 3.0))
    assert floor.height == pytest.approx(0, abs=1e-6)
    assert floor.area.area == pytest.approx(clear_area(4.0, 3.0), rel=1e-3)


def test_islands_of_less_than_a_square_metre_are_not_floor() -> None:
    assert floor_of(room(1.35, 1.3)).area.area == pytest.approx(1.05)
    with pytest.raises(SimulatorError, match="no walkable floor"):
        floor_of(room(1.25, 1.25))


@pytest.mark.parametrize(
    ("obstacle", "is_one"),
    [
        (((-0.5, 0.0, -0.5), (0.5, 0.5, 0.5)), True),  # a chest
        (((-0.5, 0.7, -0.5), (0.5, 0.75, 0.5)), True),  # a table's top
        (((-0.5, 0.0, -0.01), (0.5, 2.5, 0.01)), True),  # a thin wall
        (((-0.5, 0.0, -0.5), (0.5, 0.02, 0.5)), False),  # a rug
        (((-0.5, 1.5, -0.5), (0.5, 1.6, 0.5)), False),  # a lamp overhead
    ],
)
def test_what_stands_between_step_and_head_is_in_the_way(obstacle, is_one) -> None:
    floor = floor_of(room(), box(obstacle)).area
    missing = clear_area(4.0, 4.0) - floor.area
    (x0, _, z0), (x1, _, z1) = obstacle
    grown = shapely.box(x0, z0, x1, z1).buffer(AGENT_RADIUS + CELL / 2).area
    assert missing == pytest.approx(grown if is_one else 0.0, abs=0.12)  # in whole cells
    assert shapely.contains_xy(floor, 0.0, 0.0) == (not is_one)


@pytest.mark.parametrize(
    ("size", "area", "error"),
    [
        ((0.1, 0.9), 3.7**2, 1e-3),
        ((0.3, 0.9), 3.3**2, 1e-3),
        ((0.1, AGENT_HEIGHT), 3.7 * 1.65, 0.02),
    ],
)
def test_a_wide_or_tall_agent_has_less_floor_than_a_thin_or_small_one(size, area, error) -> None:
    beam = box(((-2, 1.0, -0.1), (2, 1.2, 0.1)))  # a tall agent stays on one side of it
    floor = floor_of(room(), beam, agent=AgentSize(*size)).area
    assert floor.area == pytest.approx(area, rel=error)


def test_a_place_is_put_on_the_floor_from_as_far_as_the_floor_is_from_a_wall() -> None:
    floor = floor_of(room(), agent=AgentSize(0.4, 0.9))
    assert snap(floor, (1.9, 0.0, 0.0)) == pytest.approx((1.55, 0, 0), abs=1e-3)
    with pytest.raises(SimulatorError, match=r"near it is \(1\.55"):
        snap(floor, (2.1, 0.0, 0.0))


def test_a_roof_is_not_the_floor() -> None:
    roof = box(((-5, 2.6, -5), (5, 2.7, 5)))
    assert floor_of(room(), roof).height == pytest.approx(0, abs=1e-6)


def test_a_closed_off_corner_is_another_island() -> None:
    wall = box(((-2, 0, -1.05), (2, 2.5, -0.95)))
    floor = floor_of(room(), wall)
    assert isinstance(floor.area, shapely.Polygon)
    assert floor.area.bounds[1] == pytest.approx(-0.95 + AGENT_RADIUS, abs=0.051)


def test_small_triangles_of_a_scan_give_the_same_floor() -> None:
    chest = box(((-0.5, 0.0, -0.5), (0.5, 0.5, 0.5)))
    coarse = floor_of(room(), chest)
    fine = together(room(), chest)
    while fine.edges_unique_length.max() > 0.1:
        fine = fine.subdivide()
    difference = coarse.area.symmetric_difference(floor_of(fine).area).area
    assert difference < 0.05 * coarse.area.area


@pytest.mark.parametrize("mesh", [box(((0, 0, 0), (0.3, 0.1, 0.3))), room(4.0, 0.2)])
def test_says_so_where_nobody_can_walk(mesh) -> None:
    with pytest.raises(SimulatorError, match="no walkable floor"):
        floor_of(mesh)


def test_stops_at_a_wall_and_slides_along_it() -> None:
    floor = floor_of(room())
    x, _, z = walk(floor, (EDGE - 0.1, 0.0, 0.0), (0.15, -0.2))
    assert (x, z) == pytest.approx((EDGE, -0.2), abs=1e-3)
    assert walk(floor, (x, 0.0, 0.0), (0.25, 0.0)) == pytest.approx((EDGE, 0, 0), abs=1e-3)


def test_never_leaves_the_floor_nor_jumps() -> None:
    generator = np.random.default_rng(0)
    corners = generator.uniform(-1.6, 1.6, (12, 2))
    furniture = [box(((x, 0, z), (x + 0.3, 0.6, z + 0.4))) for x, z in corners]
    floor = floor_of(room(), *furniture)
    ((x, z),) = sample_points(floor.area, 1, 1).tolist()
    position = (x, floor.height, z)
    visited = set()
    for angle in np.repeat(generator.uniform(0, 2 * np.pi, 600), 4):
        after = walk(floor, position, (STEP_LENGTH * np.cos(angle), STEP_LENGTH * np.sin(angle)))
        assert np.hypot(after[0] - position[0], after[2] - position[2]) <= STEP_LENGTH + 1e-3
        assert shapely.contains_xy(floor.area, after[0], after[2])
        position = after
        visited.add(after)
    assert len(visited) > 1000  # it is not stuck either


def test_draws_positions_from_all_of_the_floor() -> None:
    area = floor_of(room()).area
    points = sample_points(area, 3, 2000)
    np.testing.assert_array_equal(sample_points(area, 3, 2000), points)
    assert (sample_points(area, 4, 1) != sample_points(area, 3, 1)).any()
    assert shapely.contains_xy(area, *points.T).all()
    quarters = np.histogram2d(*points.T, bins=2)[0]
    assert quarters.min() > 400


def test_puts_the_agent_on_the_floor_nearby_or_says_where_it_is() -> None:
    floor = floor_of(room())
    inside = (1.0, 0.0, -0.5)
    assert snap(floor, inside) == inside
    assert snap(floor, (1.0, 0.05, -0.5)) == inside
    assert snap(floor, (1.95, 0.0, 0.0)) == pytest.approx((EDGE, 0, 0), abs=1e-3)
    with pytest.raises(SimulatorError, match=r"\(5\.00, 0\.00, 0\.00\) is not on .* \(1\.85, 0"):
        snap(floor, (5.0, 0.0, 0.0))
    with pytest.raises(SimulatorError, match="is not on the walkable floor"):
        snap(floor, (1.0, 2.0, 0.0))


@pytest.mark.parametrize(
    ("low", "high", "is_one"), [(0.0, 0.18, False), (0.0, 0.22, True), (1.4, 1.45, True)]
)
def test_the_published_agent_steps_over_a_fifth_of_a_metre_and_is_a_metre_and_a_half_tall(
    low, high, is_one
) -> None:
    floor = floor_of(room(), box(((-0.5, low, -0.5), (0.5, high, 0.5)))).area
    assert shapely.contains_xy(floor, 0.0, 0.0) == (not is_one)


def test_floors_that_differ_by_less_than_a_step_are_one() -> None:
    lower, higher = box(((-2, -0.2, -2), (0, 0, 2))), box(((0, -0.2, -2), (2, 0.1, 2)))
    floor = floor_of(lower, higher).area
    assert shapely.contains_xy(floor, (-1.0, 1.0), 0.0).all()


@pytest.mark.parametrize("height", [-0.21, 0.21])
def test_a_place_more_than_a_step_above_or_below_the_floor_is_not_on_it(height) -> None:
    floor = floor_of(room())
    assert snap(floor, (1.0, 0.9 * height, -0.5)) == (1.0, 0.0, -0.5)
    with pytest.raises(SimulatorError, match="is not on the walkable floor"):
        snap(floor, (1.0, height, -0.5))
