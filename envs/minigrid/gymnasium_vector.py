"""Gridworlds as one `gymnasium.vector.VectorEnv`, with one compiled step for all.

Observations are MiniGrid's images, as by its `ImgObsWrapper`, without the mission (constant per
environment) and direction (in `states`).
"""

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

from envs.minigrid import render, rules
from envs.minigrid.generators import Generator
from envs.minigrid.rules import State
from envs.minigrid.world import VIEW_SHAPE, Worlds, gridworld, look, look_at_ends, restart

LEVELS_PER_ENV = 4  # levels per environment in a full pool
RESET_MASK = "reset_mask"  # gymnasium's option of `reset`
RGB = "rgb_array"
NUMPY = "numpy"
ARRAYS = (NUMPY, "dlpack")

type Infos = dict[str, Any]  # name -> array [N]; `_name` masks the environments that have it
type Observations = Any  # uint8[N, 7, 7, 3], numpy's, or JAX's with arrays `dlpack`


class GridworldVectorEnv(VectorEnv[Observations, np.ndarray, np.ndarray]):
    """A batch of gridworlds of one environment. `envs.minigrid.gym_vector` describes the arguments.

    `info` holds `success` and `interactions` (unique so far) of the current episode at every step,
    and `panorama` on request. With same-step resets, where an episode has ended the current episode
    is already the next one; `final_obs` and `final_info` describe the last one. Returns and lengths
    of episodes are left to gymnasium's `RecordEpisodeStatistics`. As in MiniGrid, a success in the
    last step that is allowed is both a termination and a truncation.

    With arrays `dlpack`, do not change views and panoramas in place: they are JAX arrays.
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
        self._look = jax.jit(look, static_argnames="panorama")
        same_step = mode is AutoresetMode.SAME_STEP
        step = partial(_step, explore=explore, same_step=same_step)
        self._step = jax.jit(step, donate_argnums=0, static_argnames="panorama")
        self.panorama = panorama
        self._on_host = arrays == NUMPY
        self._worlds: Worlds | None = None
        self._levels_left = 0  # fresh levels in the pool
        self._records = _EpisodeRecords(num_envs)
        self._everything = np.ones(num_envs, bool)
        self._ended = ~self._everything  # environments that wait for a reset

    @property
    def states(self) -> State:
        """A copy of the current states, arrays `[N, ...]`.

        Raises:
            ResetNeeded: `reset` was never called.
        """
        return jax.tree.map(jnp.copy, self._begun().states)  # the next step donates the original

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, Infos]:
        """Begin an episode in each environment, or in those of `options["reset_mask"]`.

        Args:
            seed: restarts the sequence of levels, which it determines together with `num_envs`
                (None: the sequence continues; at first, its seed is random).
            options: `reset_mask`, `bool[N]`, selects environments (default: all).

        Raises:
            ValueError: the mask is invalid, or comes with a seed.
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
        view, panorama = self._look(self._worlds.states, panorama=self.panorama)
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
            ValueError: an action is invalid.
            ResetNeeded: `reset` was never called, or resets are disabled and one is due.
        """
        worlds, actions = self._begun(), _checked(actions, self.num_envs)
        pending = self._ended
        if self.autoreset_mode is AutoresetMode.DISABLED and pending.any():
            raise error.ResetNeeded("some episodes have ended: reset these with a reset_mask")
        self._records.begin(pending)
        self._worlds, (pictures, on_device) = self._step(
            worlds, actions, pending, panorama=self.panorama
        )
        seen: Any = jax.device_get(on_device)  # a `_Seen` of numpy arrays
        reward = seen.reward.astype(np.float64)
        self._records.add(seen.success, seen.interaction)
        ended, infos = seen.terminated | seen.truncated, {}
        if self.autoreset_mode is AutoresetMode.SAME_STEP:
            if ended.any():
                infos = self._final_infos(ended, pictures.last)
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
        """Return arrays as a numpy copy, or unchanged for DLPack."""
        return np.array(pictures) if self._on_host else pictures

    def _infos(self, panorama: UInt8[Array, "N 4 7 7 3"] | None) -> Infos:
        """Return the statistics of the current episodes."""
        known = self._records.so_far()
        if panorama is not None:
            known["panorama"] = self._shown(panorama)
        return _with_masks(known, self._everything)

    def _final_infos(self, ended: Bool[np.ndarray, " N"], last_seen: Any) -> Infos:
        """Return the final observations, panoramas and statistics of ended episodes."""
        last = np.full(self.num_envs, None, object)
        view, panorama = last_seen
        views = self._shown(view)
        for index in np.flatnonzero(ended):
            last[index] = views[index].copy()
        known = {name: values * ended for name, values in self._records.so_far().items()}
        if panorama is not None:
            known["panorama"] = self._shown(panorama)
        return _with_masks({"final_obs": last, "final_info": _with_masks(known, ended)}, ended)

    def _fill_pool(self) -> None:
        """Draw levels until every environment has a fresh one."""
        while self._levels_left < self.num_envs:
            before = self._levels_left
            self._worlds = self._refresh(self._begun())
            self._levels_left = self._count_levels()
            if self._levels_left <= before:
                return  # a slow generator: levels are replayed

    def _count_levels(self) -> int:
        pool = self._begun().pool
        return int(pool.made[0]) - int(pool.taken[0])


class _EpisodeRecords:
    """Successes and unique interactions of `num_envs` episodes."""

    def __init__(self, num_envs: int) -> None:
        self._success = np.zeros(num_envs, bool)
        self._interactions = np.zeros(num_envs, np.int64)
        self._met: list[set[int]] = [set() for _ in range(num_envs)]  # keys of interactions

    def begin(self, which: Bool[np.ndarray, " N"]) -> None:
        """Begin the records of some episodes."""
        self._success[which] = False
        self._interactions[which] = 0
        for index in np.flatnonzero(which):
            self._met[index].clear()

    def add(self, success: Bool[np.ndarray, " N"], interaction: UInt32[np.ndarray, "N 2"]) -> None:
        """Add a step; the arrays are those of `Step`."""
        self._success |= success
        keys = np.ascontiguousarray(interaction).view(np.uint64)[:, 0]
        for index in np.flatnonzero(keys):
            self._met[index].add(int(keys[index]))
            self._interactions[index] = len(self._met[index])

    def so_far(self) -> Infos:
        """Return success and unique interactions of the current episodes."""
        return {"success": self._success.copy(), "interactions": self._interactions.copy()}


def _with_masks(infos: Infos, mask: Bool[np.ndarray, " N"]) -> Infos:
    """Add gymnasium's masks: the environments for which each entry holds."""
    return infos | {f"_{name}": mask.copy() for name in infos}


class _Pictures(NamedTuple):
    """Images of `N` agents after a step."""

    view: UInt8[Array, "N 7 7 3"]
    panorama: UInt8[Array, "N 4 7 7 3"] | None
    last: Any  # final views and panoramas of ended episodes


class _Seen(NamedTuple):
    """The other results of a step of `N` environments."""

    reward: Float[Array, " N"]
    success: Bool[Array, " N"]
    terminated: Bool[Array, " N"]
    truncated: Bool[Array, " N"]
    interaction: UInt32[Array, "N 2"]  # as in `Step`


def _step(
    worlds: Worlds,
    actions: Int[Array, " N"],
    pending: Bool[Array, " N"],
    *,
    explore: bool,
    same_step: bool,
    panorama: bool,
) -> tuple[Worlds, tuple[_Pictures, _Seen]]:
    """Take one action in each environment, and begin the next episode where one has ended.

    Args:
        worlds: the worlds before the step.
        actions: one action per environment.
        pending: environments that reset instead, because their episode ended one step earlier.
        explore: whether episodes continue after success.
        same_step: whether environments reset in the step that ends their episode.
        panorama: whether to return panoramas.
    """
    states, outcome = jax.vmap(rules.step)(worlds.states, actions)
    acted = ~pending
    terminated = rules.episode_ends(outcome, explore=explore)[0] & acted
    truncated = outcome.timed_out & acted
    ended = terminated | truncated
    last = None
    if same_step:
        last = look_at_ends(states, ended, panorama=panorama)
    following = restart(worlds._replace(states=states), ended if same_step else pending)
    view, around = look(following.states, panorama=panorama)
    signals = _Seen(
        reward=jnp.where(acted, outcome.reward, 0.0),
        success=outcome.success & acted,
        terminated=terminated,
        truncated=truncated,
        interaction=jnp.where(acted[:, None], outcome.interaction, 0),
    )
    return following, (_Pictures(view, around, last), signals)


def _mask(options: dict[str, Any] | None, num_envs: int) -> Bool[np.ndarray, " N"] | None:
    """Return the mask of the environments to reset, None for all."""
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
