"""The intrinsic rewards for learners of your own: a record of pure functions on plain arrays.

    bonus = cbet_jax.bonus("cbet", num_envs, view_shape, num_actions)
    state = bonus.init(key, obs)
    state, reward = bonus.step(state, key, obs, action, next_obs, done)  # add it to yours
    state, metrics = bonus.update(state, batch)                          # RND, RIDE, ...: learn

If the last views of episodes are known, let `step` see them as `next_obs` with `done` false, and
then begin the next episodes: `state = bonus.begin(state, key, last_obs, first_obs, done)`.

All can be scanned, vmapped and jitted (with `donate_argnums=0`, or count tables are copied at each
step). They are the package's own methods (`cbet_jax.intrinsic.METHODS`): no reward has a second
implementation.
"""

import operator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from cbet_jax.config import TrainSettings
from cbet_jax.intrinsic import make_intrinsic, own
from cbet_jax.intrinsic.interface import Experience, Intrinsic, Memory, Params
from cbet_jax.learner import rewarded, rmsprop, update_networks
from cbet_jax.method_check.check import refuse_misfit
from cbet_jax.settings.ranges import LARGEST_INT, check_between
from cbet_jax.types import ArrayTree, Metrics, Trajectory, Transition, joined, unchanged
from envs.types import Step


class Seen(NamedTuple):
    """What an observation shows: the agent's view, and the panorama whose changes are counted."""

    view: Array  # uint8[N, height, width, 3]
    panorama: Array  # integers [N, ...]


type Observation = Array | Seen  # a view alone: its own changes are counted


class BonusState(NamedTuple):
    """The state of a bonus: counts and networks."""

    params: Params
    memory: Memory
    optimizers: dict[str, ArrayTree]  # one for each network that learns


class Batch(NamedTuple):
    """`T` steps in a row of `N` environments, to learn from."""

    obs: Observation  # arrays [T, N, ...]
    action: Int[Array, "T N"]
    next_obs: Observation  # arrays [T, N, ...]; after an end, the next episode's first
    done: Bool[Array, "T N"]


def bonus(
    method: str,
    num_envs: int,
    view_shape: tuple[int, int, int],
    num_actions: int,
    *,
    settings: TrainSettings | None = None,
    optimizer: optax.GradientTransformation | None = None,
) -> "Bonus":
    """Return an intrinsic reward for any learner.

    The reward of `step` is weighted, by the method's own coefficient or by
    `settings.intrinsic_coefficient`, and clipped to [-1, 1]. Running means include each step before
    it is rewarded; in the package's learner, each batch. That learner also counts a rollout's first
    view once more, as the published code does; here each view is counted once, the very first not
    at all.

    Args:
        method: its name, as of `cbet_jax.intrinsic.METHODS`, or your own `FILE.py:FUNCTION`. It
            sees views, panoramas, actions and ends: no success or task reward (they are 0). No
            rollout begins. Its loss must not read `trajectory.signal`: `update` shows it NaN (0 for
            whole numbers).
        num_envs: environments side by side; each has its own counts.
        view_shape: height, width and channels of a view, whose numbers are 0 to 255.
        num_actions: actions to choose among.
        settings: how to count and to learn (None: the published values). `frames` decides how
            large count tables are (`count`, with the default 50 million: 768 MiB; give yours),
            `auxiliary.episode_views` how many views NGU and RE3 keep (None: the newest 640).
        optimizer: of the method's networks (None: the package's, at a constant rate).

    Raises:
        SettingsError: the method is unknown or does not support the settings, or `num_envs` or
            `num_actions` is below 1.
    """
    check_between("num_actions", num_actions, 1, LARGEST_INT)
    if hasattr(num_envs, "__index__"):  # else it is refused as `worlds`
        check_between("num_envs", num_envs := operator.index(num_envs), 1, LARGEST_INT)
    settings = settings or TrainSettings()
    with jax.ensure_compile_time_eval():  # the caller may be traced, and a file holds arrays
        method = own.loaded(method)
    settings = replace(settings, method=method, worlds=num_envs, batch=num_envs)
    rate = optax.constant_schedule(settings.optimizer.learning_rate)
    optimizer = optimizer or rmsprop(settings.optimizer, rate)
    intrinsic = make_intrinsic(settings, num_actions)
    return Bonus(settings, intrinsic, optimizer, tuple(view_shape), num_actions)


@dataclass(frozen=True, eq=False)
class Bonus:
    """An intrinsic reward; `bonus` makes it. Arrays of wrong shapes or types: ValueError."""

    settings: TrainSettings
    intrinsic: Intrinsic
    optimizer: optax.GradientTransformation
    view_shape: tuple[int, ...]
    num_actions: int

    @property
    def panoramas(self) -> bool:
        """Whether the method counts changes of panoramas."""
        return self.intrinsic.panoramas

    def init(self, key: PRNGKeyArray, obs: Observation) -> BonusState:
        """Return the state before the first step, which begins at `obs`."""
        envs = self.settings.worlds
        _check_shapes(envs, obs=obs)
        first = _step(self._seen(obs), jnp.zeros(envs, bool))
        refuse_misfit(self.settings, lambda _: (None, first), self.num_actions)
        params, memory = self.intrinsic.init(key, first)
        each = {name: self.optimizer.init(network) for name, network in params.learnt.items()}
        return BonusState(params, memory, each)

    def step(
        self,
        state: BonusState,
        key: PRNGKeyArray,
        obs: Observation,
        action: Int[Array, " N"],
        next_obs: Observation,
        done: Bool[Array, " N"],
    ) -> tuple[BonusState, Float[Array, " N"]]:
        """Count a step of each environment, and return its weighted reward."""
        envs, one = self.settings.worlds, Batch(obs, action, next_obs, done)
        _check_shapes(envs, **one._asdict())
        batch = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], one)
        memory, signal = self._observe(state, key[None], batch)
        trajectory = self._trajectory(batch, signal)
        params = self.intrinsic.adapt(state.params, trajectory, unchanged)
        reward, _ = self.intrinsic.reward_and_loss(params, trajectory)
        weighted = jnp.clip(self.intrinsic.coefficient * reward.reshape(envs), -1.0, 1.0)
        return state._replace(params=params, memory=memory), weighted

    def update(self, state: BonusState, batch: Batch) -> tuple[BonusState, Metrics]:
        """Let the method's networks learn once."""
        steps = len(batch.action) or 1
        _check_shapes(steps, self.settings.worlds, **batch._asdict())
        keys = jax.random.split(jax.random.key(0), steps)
        # A record that no loss of the package reads; one that does becomes NaN.
        shapes = jax.eval_shape(lambda: self._observe(state, keys, batch)[1])
        signal = jax.tree.map(lambda leaf: jnp.full(leaf.shape, jnp.nan).astype(leaf.dtype), shapes)
        params, trajectory = state.params, self._trajectory(batch, signal)
        _, (loss, terms), gradients = rewarded(self.intrinsic, params, trajectory)
        learnt, each = update_networks(self.optimizer, gradients, params.learnt, state.optimizers)
        after = state._replace(params=params._replace(learnt=learnt), optimizers=each)
        return after, joined({"intrinsic_loss": loss}, terms)

    def begin(
        self,
        state: BonusState,
        key: PRNGKeyArray,
        last: Observation,
        first: Observation,
        which: Bool[Array, " N"],
    ) -> BonusState:
        """Show the environments in `which` the step from `last` to the next episode's `first`."""
        _check_shapes(self.settings.worlds, last=last, first=first, which=which)
        order = jnp.argsort(~which)
        batch = Batch(last, jnp.zeros(len(which), jnp.int32), first, jnp.ones(len(which), bool))
        each = self._each_environment(key, batch)

        def begin_one(count: Int[Array, ""], memory: Memory) -> Memory:
            env = order[count]
            own = jax.tree.map(lambda leaf, own: leaf[env][None] if own else leaf, memory, each)
            one = jax.tree.map(lambda leaf: jnp.asarray(leaf)[env][None, None], batch)
            keys = jax.random.fold_in(key, count)[None]
            after, _ = self._observe(state._replace(memory=own), keys, one)
            return jax.tree.map(
                lambda leaf, own, new: leaf.at[env].set(new[0]) if own else new,
                *(memory, each, after),
            )

        return state._replace(memory=jax.lax.fori_loop(0, which.sum(), begin_one, state.memory))

    def _each_environment(self, key: PRNGKeyArray, batch: Batch) -> Any:
        """Return for each array of a memory whether it has an entry for each environment."""

        def sizes(number: int) -> Any:
            some = jax.tree.map(lambda leaf: jnp.asarray(leaf)[:number], batch)
            first = _step(self._seen(some.next_obs), some.done)
            memory = jax.eval_shape(self.intrinsic.init, key, first)[1]
            return jax.tree.map(lambda leaf: len(leaf) if leaf.ndim else 0, memory)

        return jax.tree.map(lambda all_, one: all_ != one, sizes(len(batch.action)), sizes(1))

    def _observe(self, state: BonusState, keys: Any, batch: Batch) -> tuple[Memory, ArrayTree]:
        """Let the method observe steps in a row: `[T, N, ...]`."""
        after = _step(self._seen(batch.next_obs), jnp.asarray(batch.done, bool))
        experience = Experience(self._seen(batch.obs).view, batch.action, after)
        return self.intrinsic.observe(state.params, state.memory, keys, experience)

    def _trajectory(self, batch: Batch, signal: ArrayTree) -> Trajectory:
        """Return steps in a row as a trajectory."""
        before, after = (self._seen(obs).view for obs in (batch.obs, batch.next_obs))
        nothing = jnp.zeros(batch.action.shape)
        done = jnp.asarray(batch.done, bool)
        logits = jnp.zeros((*batch.action.shape, 1))
        return Trajectory(
            view=jnp.concatenate([before, after[-1:]]),
            first=jnp.concatenate([jnp.zeros_like(done[:1]), done]),
            steps=Transition(batch.action, logits, nothing, done, jnp.zeros_like(done)),
            signal=signal,
            initial_state=(),
        )

    def _seen(self, obs: Observation) -> Seen:
        """Return the view and the panorama of an observation.

        Raises:
            ValueError: the view has another shape or type, or the panorama fractions.
        """
        seen = obs if isinstance(obs, Seen) else Seen(obs, obs)
        if seen.view.shape[-3:] != self.view_shape:
            raise ValueError(
                f"a view must be of shape {self.view_shape}, not {seen.view.shape[-3:]}"
            )
        if seen.view.dtype != jnp.uint8:
            raise ValueError(f"a view must be of uint8, not {seen.view.dtype}")
        if jnp.issubdtype(seen.panorama.dtype, jnp.inexact):
            raise ValueError(f"a panorama must be of integers, not {seen.panorama.dtype}")
        return seen


def _check_shapes(*numbers: int, **arrays: Any) -> None:
    """Refuse arrays of another number of (steps and) environments, by ValueError."""
    for name, array in arrays.items():
        for shape in map(jnp.shape, jax.tree.leaves(array)):
            if shape[: len(numbers)] != numbers:
                there = " steps of ".join(map(str, numbers))
                raise ValueError(f"{name} is of shape {shape}: there are {there} environments")


def _step(seen: Seen, done: Bool[Array, "*T N"]) -> Step:
    panorama = jnp.asarray(seen.panorama).reshape(*done.shape, -1)
    length, never = jnp.zeros(done.shape, jnp.int32), jnp.zeros_like(done)
    return Step.without_task(seen.view, panorama, length, never)._replace(terminated=done)
