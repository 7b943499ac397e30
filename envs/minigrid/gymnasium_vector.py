"""Gridworlds as one `gymnasium.vector.VectorEnv`, with one compiled step for all.

Observations are MiniGrid's images, as by its `ImgObsWrapper`, without the mission (constant per
environment) and direction (in `states`).
"""

from functools import partial
from typing import Any

import jax
import numpy as np
from gymnasium import error, spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from jaxtyping import Array, Bool, Int, UInt8, UInt32

from envs.minigrid import render, rules
from envs.minigrid.generators import Generator
from envs.minigrid.observations import observer_of
from envs.minigrid.rules import State
from envs.minigrid.vector_step import SUCCESS, TERMINATED, TRUNCATED, Packed, play, split, unpack
from envs.minigrid.world import VIEW_SHAPE, Seen, gridworld

LEVELS_PER_ENV = 4  # levels per environment in a full pool
RESET_MASK = "reset_mask"  # gymnasium's option of `reset`
RGB = "rgb_array"
NUMPY = "numpy"
ARRAYS = (NUMPY, "dlpack")

type Infos = dict[str, Any]  # name -> array [N]; `_name` masks the environments that have it
type Observations = Any  # uint8[N, height, width, 3], numpy's, or JAX's with arrays `dlpack`


class GridworldVectorEnv(VectorEnv[Observations, np.ndarray, np.ndarray]):
    """A batch of gridworlds of one environment. `envs.minigrid.gym_vector` describes the arguments.

    `info` holds `success` and `interactions` (unique so far) of the current episode at every step,
    on request `panorama`, and then `egocentric` if agents see otherwise. With same-step resets,
    where an episode has ended the current episode is already the next one; `final_obs` and
    `final_info` describe the last one. Returns and lengths of episodes are left to gymnasium's
    `RecordEpisodeStatistics`. As in MiniGrid, a success in the last step that is allowed is both a
    termination and a truncation.

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
        **view_options: Any,
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
        observer = observer_of([generator], **view_options)
        shape = observer.shape if observer else VIEW_SHAPE
        self.counted_shape = VIEW_SHAPE if observer else None  # of `egocentric` in info
        self.single_observation_space = spaces.Box(0, 255, shape, np.uint8)
        self.single_action_space = spaces.Discrete(len(rules.ACTIONS))
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        world = gridworld([generator], num_envs, explore=explore, levels_per_world=LEVELS_PER_ENV)
        template = jax.eval_shape(lambda key: world.init(key)[0].states, jax.random.key(0))
        self._unpack = jax.jit(partial(unpack, template))
        self._begin = jax.jit(lambda key: split(world.init(key)[0]))
        self._refresh = jax.jit(world.refresh, donate_argnums=0)
        step = partial(play, template, observer, explore)
        self._play = jax.jit(step, donate_argnums=(0, 1), static_argnums=4)
        self.panorama = panorama
        self._on_host = arrays == NUMPY
        self._states: Packed | None = None
        self._others: Any = None  # the `Worlds` without their states
        self._levels_left = 0  # fresh levels in the pool
        self._records = _EpisodeRecords(num_envs)
        self._everything = np.ones(num_envs, bool)
        self._ended = ~self._everything  # environments whose reset is due
        self._is_due = False  # whether one is

    @property
    def states(self) -> State:
        """A copy of the current states, arrays `[N, ...]`.

        Raises:
            ResetNeeded: `reset` was never called.
        """
        if self._states is None:
            raise error.ResetNeeded("call reset first")
        states: State = self._unpack(self._states)
        return states

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, Infos]:
        """Begin an episode in each environment, or in those of `options["reset_mask"]`.

        Args:
            seed: restarts the sequence of levels, which it determines together with `num_envs`
                (None: the sequence continues; at first, its seed is random).
            options: `reset_mask`, `bool[N]`, selects environments (default: all).

        Raises:
            ValueError: the mask is invalid, or comes with a seed. ResetNeeded: it comes first.
        """
        super().reset(seed=seed)
        mask = _mask(options, self.num_envs)
        if mask is not None and seed is not None:
            raise ValueError("a seed is of all environments: give no reset_mask with it")
        anew = self._everything if mask is None else mask
        if seed is not None or (self._states is None and mask is None):
            drawn = self.np_random.integers(2**32, dtype=np.uint32)
            self._states, begun = self._begin(jax.random.key(drawn))
            self._others = self._refresh(begun)  # draws nothing yet, but is compiled now
            self._levels_left = self._count_levels()
            pictures, _ = self._advance(None, None)
        else:
            pictures, _ = self._advance(None, anew)
        self._records.begin(anew)
        self._ended = self._ended & ~anew
        self._is_due = bool(self._ended.any())
        return self._views(pictures), self._infos(pictures)

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
        actions, due = _checked(actions, self.num_envs), self._ended if self._is_due else None
        if due is not None:
            if self.autoreset_mode is AutoresetMode.DISABLED:
                raise error.ResetNeeded("some episodes have ended: reset these with a reset_mask")
            self._records.begin(due)
        pictures, signals = self._advance(actions, due)
        told, reward = np.asarray(signals), np.zeros(self.num_envs)
        terminated, truncated = np.zeros((2, self.num_envs), bool)
        if told.any():  # rare in small batches, where numpy's calls take long
            reward = told[:, 0].view(np.float32).astype(np.float64)
            terminated, truncated = (told[:, 3] & TERMINATED) != 0, (told[:, 3] & TRUNCATED) != 0
            self._records.add(told)
        ended = terminated | truncated
        any_ended, infos = bool(ended.any()), {}
        if self.autoreset_mode is not AutoresetMode.SAME_STEP:
            self._ended, self._is_due = ended, any_ended
        elif any_ended:
            infos = self._final_infos(ended, pictures)
            self._records.begin(ended)
            pictures, _ = self._advance(None, ended)
        infos |= self._infos(pictures)
        return self._views(pictures), reward, terminated, truncated, infos

    def _advance(
        self, actions: Int[np.ndarray, " N"] | None, due: Bool[np.ndarray, " N"] | None
    ) -> tuple[Seen, Any]:
        """Take actions, if any, and begin episodes where they are due; see `play`.

        While none is due, the compiled program reads two arrays and has no branch. In small batches
        handing over an array costs more than computing with it.
        """
        if self._states is None:
            raise error.ResetNeeded("call reset first")
        others = None if due is None else self._others
        self._states, others, *found = self._play(self._states, others, actions, due, self.panorama)
        if due is not None:
            self._others = others
            self._levels_left -= int(due.sum())
            self._fill_pool()
        return found[0], found[1]

    def render(self) -> tuple[np.ndarray, ...] | None:
        """Return a picture of each environment if the render mode is `rgb_array`."""
        if self.render_mode is None:
            return None
        states = jax.device_get(self.states)
        each = (jax.tree.map(lambda leaf, i=i: leaf[i], states) for i in range(self.num_envs))
        return tuple(map(render.whole_grid, each))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._name}, num_envs={self.num_envs})"

    def _shown(self, pictures: UInt8[Array, "N *shape"]) -> Any:
        """Return arrays as a numpy copy, or unchanged for DLPack."""
        return np.asarray(pictures).copy() if self._on_host else pictures

    def _infos(self, pictures: Seen) -> Infos:
        """Return the statistics of the current episodes, and pictures beside the views."""
        return _with_masks(self._records.so_far() | self._beside(pictures), self._everything)

    def _views(self, pictures: Seen) -> Observations:
        other = pictures.other_view
        return self._shown(pictures.view if other is None else other)

    def _beside(self, pictures: Seen) -> Infos:
        """Return the panoramas, and the 7x7 views if agents see otherwise."""
        if pictures.panorama is None:
            return {}
        around = {"panorama": self._shown(pictures.panorama)}
        usual = pictures.other_view is None
        return around if usual else around | {"egocentric": self._shown(pictures.view)}

    def _final_infos(self, ended: Bool[np.ndarray, " N"], pictures: Seen) -> Infos:
        """Return the final observations, panoramas and statistics of ended episodes."""
        last, views = np.full(self.num_envs, None, object), self._views(pictures)
        for index in np.flatnonzero(ended):
            last[index] = views[index].copy()
        known = {name: values * ended for name, values in self._records.so_far().items()}
        known |= self._beside(pictures)
        return _with_masks({"final_obs": last, "final_info": _with_masks(known, ended)}, ended)

    def _fill_pool(self) -> None:
        """Draw levels until every environment has a fresh one."""
        while self._levels_left < self.num_envs:
            before = self._levels_left
            self._others = self._refresh(self._others)
            self._levels_left = self._count_levels()
            if self._levels_left <= before:
                return  # a slow generator: levels are replayed

    def _count_levels(self) -> int:
        pool = self._others.pool
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

    def add(self, signals: UInt32[np.ndarray, "N 4"]) -> None:
        """Add the signals of a step."""
        self._success |= (signals[:, 3] & SUCCESS) != 0
        for index in np.flatnonzero(signals[:, 1]):
            self._met[index].add(int(signals[index, 1]) << 32 | int(signals[index, 2]))
            self._interactions[index] = len(self._met[index])

    def so_far(self) -> Infos:
        """Return success and unique interactions of the current episodes."""
        return {"success": self._success.copy(), "interactions": self._interactions.copy()}


def _with_masks(infos: Infos, mask: Bool[np.ndarray, " N"]) -> Infos:
    """Add gymnasium's masks: the environments for which each entry holds."""
    return infos | {f"_{name}": mask.copy() for name in infos}


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
    if actions.astype(np.uint64).max() > most:  # negative ones are large there
        raise ValueError(f"actions must be in 0..{most}, not {actions!r}")
    return actions.astype(np.int32)
