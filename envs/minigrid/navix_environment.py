"""Our gridworlds as navix environments: navix's interface, MiniGrid's rules and views.

Importing this module imports navix, which takes seconds, and registers every environment as
`CBET-<name>-v0` (`-v1` if the name itself ends so). `import envs.minigrid` alone sees to it
that this happens as soon as somebody imports navix (`envs/minigrid/navix_registration.py`).

navix's own `reset`, `step` and auto-reset (deferred by one call) are inherited as they are.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import navix
from flax import struct
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt8
from navix.environments.environment import Environment, StepType, Timestep
from navix.rendering.cache import RenderingCache
from navix.spaces import Continuous, Discrete
from navix.states import EventsManager

from envs.minigrid import rules, views
from envs.minigrid.generators import GENERATORS, Generator, draw, find
from envs.minigrid.level import Level

NUM_VALUES = 11  # MiniGrid's types are 0..10, its colours and states fewer
VIEW_SPACE = (views.VIEW_SIZE, views.VIEW_SIZE, 3)


class NavixState(struct.PyTreeNode):
    """What navix carries in `Timestep.state`: our state, and what navix itself keeps there.

    Fields have no exact types, since JAX rebuilds such records with anything in their places.
    """

    world: Any  # dynamics.State
    outcome: Any  # dynamics.Outcome of the action that led here
    key: Any  # of the next level
    events: Any  # navix's EventsManager, always empty: our rules give the outcome instead
    cache: Any = None  # never built: navix's sprites are not used


class CbetEnvironment(Environment):
    """A navix environment whose levels come from one of our generators."""

    generator: Generator = struct.field(pytree_node=False, kw_only=True)

    def _reset(self, key: Array, cache: RenderingCache | None = None) -> Timestep:
        """Draws a level and returns its first `Timestep`."""
        world = rules.start(self._draw_level(key))
        state = NavixState(
            world=world,
            outcome=_nothing_happened(world),
            key=key,
            events=EventsManager(),
        )
        return Timestep(
            t=jnp.int32(0),
            observation=self.observation_fn(state),
            action=jnp.int32(0),
            reward=jnp.float32(0),
            step_type=StepType.TRANSITION.astype(jnp.int32),
            state=state,
        )

    def _draw_level(self, key: Array) -> Level:
        typed = key if jnp.issubdtype(key.dtype, jax.dtypes.prng_key) else _typed(key)
        levels, _ = draw(self.generator, typed, 1)
        level: Level = jax.tree.map(lambda leaf: leaf[0], levels)
        return level._replace(max_steps=jnp.int32(self.max_steps))


def make(name: str, *, explore: bool = False, **options: Any) -> CbetEnvironment:
    """Builds one of the paper's environments.

    Args:
        name: the paper's name, such as `KeyCorridorS3R3`.
        explore: success does not end the episode (pre-training).
        **options: fields of `navix.Environment`: `max_steps`, `gamma`, `observation_fn` (from a
            `NavixState`, with its `observation_space`), `disable_autoreset` and so on.

    Raises:
        UnknownEnvironment: no environment has that name.
    """
    generator = find(name)
    defaults: dict[str, Any] = {
        "max_steps": generator.max_steps,
        "observation_fn": observe,
        "reward_fn": _reward,
        "termination_fn": _died if explore else _ended,
        "transitions_fn": _transition,
        "action_set": tuple(partial(_play, action) for action in range(len(rules.ACTIONS))),
        "reward_space": Continuous.create((), jnp.float32(0), jnp.float32(1)),
    }
    if "observation_fn" not in options:
        space = Discrete.create(NUM_VALUES, VIEW_SPACE, jnp.uint8)
        defaults["observation_space"] = space
    environment: CbetEnvironment = CbetEnvironment.create(
        height=generator.height, width=generator.width, generator=generator, **defaults | options
    )
    return environment


def observe(state: NavixState) -> UInt8[Array, "7 7 3"]:
    """Returns MiniGrid's egocentric view."""
    return views.egocentric(state.world, views.look_around(state.world))


def _transition(state: NavixState, action: Int[Array, ""], action_set: tuple) -> NavixState:
    """Plays an action; `action_set` is there for other code to count and call."""
    del action_set
    return _play(action, state)


def _play(action: Int[Array, ""] | int, state: NavixState) -> NavixState:
    world, outcome = rules.step(state.world, jnp.asarray(action, jnp.int32))
    return state.replace(world=world, outcome=outcome)


def _reward(before: NavixState, action: Int[Array, ""], after: NavixState) -> Float[Array, ""]:
    return after.outcome.reward


def _ended(before: NavixState, action: Int[Array, ""], after: NavixState) -> Bool[Array, ""]:
    return after.outcome.success | after.outcome.died


def _died(before: NavixState, action: Int[Array, ""], after: NavixState) -> Bool[Array, ""]:
    return after.outcome.died


def _nothing_happened(world: rules.State) -> rules.Outcome:
    """Returns zeros in the shape of an outcome: what stands in a fresh state."""
    _, outcome = jax.eval_shape(rules.step, world, jnp.int32(0))
    return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), outcome)


def _typed(key: Array) -> PRNGKeyArray:
    """Wraps a raw key (`jax.random.PRNGKey`): navix's own agents still pass those."""
    return jax.random.wrap_key_data(key)


def navix_id(name: str) -> str:
    """Returns the id under which navix knows the environment of that name."""
    return f"CBET-{name}" if name.endswith("-v1") else f"CBET-{name}-v0"


for _name in GENERATORS:
    navix.register_env(navix_id(_name), partial(make, _name))
