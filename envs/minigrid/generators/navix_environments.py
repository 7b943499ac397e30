"""Import navix's environments as generators. Importing this module imports navix (seconds).

Only levels are imported: grid, objects, agent, task and time limit. They are played by MiniGrid's
rules. In navix a key opens the doors that require its id, and is used up; here it opens every door
of its colour, and is kept. In navix the agent can walk through lava in some environments; here
lava always ends the episode.
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
from envs.minigrid.generators.generator import Generator, SampleLevel, make_generator
from envs.minigrid.generators.navix_levels import CELLS_OF, MISSION, to_level
from envs.minigrid.level import NO_TASK, OPEN_DOOR, PICK_UP, REACH_GOAL, Level

OUR_PREFIX = "CBET-"  # of the names under which our own environments are registered with navix
MAX_TRIES = 100  # for one level; ObstructedMaze-1Dlhb, the worst, fails in one try of six


class Aim(NamedTuple):
    """The task that one of navix's reward functions rewards."""

    task: int  # index into `level.TASKS`
    thing: str = ""  # kind of the only object that the task is about, or `MISSION`


AIMS = {
    rewards.free: Aim(NO_TASK),
    rewards.on_goal_reached: Aim(REACH_GOAL),
    MULTI_ROOM_REWARD_FN: Aim(REACH_GOAL),
    rewards.on_door_open: Aim(OPEN_DOOR, Entities.DOOR),
    rewards.on_box_pickup: Aim(PICK_UP, Entities.BOX),
    rewards.on_target_fetched: Aim(PICK_UP, MISSION),
}
REFUSED = {
    environments.Fetch: "its mission names an object in words, and all others end the episode",
    environments.GoToDoor: "its mission names a door in words",
    environments.GoToObject: "its mission names an object in words",
    environments.PutNear: "its mission names two objects in words",
    environments.Memory: "its task is to recall what was seen at the start, which is not supported",
    environments.RedBlueDoors: "its task is to open two doors in order, which is not supported",
}


@cache
def from_navix(name: str) -> Generator:
    """Return a generator of the levels of one of navix's registered environments.

    Args:
        name: a name in `navix.registry()`, such as `Navix-FourRooms-v0`.

    Raises:
        UnknownEnvironment: navix has no such environment; the message suggests similar names.
        UnsupportedEnvironment: our rules or our tasks do not cover the environment.
    """
    registered = [known for known in navix.registry() if not known.startswith(OUR_PREFIX)]
    if name not in registered:
        raise UnknownEnvironment(name, registered)
    environment = navix.make(name, observation_fn=observations.none)
    reason = _why_refused(environment)
    if reason is not None:
        raise UnsupportedEnvironment(name, reason)
    aim, max_steps = AIMS[environment.reward_fn], environment.max_steps

    def sample_level(key: PRNGKeyArray) -> tuple[Level, Bool[Array, ""]]:
        return to_level(environment.reset(key).state, *aim, max_steps)

    height, width = environment.height, environment.width
    deadly = Entities.LAVA in _things(environment)
    return make_generator(
        name, width, height, max_steps, aim.task, _retry(sample_level), deadly=deadly
    )


def _things(environment: Any) -> dict[str, Any]:
    """Return the shapes of the objects in an environment's levels, by kind."""
    things: dict[str, Any] = jax.eval_shape(environment.reset, jax.random.key(0)).state.entities
    return things


def _why_refused(environment: Any) -> str | None:
    """Return why an environment cannot be imported, or None if it can."""
    for refused, reason in REFUSED.items():
        if isinstance(environment, refused):
            return reason
    things = _things(environment)
    balls_move = environment.transitions_fn != transitions.deterministic_transition
    if Entities.BALL in things and balls_move:
        return "its balls move by themselves"
    if environment.reward_fn not in AIMS:
        return "its reward is none of our tasks"
    wanted = AIMS[environment.reward_fn].thing
    number = len(things[wanted].position) if wanted in things else 0
    if wanted not in ("", MISSION) and number != 1:
        return f"its task is about one {wanted}, and it has {number}"
    unknown = sorted(set(things) - {Entities.PLAYER, Entities.WALL, *CELLS_OF})
    return f"our worlds have no {' and no '.join(unknown)}" if unknown else None


def _retry(sample_level: SampleLevel) -> SampleLevel:
    """Return a function that samples again, up to `MAX_TRIES` times, until a level may be played.

    The function is jitted because navix draws pictures of the level outside of compiled code.
    """

    @jax.jit
    def retry(key: PRNGKeyArray) -> tuple[Level, Bool[Array, ""]]:
        def not_ok(carry: tuple) -> Bool[Array, ""]:
            _, tries, _, ok = carry
            return ~ok & (tries < MAX_TRIES)

        def try_again(carry: tuple) -> tuple:
            key, level_key = jax.random.split(carry[0])
            return key, carry[1] + 1, *sample_level(level_key)

        level, ok = jax.eval_shape(sample_level, key)
        nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), (level, ok))
        return jax.lax.while_loop(not_ok, try_again, (key, jnp.int32(0), *nothing))[2:]

    return retry
