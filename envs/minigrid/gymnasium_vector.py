"""Gridworlds as one `gymnasium.vector.VectorEnv`: one compiled step for all, numpy or DLPack out.

Importing this module imports gymnasium, an optional package. An observation is MiniGrid's image
(what its `ImgObsWrapper` leaves). The mission is not part of it: every environment has one only.
Neither is the direction, which is in `states`.
"""

import time
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import error, spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from jaxtyping import Array, Bool, Float, Int, UInt8, UInt32

from envs.minigrid import cells as c
from envs.minigrid import render, rules, views
from envs.minigrid.generators import Generator
from envs.minigrid.rules import State
from envs.minigrid.world import VIEW_SHAPE, Worlds, gridworld, restart

LEVELS_PER_ENV = 4  # in a full pool; it is filled again before it may run short
RESET_MASK = "reset_mask"  # gymnasium's name of the option of `reset`
RGB = "rgb_array"
NUMPY = "numpy"
ARRAYS = (NUMPY, "dlpack")

type Infos = dict[str, Any]  # name -> array [N]; `_name` masks the environments that have it
type Observations = Any  # uint8[N, 7, 7, 3], numpy's, or JAX's with arrays `dlpack`


class GridworldVectorEnv(VectorEnv[Observations, np.ndarray, np.ndarray]):
    """Many gridworlds of one kind, stepped as one batch.

    `info` has, at every step, `success` and `interactions` (unique ones so far) of the present
    episode, and `panorama` if asked for. Where episodes end, `episode` has their return `r`, length
    `l` and seconds `t`, as `RecordEpisodeStatistics` writes them. With same-step resets, the
    present episode is then the next one; what the last one ended with is in `final_obs` and
    `final_info`.

    With arrays `dlpack`, views and panoramas are JAX's arrays and stay on the device, where
    `torch.from_dlpack` reads them without a copy (a JAX array must not be changed in place). All
    else is numpy's.

    Args:
        generator: of the levels.
        num_envs: size of the batch.
        explore: whether episodes continue after success.
        autoreset_mode: when an environment begins its next episode; gymnasium's names are accepted.
        panorama: whether `info` has the four views of each agent.
        render_mode: `rgb_array`, or None.
        arrays: `numpy` or `dlpack`: what observations and panoramas are.

    Raises:
        ValueError: a mode is unknown, or there is no environment.
    """

    def __init__(
        self,
        generator: Generator,
        num_envs: int,
        *,
        explore: bool,
        autoreset_mode: AutoresetMode | str,
        panorama: bool,
        render_mode: str | None,
        arrays: str,
    ) -> None:
        if num_envs < 1:
            raise ValueError(f"num_envs must be at least 1, not {num_envs}")
        if render_mode not in (None, RGB):
            raise ValueError(f"render_mode must be {RGB!r} or None, not {render_mode!r}")
        if arrays not in ARRAYS:
            raise ValueError(f"arrays must be one of {', '.join(ARRAYS)}, not {arrays!r}")
        mode = AutoresetMode(autoreset_mode)
        self.metadata = {"autoreset_mode": mode, "render_modes": [RGB], "render_fps": 8}
        self.num_envs, self.render_mode = num_envs, render_mode
        self.autoreset_mode, self._name = mode, generator.name
        self.single_observation_space = spaces.Box(0, 255, VIEW_SHAPE, np.uint8)
        self.single_action_space = spaces.Discrete(len(rules.ACTIONS))
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        world = gridworld([generator], num_envs, explore=explore, levels_per_world=LEVELS_PER_ENV)
        self._begin = jax.jit(lambda key: world.init(key)[0])
        self._refresh = jax.jit(world.refresh, donate_argnums=0)
        self._restart = jax.jit(restart, donate_argnums=0)
        self._look = jax.jit(partial(_look, panorama=panorama))
        same_step = mode is AutoresetMode.SAME_STEP
        step = partial(_step, explore=explore, same_step=same_step, panorama=panorama)
        self._step = jax.jit(step, donate_argnums=0)
        self._on_host = arrays == NUMPY
        self._worlds: Worlds | None = None
        self._levels_left = 0  # in the pool
        self._records = _EpisodeRecords(num_envs)
        self._everything = np.ones(num_envs, bool)
        self._ended = ~self._everything  # episodes, after which none has begun yet

    @property
    def states(self) -> State:
        """A copy of the present states of all environments, arrays `[N, ...]`.

        Raises:
            ResetNeeded: `reset` was never called.
        """
        return jax.tree.map(jnp.copy, self._begun().states)  # the next step takes the original

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, Infos]:
        """Begin an episode in each environment, or in those of `options["reset_mask"]`.

        Args:
            seed: of all levels from now on: the same seed and number of environments give the same
                levels in the same order (None: the next levels; at first, of a random seed).
            options: `reset_mask`, `bool[N]`: the environments to reset, if not all.

        Raises:
            ValueError: the mask is none, or it comes with a seed.
        """
        super().reset(seed=seed)
        mask = _mask(options, self.num_envs)
        if mask is not None and seed is not None:
            raise ValueError("a seed is of all environments: give no reset_mask with it")
        if seed is not None or (self._worlds is None and mask is None):
            drawn = self.np_random.integers(2**32, dtype=np.uint32)
            begun = self._begin(jax.random.key(drawn))
            self._worlds = self._refresh(begun)  # draws nothing yet, but is compiled now
            self._levels_left = self._count_levels()
        else:
            which = self._everything if mask is None else mask
            self._worlds = self._restart(self._begun(), which)
            self._levels_left -= int(which.sum())
        self._fill_pool()
        anew = self._everything if mask is None else mask
        self._records.begin(anew)
        self._ended = self._ended & ~anew
        view, panorama = self._look(self._worlds.states)
        return self._shown(view), self._infos(panorama)

    def step(
        self, actions: np.ndarray
    ) -> tuple[Observations, np.ndarray, np.ndarray, np.ndarray, Infos]:
        """Take one action in each environment.

        Args:
            actions: `int[N]`, each in 0..6.

        Returns:
            Observations, rewards `float64[N]`, terminations and truncations `bool[N]`, and infos.

        Raises:
            ValueError: the actions are no such numbers.
            ResetNeeded: `reset` was never called, or resets are disabled and one is due.
        """
        worlds, actions = self._begun(), _checked(actions, self.num_envs)
        pending = self._ended
        if self.autoreset_mode is AutoresetMode.DISABLED and pending.any():
            raise error.ResetNeeded("some episodes have ended: reset these with a reset_mask")
        self._records.begin(pending)
        self._worlds, (pictures, on_device) = self._step(worlds, actions, pending)
        seen: Any = jax.device_get(on_device)  # a `_Seen` of numpy arrays
        reward = seen.reward.astype(np.float64)
        self._records.add(~pending, reward, seen.success, seen.interaction)
        ended = seen.terminated | seen.truncated
        infos = self._records.of(ended) if ended.any() else {}
        if self.autoreset_mode is AutoresetMode.SAME_STEP:
            if ended.any():
                infos |= self._final_infos(ended, pictures.last)
            self._records.begin(ended)
            self._levels_left -= int(ended.sum())
        else:
            self._ended = ended
            self._levels_left -= int(pending.sum())
        self._fill_pool()
        flags = np.array(seen.terminated), np.array(seen.truncated)
        return self._shown(pictures.view), reward, *flags, infos | self._infos(pictures.panorama)

    def render(self) -> tuple[np.ndarray, ...] | None:
        """Return a picture of each environment if the render mode is `rgb_array`."""
        if self.render_mode is None:
            return None
        return tuple(render.whole_grid(state) for state in self._each_state())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._name}, num_envs={self.num_envs})"

    def _each_state(self) -> Iterator[State]:
        states = jax.device_get(self._begun().states)
        return (jax.tree.map(lambda leaf, i=i: leaf[i], states) for i in range(self.num_envs))

    def _begun(self) -> Worlds:
        if self._worlds is None:
            raise error.ResetNeeded("call reset first")
        return self._worlds

    def _shown(self, pictures: UInt8[Array, "N *shape"]) -> Any:
        """Return pictures as they were asked for: the caller's own in numpy, or on the device."""
        return np.array(pictures) if self._on_host else pictures

    def _infos(self, panorama: UInt8[Array, "N 4 7 7 3"] | None) -> Infos:
        """Return what is known of the present episodes."""
        known = self._records.so_far()
        if panorama is not None:
            known["panorama"] = self._shown(panorama)
        return _with_masks(known, self._everything)

    def _final_infos(
        self, ended: Bool[np.ndarray, " N"], last_views: UInt8[Array, "N 7 7 3"]
    ) -> Infos:
        """Return what the episodes that this step has ended, ended with."""
        last = np.full(self.num_envs, None, object)
        views = self._shown(last_views)
        for index in np.flatnonzero(ended):
            last[index] = views[index].copy()
        known = {name: values * ended for name, values in self._records.so_far().items()}
        return _with_masks({"final_obs": last, "final_info": _with_masks(known, ended)}, ended)

    def _fill_pool(self) -> None:
        """Draw levels until there is a fresh one for every environment."""
        while self._levels_left < self.num_envs:
            before = self._levels_left
            self._worlds = self._refresh(self._begun())
            self._levels_left = self._count_levels()
            if self._levels_left <= before:
                return  # a generator that is slow: `report` of a pool counts levels played twice

    def _count_levels(self) -> int:
        pool = self._begun().pool
        return int(pool.made[0]) - int(pool.taken[0])


class _EpisodeRecords:
    """Returns, lengths, successes and unique interactions of `num_envs` episodes."""

    def __init__(self, num_envs: int) -> None:
        self._return = np.zeros(num_envs)
        self._length = np.zeros(num_envs, np.int64)
        self._success = np.zeros(num_envs, bool)
        self._interactions = np.zeros(num_envs, np.int64)
        self._met: list[set[int]] = [set() for _ in range(num_envs)]  # keys of interactions
        self._began = np.zeros(num_envs)  # seconds

    def begin(self, which: Bool[np.ndarray, " N"]) -> None:
        """Begin the records of some episodes."""
        if not which.any():
            return
        for values in (self._return, self._length, self._success, self._interactions):
            values[which] = 0
        self._began[which] = time.perf_counter()
        for index in np.flatnonzero(which):
            self._met[index].clear()

    def add(
        self,
        acted: Bool[np.ndarray, " N"],
        reward: Float[np.ndarray, " N"],
        success: Bool[np.ndarray, " N"],
        interaction: UInt32[np.ndarray, "N 2"],
    ) -> None:
        """Add a step.

        Args:
            acted: which environments have taken an action.
            reward: of these actions.
            success: whether they fulfilled the task.
            interaction: keys of what they changed, zeros where nothing.
        """
        self._return += reward
        self._length += acted
        self._success |= success
        keys = np.ascontiguousarray(interaction).view(np.uint64)[:, 0]
        for index in np.flatnonzero(keys):
            self._met[index].add(int(keys[index]))
            self._interactions[index] = len(self._met[index])

    def so_far(self) -> Infos:
        """Return success and unique interactions of each episode until now."""
        return {"success": self._success.copy(), "interactions": self._interactions.copy()}

    def of(self, ended: Bool[np.ndarray, " N"]) -> Infos:
        """Return the statistics of episodes that have ended, as `RecordEpisodeStatistics` does."""
        seconds = np.round(time.perf_counter() - self._began, 6)
        episode = {"r": self._return * ended, "l": self._length * ended, "t": seconds * ended}
        return _with_masks({"episode": episode}, ended)


def _with_masks(infos: Infos, mask: Bool[np.ndarray, " N"]) -> Infos:
    """Add gymnasium's masks, which say which environments each name is true of."""
    return infos | {f"_{name}": mask.copy() for name in infos}


class _Pictures(NamedTuple):
    """What `N` agents see after a step."""

    view: UInt8[Array, "N 7 7 3"]
    panorama: UInt8[Array, "N 4 7 7 3"] | None
    last: UInt8[Array, "N 7 7 3"] | None  # views at the ends of the episodes that have just ended


class _Seen(NamedTuple):
    """What else a step of `N` environments returns, before the host makes it gymnasium's."""

    reward: Float[Array, " N"]
    success: Bool[Array, " N"]
    terminated: Bool[Array, " N"]
    truncated: Bool[Array, " N"]
    interaction: UInt32[Array, "N 2"]  # key of what the action changed, zeros if nothing


def _step(
    worlds: Worlds,
    actions: Int[Array, " N"],
    pending: Bool[Array, " N"],
    *,
    explore: bool,
    same_step: bool,
    panorama: bool,
) -> tuple[Worlds, tuple[_Pictures, _Seen]]:
    """Take one action in each environment; begin the next episode where one has ended.

    Args:
        worlds: before the step.
        actions: one for each.
        pending: which begin an episode instead, because the last one ended at the step before.
        explore: whether episodes continue after success.
        same_step: whether an episode that ends is followed by the next one at once.
        panorama: whether the panorama is returned.
    """
    states, outcome = jax.vmap(rules.step)(worlds.states, actions)
    acted = ~pending
    terminated, truncated = (ends & acted for ends in rules.episode_ends(outcome, explore=explore))
    ended = terminated | truncated
    last = None
    if same_step:
        last = jax.lax.cond(ended.any(), _view, _no_view, states)
    following = restart(worlds._replace(states=states), ended if same_step else pending)
    view, around = _look(following.states, panorama=panorama)
    signals = _Seen(
        reward=jnp.where(acted, outcome.reward, 0.0),
        success=outcome.success & acted,
        terminated=terminated,
        truncated=truncated,
        interaction=jnp.where(acted[:, None], outcome.interaction, 0),
    )
    return following, (_Pictures(view, around, last), signals)


def _look(
    states: State, *, panorama: bool
) -> tuple[UInt8[Array, "N 7 7 3"], UInt8[Array, "N 4 7 7 3"] | None]:
    """Return what each agent sees, and the views to the four directions if asked for."""
    seen = views.look_around_batch(states)
    view = jnp.moveaxis(views.egocentric(states, seen), -1, 0)
    return view, c.encode(jnp.moveaxis(seen, -1, 0)) if panorama else None


def _view(states: State) -> UInt8[Array, "N 7 7 3"]:
    return _look(states, panorama=False)[0]


def _no_view(states: State) -> UInt8[Array, "N 7 7 3"]:
    return jnp.zeros((len(states.step_count), *VIEW_SHAPE), jnp.uint8)


def _mask(options: dict[str, Any] | None, num_envs: int) -> Bool[np.ndarray, " N"] | None:
    """Return the mask of the environments to reset, None for all of them."""
    mask = (options or {}).get(RESET_MASK)
    if mask is None:
        return None
    mask = np.asarray(mask)
    if mask.shape != (num_envs,) or mask.dtype != np.bool_ or not mask.any():
        raise ValueError(f"reset_mask must be bool[{num_envs}] and true somewhere")
    return mask


def _checked(actions: Any, num_envs: int) -> Int[np.ndarray, " N"]:
    actions = np.asarray(actions)
    if actions.shape != (num_envs,) or actions.dtype.kind not in "iu":
        raise ValueError(f"actions must be {num_envs} whole numbers, not {actions!r}")
    most = len(rules.ACTIONS) - 1
    if actions.min() < 0 or actions.max() > most:
        raise ValueError(f"actions must be in 0..{most}, not {actions!r}")
    return actions.astype(np.int32)
