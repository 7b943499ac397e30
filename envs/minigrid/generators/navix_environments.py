"""navix's own environments as generators of ours. Importing this imports navix (seconds).

Only levels are imported: grid, things, agent, task and time limit. What actions do is decided by
our rules, which are MiniGrid's. navix's differ where it shows: there, a key opens the doors that
ask for its id, and is used up; here, it opens every door of its colour, and is kept. There, some
environments let the agent walk through lava; here, lava always ends the episode.
"""

from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import navix
from jaxtyping import Array, Bool, PRNGKeyArray
from navix import environments, observations, rewards, transitions
from navix.entities import Entities
from navix.environments.multi_room import MULTI_ROOM_REWARD_FN

from envs.errors import UnknownEnvironment, UnsupportedEnvironment
from envs.minigrid.generators.generator import DrawOne, Generator, one_by_one
from envs.minigrid.generators.navix_levels import BYTES, MISSION, to_level
from envs.minigrid.level import NO_TASK, OPEN_DOOR, PICK_UP, REACH_GOAL, Level

OURS = "CBET-"  # how the names begin under which navix knows our own environments
MAX_DRAWS = 100  # of one level; ObstructedMaze-1Dlhb, the worst, fails in one draw of six


class Aim(NamedTuple):
    """What one of navix's reward functions asks for, in our terms."""

    task: int  # one of `level.TASKS`
    thing: str = ""  # the kind of what it is about, of which there must be one, or `MISSION`


AIMS = {
    rewards.free: Aim(NO_TASK),
    rewards.on_goal_reached: Aim(REACH_GOAL),
    MULTI_ROOM_REWARD_FN: Aim(REACH_GOAL),
    rewards.on_door_open: Aim(OPEN_DOOR, Entities.DOOR),
    rewards.on_box_pickup: Aim(PICK_UP, Entities.BOX),
    rewards.on_target_fetched: Aim(PICK_UP, MISSION),
}
REFUSED = {
    environments.Fetch: "its mission names an object in words, and any other one ends the episode",
    environments.GoToDoor: "its mission names a door in words",
    environments.GoToObject: "its mission names an object in words",
    environments.PutNear: "its mission names two objects in words",
    environments.Memory: "success is to recall what was seen at the start: no task of ours is that",
    environments.RedBlueDoors: "success is to open two doors in order: no task of ours is that",
}


@cache
def from_navix(name: str) -> Generator:
    """Returns a generator of the levels of one of navix's registered environments.

    Args:
        name: its name in `navix.registry()`, such as `Navix-FourRooms-v0`.

    Raises:
        UnknownEnvironment: navix has no such environment; the message names the nearest.
        UnsupportedEnvironment: our rules or our tasks cannot say what happens in it.
    """
    registered = [known for known in navix.registry() if not known.startswith(OURS)]
    if name not in registered:
        raise UnknownEnvironment(name, registered)
    environment = navix.make(name, observation_fn=observations.none)
    reason = _why_refused(environment)
    if reason is not None:
        raise UnsupportedEnvironment(name, reason)
    aim, max_steps = AIMS[environment.reward_fn], environment.max_steps

    def draw_one(key: PRNGKeyArray) -> tuple[Level, Bool[Array, ""]]:
        return to_level(environment.reset(key).state, *aim, max_steps)

    height, width, draw = environment.height, environment.width, _until_ok(draw_one)
    deadly = Entities.LAVA in _things(environment)
    return one_by_one(name, width, height, max_steps, aim.task, draw, deadly=deadly)


def _things(environment: Any) -> dict[str, Any]:
    """Returns the shapes of what is in an environment's levels, by kind."""
    things: dict[str, Any] = jax.eval_shape(environment.reset, jax.random.key(0)).state.entities
    return things


def _why_refused(environment: Any) -> str | None:
    """Returns why an environment of navix's cannot be played here, None if it can."""
    for refused, reason in REFUSED.items():
        if isinstance(environment, refused):
            return reason
    things = _things(environment)
    balls_move = environment.transitions_fn != transitions.deterministic_transition
    if Entities.BALL in things and balls_move:
        return "its balls move by themselves"
    if environment.reward_fn not in AIMS:
        return "what it rewards is none of our tasks"
    wanted = AIMS[environment.reward_fn].thing
    number = len(things[wanted].position) if wanted in things else 0
    if wanted not in ("", MISSION) and number != 1:
        return f"its task is about one {wanted}, and it has {number}"
    strange = sorted(set(things) - {Entities.PLAYER, Entities.WALL, *BYTES})
    return f"our worlds have no {' and no '.join(strange)}" if strange else None


def _until_ok(draw: DrawOne) -> DrawOne:
    """Returns a function that draws again, up to `MAX_DRAWS` times, what may not be played.

    It is compiled even where it is called outside of compiled code: navix would paint its
    pictures of the level there, which nobody looks at.
    """

    @jax.jit
    def draw_one(key: PRNGKeyArray) -> tuple[Level, Bool[Array, ""]]:
        def not_ok(carry: tuple) -> Bool[Array, ""]:
            _, draws, _, ok = carry
            return ~ok & (draws < MAX_DRAWS)

        def draw_again(carry: tuple) -> tuple:
            key, level_key = jax.random.split(carry[0])
            return key, carry[1] + 1, *draw(level_key)

        level, ok = jax.eval_shape(draw, key)
        nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), (level, ok))
        return jax.lax.while_loop(not_ok, draw_again, (key, jnp.int32(0), *nothing))[2:]

    return draw_one
