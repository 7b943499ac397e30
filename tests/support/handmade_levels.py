"""Random levels with every kind of cell in them, for rules that our worlds do not use."""

import jax
import jax.numpy as jnp
import numpy as np

from envs.minigrid import cells as c
from envs.minigrid.level import TASKS, Level, make_level, pack_position

WIDTH, HEIGHT = 9, 7
MAX_STEPS = 100


def random_levels(rng: np.random.Generator, task: str, count: int) -> Level:
    """Draw `count` levels, stacked."""
    levels = [_random_level(rng, task) for _ in range(count)]
    return stacked(levels)


def stacked(levels: list[Level]) -> Level:
    """Stack levels of one size, in numpy: nothing is compiled."""
    return jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)), *levels)


def every_cell() -> list[int]:
    """List every cell that MiniGrid has."""
    colors = range(len(c.COLORS))
    colored = (c.open_door, c.closed_door, c.locked_door, c.key, c.ball, c.box)
    cells = [c.EMPTY, c.WALL, c.GOAL, c.LAVA]
    cells += [c.cell(c.KIND_FLOOR, color) for color in colors]
    cells += [make(color) for make in colored for color in colors]
    contents = [make(color) for make in (c.key, c.ball) for color in colors]
    return cells + [c.box(color, inside) for color in colors for inside in contents]


def _random_level(rng: np.random.Generator, task: str) -> Level:
    grid = np.full((HEIGHT, WIDTH), c.WALL, np.uint8)
    weights = np.ones(len(every_cell()))
    weights[0] = 60
    inner = rng.choice(every_cell(), (HEIGHT - 2, WIDTH - 2), p=weights / weights.sum())
    # One more of each: two things to open, to unlock with the key of its colour, and to reach.
    color = int(rng.integers(len(c.COLORS)))
    wanted = [c.locked_door(color), c.key(color), c.closed_door(color), c.ball(color), c.EMPTY]
    wanted += [c.GOAL, c.box(color, c.key(color))]
    places = rng.permutation(inner.size)[: len(wanted)]
    if task != "reach the goal":  # in MiniGrid, a goal always counts
        inner[inner == c.GOAL] = wanted[5] = c.EMPTY
    if task == "pick up the object":  # the target is one object, with no double, boxed or not
        doubles = [c.ball(color), *(c.box(other, c.ball(color)) for other in range(len(c.COLORS)))]
        inner[np.isin(inner, doubles)] = c.EMPTY
    inner.flat[places] = wanted
    grid[1:-1, 1:-1] = inner
    x, y = (places % (WIDTH - 2) + 1).tolist(), (places // (WIDTH - 2) + 1).tolist()
    target = {"pick up the object": c.ball(color), "open the door": pack_position(x[0], y[0])}
    return make_level(
        jnp.asarray(grid),
        jnp.array([x[4], y[4]]),
        int(rng.integers(4)),
        task=TASKS.index(task),
        target=target.get(task, 0),
        max_steps=MAX_STEPS,
    )
