"""Gridworlds as navix environments: navix's interface with MiniGrid's rules and views.

Importing this module imports navix, which takes seconds, and registers every environment as
`CBET-<name>-v0` (names that end in `-v1` become `CBET-<name>`).

navix's own `reset` and `step`, with its automatic reset (one call after the end), are compiled.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import navix
from flax import struct
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int, UInt8
from navix.environments.environment import Environment, StepType, Timestep
from navix.rendering.cache import RenderingCache
from navix.spaces import Continuous, Discrete
from navix.states import EventsManager

from envs.adapters import strong
from envs.minigrid import rules, views
from envs.minigrid.generators import GENERATORS, Generator, find, sample_levels
from envs.minigrid.level import Level

NUM_VALUES = 11  # MiniGrid's types are 0..10; colours and states have fewer values
VIEW_SPACE = (views.VIEW_SIZE, views.VIEW_SIZE, 3)


class NavixState(struct.PyTreeNode):
    """The `state` of a `Timestep`: our own state, and the fields that navix expects.

    Fields are `Any` because JAX rebuilds such records with arbitrary objects in them.
    """

    world: Any  # rules.State
    outcome: Any  # rules.Outcome of the last action
    key: Any  # random key of the next level
    events: Any  # navix's EventsManager, always empty: `outcome` replaces it
    cache: Any = None  # navix's rendering cache, never built


class CbetEnvironment(Environment):
    """A navix environment that plays the levels of a generator.

    `reset` and `step` are compiled once per environment; uncompiled, a step takes seconds.
    """

    generator: Generator = struct.field(pytree_node=False, kw_only=True)

    def __post_init__(self) -> None:
        compiled_reset, compiled_step = _compiled(super().reset), _compiled(super().step)

        def reset(key: Array, cache: RenderingCache | None = None) -> Timestep:
            return compiled_reset(key, cache)

        def step(timestep: Timestep, action: ArrayLike) -> Timestep:
            return compiled_step(timestep, jnp.asarray(action, jnp.int32))

        object.__setattr__(self, "reset", reset)
        object.__setattr__(self, "step", step)

    def _reset(self, key: Array, cache: RenderingCache | None = None) -> Timestep:
        """Sample a level and return its first `Timestep`."""
        world = rules.start(self._sample_level(key))
        state = NavixState(
            world=world, outcome=rules.no_outcome(world), key=key, events=EventsManager()
        )
        return Timestep(
            t=jnp.int32(0),
            observation=self.observation_fn(state),
            action=jnp.int32(0),
            reward=jnp.float32(0),
            step_type=StepType.TRANSITION.astype(jnp.int32),
            state=state,
        )

    def _sample_level(self, key: Array) -> Level:
        if not jnp.issubdtype(key.dtype, jax.dtypes.prng_key):  # navix's own agents pass raw keys
            key = jax.random.wrap_key_data(key)
        levels, _ = sample_levels(self.generator, key, 1)
        level: Level = jax.tree.map(lambda leaf: leaf[0], levels)
        return level._replace(max_steps=jnp.int32(self.max_steps))


def make(name: str, *, explore: bool = False, **options: Any) -> CbetEnvironment:
    """Build an environment with navix's interface.

    `envs.minigrid.make` describes the arguments. The option `observation_fn` is a function of a
    `NavixState`, and needs the option `observation_space`.
    """
    generator = find(name)
    defaults: dict[str, Any] = {
        "max_steps": generator.max_steps,
        "observation_fn": observe,
        "reward_fn": _reward,
        "termination_fn": partial(_terminated, explore),
        "transitions_fn": _transition,
        "action_set": tuple(partial(_play, action) for action in range(len(rules.ACTIONS))),
        "reward_space": Continuous.create((), jnp.float32(0), jnp.float32(1)),
    }
    if "observation_fn" not in options:
        defaults["observation_space"] = Discrete.create(NUM_VALUES, VIEW_SPACE, jnp.uint8)
    environment: CbetEnvironment = CbetEnvironment.create(
        height=generator.height, width=generator.width, generator=generator, **defaults | options
    )
    return environment


def observe(state: NavixState) -> UInt8[Array, "7 7 3"]:
    """Return MiniGrid's egocentric view."""
    return views.egocentric(state.world, views.look_around(state.world))


def _transition(state: NavixState, action: Int[Array, ""], action_set: tuple) -> NavixState:
    """Take an action."""
    del action_set  # passed by navix
    return _play(action, state)


def _play(action: Int[Array, ""] | int, state: NavixState) -> NavixState:
    world, outcome = rules.step(state.world, jnp.asarray(action, jnp.int32))
    return state.replace(world=world, outcome=outcome)


def _reward(before: NavixState, action: Int[Array, ""], after: NavixState) -> Float[Array, ""]:
    return after.outcome.reward


def _terminated(
    explore: bool, before: NavixState, action: Int[Array, ""], after: NavixState
) -> Bool[Array, ""]:
    return rules.episode_ends(after.outcome, explore=explore)[0]


def _compiled(function: Callable[..., Timestep]) -> Callable[..., Timestep]:
    """Compile a function without weak types in its timesteps: `step` is then compiled once."""
    return jax.jit(lambda *inputs: jax.tree.map(strong, function(*inputs)))


def navix_id(name: str) -> str:
    """Return the id under which navix registers the environment of that name."""
    return f"CBET-{name}" if name.endswith("-v1") else f"CBET-{name}-v0"


for _name in GENERATORS:
    navix.register_env(navix_id(_name), partial(make, _name))
