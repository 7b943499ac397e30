"""Random play in our worlds and in other packages', to be timed."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from cbet_jax.config import TrainSettings
from cbet_jax.intrinsic.cbet import cbet
from cbet_jax.intrinsic.interface import Experience, Params
from cbet_jax.types import Trajectory, Transition
from envs.names import ACTIONS
from envs.types import World
from experiments.benchmarks import timing
from experiments.benchmarks.timing import TimedTask

STEPS = 100  # steps of each world in one call of a compiled loop
MINIGRID_STEPS = 1000  # steps of each environment in one call


class RandomPlay:
    """Random play in our worlds, including C-BET's reward; `STEPS` steps a call."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.method = cbet(TrainSettings(), world.num_actions)
        self.start: Any = jax.jit(self._start)
        self.play: Any = jax.jit(self._play, donate_argnums=0)

    def compile(self) -> None:
        """Compile both programs ahead of time."""
        key = jax.random.key(0)
        begun = jax.eval_shape(self.start, key)
        self.start = self.start.lower(key).compile()
        self.play = self.play.lower(begun).compile()

    def task(self) -> TimedTask:
        """Return the play as a task."""
        play = timing.repeated(lambda carry: self.play(carry)[0], self.start(jax.random.key(0)))
        return TimedTask(play, STEPS * self.world.num_worlds)

    def step(self, state: Any, key: PRNGKeyArray) -> tuple[Any, Any]:
        """Take a random action in every world."""
        action_key, observe_key = jax.random.split(key)
        actions = jax.random.randint(
            action_key, (self.world.num_worlds,), 0, self.world.num_actions
        )
        state, seen = self.world.step(state, actions)
        return state, (observe_key, Experience(seen.view, actions, seen))

    def _start(self, key: PRNGKeyArray) -> tuple[Any, Any, PRNGKeyArray]:
        world_key, memory_key, key = jax.random.split(key, 3)
        state, step = self.world.init(world_key)
        return state, self.method.init(memory_key, step)[1], key

    def _play(self, carry: Any) -> tuple[Any, Float[Array, "T N"]]:
        state, memory, key = carry
        key, scan_key = jax.random.split(key)
        keys = jax.random.split(scan_key, STEPS)
        state, seen = jax.lax.scan(self.step, self.world.refresh(state), keys)
        memory, signal = self.method.observe(Params({}, {}), memory, *seen)
        nothing = jnp.zeros(())
        trajectory = Trajectory(nothing, nothing, Transition(*[nothing] * 5), signal, ())
        reward, _ = self.method.reward_and_loss(Params({}, {}), trajectory)
        return (state, memory, key), reward


def minigrid_steps(names: Sequence[str]) -> TimedTask:
    """Return random play in Farama's minigrid: environments take turns in this process."""
    environments = [make() for make in map(in_minigrid, names) if make]
    random = np.random.default_rng(0)

    def run() -> None:
        for environment in environments:
            for action in random.integers(len(ACTIONS), size=MINIGRID_STEPS):
                _, _, terminated, truncated, _ = environment.step(action)
                if terminated or truncated:
                    environment.reset()

    for environment in environments:
        environment.reset(seed=0)
    return TimedTask(run, MINIGRID_STEPS * len(environments))


def in_minigrid(name: str) -> Callable[[], Any] | None:
    """Return a function that makes MiniGrid's environment of that name, or None."""
    import gymnasium
    import minigrid  # noqa: F401  (registers its environments)
    from minigrid.envs.multiroom import MultiRoomEnv

    rooms = re.fullmatch(r"MultiRoom-N(\d+)-S(\d+)", name)
    title = f"MiniGrid-{name}" + ("" if name.endswith("-v1") else "-v0")
    if rooms:  # also sizes that are not registered
        number, size = map(int, rooms.groups())
        return lambda: MultiRoomEnv(minNumRooms=number, maxNumRooms=number, maxRoomSize=size)
    if title in gymnasium.registry:
        return lambda: gymnasium.make(title, disable_env_checker=True).unwrapped
    return None


def navix_steps(name: str, num_worlds: int) -> TimedTask:
    """Return random play in an environment of navix, with navix's automatic resets."""
    import navix

    environment = navix.make(name)
    timestep = jax.jit(jax.vmap(environment.reset))(jax.random.split(jax.random.key(0), num_worlds))
    actions = len(environment.action_set)

    @jax.jit
    def play(carry: Any) -> Any:
        timestep, key = carry
        key, scan_key = jax.random.split(key)

        def step(timestep: Any, key: PRNGKeyArray) -> tuple[Any, None]:
            action = jax.random.randint(key, (num_worlds,), 0, actions)
            return jax.vmap(environment.step)(timestep, action), None

        timestep, _ = jax.lax.scan(step, timestep, jax.random.split(scan_key, STEPS))
        return timestep, key

    start = play((timestep, jax.random.key(1)))  # types of fields may change in the first call only
    return TimedTask(timing.repeated(play, start), STEPS * num_worlds)
