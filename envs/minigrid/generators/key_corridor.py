"""KeyCorridor: a ball behind a locked door; the key is in a room across the corridor."""

from jaxtyping import PRNGKeyArray

from envs.minigrid import cells as c
from envs.minigrid.generators import generator as g
from envs.minigrid.generators import room_grid as r
from envs.minigrid.level import LEFT, PICK_UP, UP


def key_corridor(name: str, room_size: int, rows: int) -> g.Generator:
    """Return KeyCorridor: three columns of rooms around a corridor (MiniGrid's `KeyCorridorEnv`).

    Args:
        name: the environment's name.
        room_size: cells along a room's side, including both walls (3 in S3R3).
        rows: number of rows of rooms (3 in S3R3).

    Raises:
        ValueError: the rooms are too small, or there are none.
    """
    if room_size < 3 or rows < 1:
        raise ValueError(f"rooms need a size of at least 3 and one row, not {room_size} and {rows}")
    layout = r.Layout(room_size, rows, columns=3)
    max_steps = 30 * room_size**2

    def sample_level(key: PRNGKeyArray) -> g.SampledLevel:
        seeds = g.split(key, 9)
        locked_row = g.randint(seeds[0], 0, rows)
        key_row = g.randint(seeds[1], 0, rows)
        door = g.random_color(seeds[2])
        ball = c.ball(g.random_color(seeds[3]))

        rooms = r.empty_rooms(layout, seeds[4].key)
        for row in range(1, rows):
            rooms = r.remove_wall(layout, rooms, (1, row), UP)
        rooms = r.add_door(layout, rooms, (2, locked_row), LEFT, door, locked=True)
        rooms = r.place_in_room(layout, rooms, seeds[5], (2, locked_row), ball)
        rooms = r.place_in_room(layout, rooms, seeds[6], (0, key_row), c.key(door))
        rooms = r.place_agent(layout, rooms, seeds[7], (1, rows // 2))
        return r.finish(r.connect_all(layout, rooms, seeds[8].key), PICK_UP, ball, max_steps)

    return g.make_generator(name, layout.width, layout.height, max_steps, PICK_UP, sample_level)
