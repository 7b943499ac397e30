"""Short walks through distinct places, and the results of a method on them."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from cbet_jax.config import TrainSettings
from cbet_jax.intrinsic import make_intrinsic
from cbet_jax.intrinsic.interface import Experience, Intrinsic, Memory, Params
from cbet_jax.learner import rewarded
from cbet_jax.method_check.corridor import ACTIONS, looks
from cbet_jax.types import ArrayTree, Trajectory, Transition, unchanged
from envs.types import Step

STEPS, ACTORS, PLACES = 12, 3, 8
ENDS = ("truncated", "terminated")  # how an episode ends
QUICKLY = {"xla_backend_optimization_level": 0}  # fast to compile: a function runs a few times


class Walk(NamedTuple):
    """Steps of a few actors. The arrays are numpy's."""

    first: Step  # [N, ...]
    steps: Step  # [T, N, ...]
    action: Any  # [T, N]


class Played(NamedTuple):
    """The results of a method on a walk."""

    signal: ArrayTree
    memory: Memory  # after the walk
    reward: Any  # [T, N]
    loss: Any
    terms: Any
    gradient: Any  # gradient of the loss by network
    params: Params  # after `adapt`


class Subject:
    """The method under check, and its compiled functions."""

    def __init__(self, settings: TrainSettings) -> None:
        """Make the method.

        Raises:
            SettingsError: it is unknown, or refuses the settings.
        """
        self.settings = settings
        self.method = make_intrinsic(settings, ACTIONS)
        self.traces = 0
        # `init` is read when it is called, so a check can say that it is no function.
        self._init = jax.jit(lambda *seen: self.method.init(*seen), compiler_options=QUICKLY)
        self._play = jax.jit(self._traced, compiler_options=QUICKLY)

    def _traced(self, *arguments: Any) -> Played:
        self.traces += 1
        return play(self.method, *arguments)

    def begin(self, walk: Walk) -> tuple[Params, Memory]:
        """Return the method's parameters and memory before the first step."""
        return self._init(jax.random.key(0), walk.first)

    def play(self, walk: Walk, begun: tuple[Params, Memory] | None = None) -> Played:
        """Return the results of the method on a walk, always with the same key.

        Args:
            walk: the steps.
            begun: parameters and memory before the walk (None: those of `init`).
        """
        return self._play(*(begun or self.begin(walk)), jax.random.key(1), walk)

    def rewards(self, walk: Walk) -> np.ndarray:
        """Return the rewards of a walk for a new method, [T, N]."""
        return np.asarray(self.play(walk).reward)


def random_walk(seed: int) -> Walk:
    """Return a walk in which two episodes end and a third one succeeds."""
    random = np.random.default_rng(seed)
    walk = make_walk(random.integers(PLACES, size=(STEPS + 1, ACTORS)), random)
    walk.steps.truncated[2, 0] = walk.steps.terminated[7, 2] = walk.steps.success[4, 1] = True
    return walk


def make_walk(places: np.ndarray, random: np.random.Generator) -> Walk:
    """Return a walk through places `[T + 1, N]` with random actions and no episode end."""
    shape, views = places.shape, looks(PLACES)[places]
    fields: dict[str, Any] = dict(
        view=views,
        panorama=views.reshape(*shape, -1).astype(np.int32),
        length=np.broadcast_to(np.arange(len(places), dtype=np.int32)[:, None], shape),
        interaction=np.zeros((*shape, 2), np.uint32),
        reward=np.zeros(shape, np.float32),
        environment=np.zeros(shape, np.int32),
        **{name: np.zeros(shape, bool) for name in ("success", *ENDS)},
    )
    moments = Step(**fields)
    action = random.integers(ACTIONS, size=(len(places) - 1, shape[1]), dtype=np.int32)
    first = jax.tree.map(lambda leaf: leaf[0], moments)
    return Walk(first, jax.tree.map(lambda leaf: leaf[1:], moments), action)


def play(
    method: Intrinsic, params: Params, memory: Memory, key: PRNGKeyArray, walk: Walk
) -> Played:
    """Let a method observe, reward, learn from and adapt to a walk.

    Args:
        method: the method.
        params: its parameters; `adapt` changes the returned ones, after the reward.
        memory: its memory before the walk.
        key: as in `rollout`.
        walk: the steps.
    """
    begin_key, key = jax.random.split(key)
    memory = method.begin_rollout(memory, begin_key, walk.first)
    keys = jax.random.split(key, len(walk.action))
    memory, signal = method.observe(params, memory, keys, experience(walk))
    trajectory = make_trajectory(walk, signal)
    reward, (loss, terms), gradient = rewarded(method, params, trajectory)
    adapted = method.adapt(params, trajectory, unchanged)
    return Played(signal, memory, reward, loss, terms, gradient, adapted)


def experience(walk: Walk) -> Experience:
    """Return what a method observes of a walk, arrays [T, N, ...]."""
    return Experience(_views(walk)[:-1], walk.action, walk.steps)


def make_trajectory(walk: Walk, signal: ArrayTree, num_actions: int = ACTIONS) -> Trajectory:
    """Return the trajectory that a method is to reward."""
    steps, never = walk.steps, jnp.zeros((1, *walk.action.shape[1:]), bool)
    first = steps.truncated | steps.terminated | steps.success
    logits = jnp.zeros((*walk.action.shape, num_actions))
    return Trajectory(
        view=_views(walk),
        first=jnp.concatenate([never, first]),
        steps=Transition(walk.action, logits, steps.reward, steps.terminated, steps.truncated),
        signal=signal,
        initial_state=(),
    )


def _views(walk: Walk) -> Any:
    return jnp.concatenate([walk.first.view[None], walk.steps.view])
