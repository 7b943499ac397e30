"""Policies as Python objects: train or load one, give it views, get actions."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax.errors import ScopeParamShapeError
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt8

from cbet_jax.agent import Agent, AgentParams, make_agent, world_agent
from cbet_jax.config import RunSettings, SettingsError, TrainSettings
from cbet_jax.evaluate import Episodes, make_evaluator
from cbet_jax.intrinsic import own
from cbet_jax.method_check.check import refuse_misfit
from cbet_jax.networks.policy_network import sample_actions
from cbet_jax.program import make_program, seed_keys
from cbet_jax.runs import metrics_table, pretrained
from cbet_jax.runs.directory import NEWEST, Checkpoint, RunDirectory, RunDirectoryError
from cbet_jax.runs.reading import reading
from cbet_jax.runs.saved_policies import frames_of_seeds, load_params, not_shown
from cbet_jax.settings.ranges import check_between
from cbet_jax.types import Metrics, RecurrentState
from envs.types import World

MOST_WORLDS = 16  # whose compiled evaluations a policy keeps
NO_VIEW = (0, 0, 0)  # only `Agent.init` reads the shape of a view: saved parameters need none

#: takes the frames played so far, and each metric's mean over the chunk (NaN: no data); returns
#: whether to stop
type OnChunk = Callable[[int, dict[str, float]], Any]
type ViewOrViews = UInt8[Array | np.ndarray, "..."]  # [height, width, 3], or [N, ...]
type First = Bool[Array | np.ndarray, "..."] | bool  # [N], or the same for all
type Outputs = tuple[Float[Array, "*N actions"], Float[Array, "..."], RecurrentState]


class NonFiniteLossError(Exception):
    """A loss is no longer a finite number; the message says when."""


class Policy:
    """A compiled policy that acts and does not learn.

    A view is `[height, width, 3]` for one agent, `[N, height, width, 3]` for `N`; actions have the
    same leading axis. `initial_state(N)` returns the first recurrent state. `settings` are those of
    its run, `frames` those that it was trained for.
    """

    def __init__(
        self, agent: Agent, params: AgentParams, settings: RunSettings, frames: int
    ) -> None:
        self.params, self.settings, self.frames = params, settings, frames
        self.initial_state, self._agent = agent.initial_state, agent
        self._form_for = cache(lambda agents: _form(agent.initial_state(agents)))
        self._outputs = jax.jit(partial(_outputs, agent))
        self._act = jax.jit(partial(_act, agent))
        self._evaluator = lru_cache(MOST_WORLDS)(lambda world: make_evaluator(world, agent))

    def __repr__(self) -> str:
        names = ", ".join(self.settings.environments)
        return f"Policy({self.settings.train.method} in {names}, {self.frames:,} frames)"

    def __call__(
        self, view: ViewOrViews, state: RecurrentState, key: PRNGKeyArray, first: First = False
    ) -> tuple[Int[Array, "*N"], RecurrentState]:
        """Return an action drawn from the policy for each agent, and the next recurrent state.

        Args:
            view: what each agent sees, of the size that its worlds show: others may fit by chance.
            state: the recurrent state before this view.
            key: draws the actions.
            first: which agents see the first view of an episode: their state is zeroed before.

        Raises:
            ValueError: the views do not fit its parameters or the state, or are not uint8.
        """
        return self._call(self._act, view, first, state, key)

    def outputs(self, view: ViewOrViews, state: RecurrentState, first: First = False) -> Outputs:
        """Return the logits and the values of the agents, and the next recurrent state.

        Arguments and errors are those of a call.
        """
        return self._call(self._outputs, view, first, state)

    def evaluate(self, world: World[Any], key: PRNGKeyArray) -> Episodes:
        """Play one episode in each world, without learning.

        Args:
            world: of one environment; must not explore, so success ends an episode.
            key: draws the levels and the actions.

        Raises:
            ValueError: the views do not fit its parameters, or there are several environments.
            UnsupportedEnvironment: an episode goes on after `world.max_steps`.
        """
        if len(world.environments) > 1:  # all worlds would begin in the first
            raise ValueError(f"make a world for each of {', '.join(world.environments)}")
        if why := not_shown(self.settings, world):
            raise ValueError(f"the policy {why}")
        play, keys = self._evaluator(world), jax.random.split(key)
        with _fitting(world.policy_view_shape):
            played = play(jax.tree.map(lambda leaf: leaf[None], self.params), *keys)
        return jax.tree.map(lambda leaf: leaf[0], played)

    def _call(self, function: Any, view: Any, first: Any, state: Any, *key: Any) -> Any:
        shape = "x".join(map(str, getattr(view, "shape", ()))) or type(view).__name__
        if getattr(view, "ndim", 0) not in (3, 4) or 0 in view.shape:
            raise ValueError(f"a view is height x width x 3, or N of them, not {shape}")
        if jnp.result_type(view) != jnp.uint8:
            raise ValueError(f"a view is of uint8, not {jnp.result_type(view)}")
        agents = len(view) if jnp.ndim(view) == 4 else 1
        if _form(state) != self._form_for(agents):
            raise ValueError(f"the state is not of {agents} agents, as of initial_state({agents})")
        first = np.asarray(first, bool) if isinstance(first, list | tuple) else first
        with _fitting(view.shape):
            return function(self.params, view, first, state, *key)


@contextmanager
def _fitting(view_shape: Sequence[int]) -> Iterator[None]:
    """Say of views that do not fit a policy's parameters of which shape they are."""
    try:
        yield
    except ScopeParamShapeError:
        shape = "x".join(map(str, view_shape))
        raise ValueError(f"the policy was made for other views than {shape}") from None


def _form(state: Any) -> tuple[Any, list[tuple[int, ...]]]:
    """Return the structure and the shapes of a state."""
    return jax.tree.structure(state), [jnp.shape(leaf) for leaf in jax.tree.leaves(state)]


def load(run: Path | str, seed_index: int = 0, *, frames: Checkpoint = None) -> Policy:
    """Load the policy of a run, or a pre-trained one of the package; nothing is written.

    Args:
        run: directory of the run, or `pretrained/NAME`.
        seed_index: which of the run's seeds.
        frames: choose a checkpoint or kept policies (None: a task's best, else the newest good).

    Raises:
        RunDirectoryError: there is no such run, or it holds no good policy.
        SettingsError: the run has no such seed.
    """
    if pretrained.is_named(Path(run)):
        settings, params, done, _ = pretrained.read(Path(run))
        if frames not in (None, NEWEST, done):
            raise RunDirectoryError(f"{run} holds one policy, of {done} frames: leave frames out")
        frames_of_each = [done]
    else:
        directory = RunDirectory(Path(run))
        settings, loaded = directory.settings(), load_params(directory, frames)
        params, frames_of_each = loaded.state, frames_of_seeds(loaded, settings.seeds)
    check_between("seed_index", seed_index, 0, settings.seeds - 1)
    with reading(Path(run)):
        actions = params.learnt["params"]["policy"]["bias"].shape[-1]
        of_seed = jax.tree.map(lambda leaf: jnp.asarray(leaf[seed_index]), params)
    agent = make_agent(settings.train.network, settings.transfer, actions, NO_VIEW)
    return Policy(agent, of_seed, settings, frames_of_each[seed_index])


def _outputs(
    agent: Agent, params: AgentParams, view: ViewOrViews, first: First, state: RecurrentState
) -> Outputs:
    """Return logits, values and the next state of one agent or `N` agents."""
    views = jnp.asarray(view if view.ndim == 4 else view[None])
    played = agent.apply(params, views[None], jnp.broadcast_to(first, len(views))[None], state)
    axes = (0,) if view.ndim == 4 else (0, 1)
    return played.logits.squeeze(axes), played.value.squeeze(axes), played.state


def _act(
    agent: Agent,
    params: AgentParams,
    view: ViewOrViews,
    first: First,
    state: RecurrentState,
    key: PRNGKeyArray,
) -> tuple[Int[Array, "*N"], RecurrentState]:
    logits, _, state = _outputs(agent, params, view, first, state)
    return sample_actions(key, logits), state


def train_policy(
    settings: TrainSettings,
    world: World[Any],
    *,
    on_chunk: OnChunk | None = None,
    chunk: int = 5,
    seed: int = 0,
) -> Policy:
    """Train one agent, and return its policy; nothing is written.

    The numbers equal those of a command's run with these settings, worlds and seed.

    Args:
        settings: frames are rounded up to whole chunks; a method `FILE.py:FUNCTION` is loaded.
        world: `settings.worlds` worlds.
        on_chunk: called after each chunk; if it returns something true, training stops.
        chunk: iterations in a chunk.
        seed: seed of the agent and its worlds.

    Raises:
        SettingsError: the method is unknown or does not work with these settings, or the worlds
            are not as many as the settings say.
        NonFiniteLossError: a loss was not finite.
    """
    settings = replace(settings, method=own.loaded(settings.method))
    explore = settings.extrinsic_weight == 0
    run = RunSettings(settings, world.environments, 1, seed, chunk, explore=explore)
    if world.num_worlds != settings.worlds:
        raise SettingsError(f"settings ask for {settings.worlds} worlds, not {world.num_worlds}")
    refuse_misfit(settings, world.init, world.num_actions)
    agent = world_agent(settings.network, None, world)
    program = make_program(settings, world, 1, chunk, agent=agent)
    state, frames = program.init(seed_keys(1, seed)), 0
    while frames < settings.frames:
        state, metrics = program.advance(state)
        frames += chunk * program.frames_per_iteration
        if not np.isnan(metrics["first_bad_update"]).all():
            raise NonFiniteLossError(f"the loss is not a finite number by frame {frames}")
        if on_chunk and on_chunk(frames, _means(metrics)):
            break
    params: AgentParams = jax.tree.map(lambda leaf: leaf[0], state.learner.agent)
    return Policy(agent, params, run, frames)


def _means(metrics: Metrics) -> dict[str, float]:
    """Return the mean of each metric over the iterations (NaN: no data)."""
    chunk = {name: np.asarray(values) for name, values in metrics.items()}
    return dict.fromkeys(chunk, float("nan")) | metrics_table.means(chunk)
