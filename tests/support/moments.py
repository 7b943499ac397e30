"""Moments and trajectories written by hand, for the methods' tests.

They are made in numpy: jax would compile a program for each operation and shape.
"""

import jax
import jax.numpy as jnp
import numpy as np

from cbet_jax.intrinsic.interface import Experience, Intrinsic
from cbet_jax.networks.embedding import Embedding, apply
from cbet_jax.types import LSTMState, Trajectory, Transition
from envs.types import Step


def moment(view, panorama=None, *, ended=None, success=None, final=None) -> Step:
    """One moment of a few actors, whose view, panorama and final view are a number each."""
    actors = len(view)
    flags = lambda given: np.array([False] * actors if given is None else given)  # noqa: E731
    step = Step(
        view=views(view),
        panorama=np.array(view if panorama is None else panorama, np.uint16)[:, None],
        reward=np.zeros(actors, np.float32),
        success=flags(success),
        terminated=flags(None),
        truncated=flags(ended),
        length=np.ones(actors, np.int32),
        environment=np.zeros(actors, np.int32),
        interaction=np.zeros((actors, 2), np.uint32),
        final_view=None if final is None else views(final),
    )
    return jax.tree.map(jnp.asarray, step)


def random_moments(steps: int, actors: int, most: int):
    """Numbers of random views `[steps + 1, actors]`, ends, the first moment, and the steps.

    The first actor's episode ends twice, the others' never.
    """
    numbers = np.random.default_rng(0).integers(most, size=(steps + 1, actors))
    ended = np.zeros((steps + 1, actors), bool)
    ended[[4, 9], 0] = True
    first, *moments = (moment(*each) for each in zip(numbers, numbers, strict=True))
    together = jax.tree.map(lambda *leaves: jnp.stack(leaves), *moments)
    return numbers, ended, first, together._replace(truncated=jnp.asarray(ended[1:]))


def embedded(channels: tuple[int, ...], network, first: Step, steps: Step):
    """The embedded views of the first moment and of steps: `[T + 1, N, numbers]`."""
    views = jnp.concatenate([first.view[None], steps.view])
    return apply(Embedding(channels), network, views)


def experience(step: Step) -> Experience:
    """What a method observes of a step that some action led to."""
    return Experience(step.view, jnp.zeros(step.view.shape[:-3], jnp.int32), step)


def observed(method: Intrinsic, first: Step, steps: Step):
    """The parameters of a method, and its memory after, and signals of, steps `[T, N]`."""
    params, memory = method.init(jax.random.key(0), first)
    keys = jax.random.split(jax.random.key(1), len(steps.view))
    acted_in = jnp.concatenate([first.view[None], steps.view[:-1]])
    return params, *method.observe(params, memory, keys, experience(steps)._replace(view=acted_in))


def views(numbers):
    """Views that show one number all over: `[*shape]` -> `uint8[*shape, 7, 7, 3]`."""
    numbers = np.asarray(numbers, np.uint8)
    return jnp.asarray(np.broadcast_to(numbers[..., None, None, None], (*numbers.shape, 7, 7, 3)))


def timed_out(played: Trajectory, truncated, reached=None) -> Trajectory:
    """The same trajectory with time-outs, and the numbers `[T, N]` that final views show."""
    final = None if reached is None else views(reached)
    steps = played.steps._replace(truncated=jnp.asarray(truncated), final_view=final)
    return played._replace(steps=steps)


def trajectory(view, action, *, signal=(), extrinsic_reward=None, num_actions=2) -> Trajectory:
    """A trajectory `[T, N]` of views that show one number each, `[T + 1, N]`."""
    action = jnp.asarray(action, jnp.int32)
    nothing, never = (jnp.asarray(np.zeros(action.shape, kind)) for kind in (np.float32, bool))
    state = jnp.asarray(np.zeros((1, 1, *action.shape[1:]), np.float32))
    return Trajectory(
        view=views(view),
        first=jnp.asarray(np.zeros((len(view), action.shape[1]), bool)),
        steps=Transition(
            action=action,
            logits=jnp.asarray(np.zeros((*action.shape, num_actions), np.float32)),
            extrinsic_reward=nothing if extrinsic_reward is None else jnp.asarray(extrinsic_reward),
            terminated=never,
            truncated=never,
        ),
        signal=signal,
        initial_state=LSTMState(state, state),
    )
