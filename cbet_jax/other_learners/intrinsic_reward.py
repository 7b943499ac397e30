"""The intrinsic rewards for learners in PyTorch or numpy: a wrapper of gymnasium's vectors."""

from dataclasses import replace
from functools import partial
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv, VectorWrapper
from jaxtyping import Bool

from cbet_jax.config import TrainSettings
from cbet_jax.other_learners.bonus import Batch, BonusState, Seen, bonus
from cbet_jax.settings.ranges import LARGEST_INT, check_between

PANORAMA, EGOCENTRIC = "panorama", "egocentric"  # in info


def autoreset_mode(env: VectorEnv[Any, Any, Any]) -> AutoresetMode:
    """Return when environments reset; before gymnasium 1.4 all vectors share the metadata."""
    own = getattr(env.unwrapped, "autoreset_mode", None)
    return AutoresetMode(own or env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))


class IntrinsicReward(VectorWrapper):  # gymnasium before 1.4 has no types of it
    """Adds an intrinsic reward to that of the environments, whatever the learner.

        envs = cbet_jax.IntrinsicReward(envs, "cbet", coefficient=0.005)

    `info` holds both parts, arrays `[N]`: `extrinsic_reward`, `intrinsic_reward` (of `bonus`). A
    step that only begins an episode has no intrinsic reward. One that ends an episode is rewarded
    for the episode's last view; the package's own learner rewards the published methods for the
    next one's first view, as the published code does. Methods with networks learn by themselves,
    every `unroll` steps from all of them; `metrics` holds the losses of the last update. `state`
    holds counts and networks and is changed in place: save a copy,
    `jax.tree.map(np.array, envs.state)`. To continue, set it on a new wrapper with another `seed`.

    A view is the observation, or its `image`, an array of bytes; in `gym_vector` it is the agent's
    7x7 view, whatever the observation. Changes are those of the panorama where there is one: in
    `gym_vector`, in MiniGrid's own environments in a `SyncVectorEnv`, and in an `AsyncVectorEnv` of
    environments wrapped in `Panorama`. Elsewhere they are those of the view.

    Args:
        env: the environments, with any autoreset mode.
        method: as of `cbet_jax.bonus`.
        coefficient: weight of the reward (None: the method's own).
        unroll: steps between two updates of the method's networks.
        seed: of the networks and the random resets of counts.
        settings: as of `cbet_jax.bonus`; `settings.frames` decides how large count tables are.

    Raises:
        SettingsError: the method is unknown, refuses the settings, or `unroll` is below 1.
        TypeError: actions are not discrete, or observations hold no view.
    """

    def __init__(
        self,
        env: VectorEnv[Any, Any, np.ndarray],
        method: str = "cbet",
        *,
        coefficient: float | None = None,
        unroll: int = 128,
        seed: int = 0,
        settings: TrainSettings | None = None,
    ) -> None:
        super().__init__(env)
        self.state: BonusState | None = None  # of the counts and networks
        self.metrics: dict[str, float] = {}
        space, actions = self.single_observation_space, self.single_action_space
        view = space.get("image") if isinstance(space, spaces.Dict) else space
        if not isinstance(actions, spaces.Discrete) or actions.start != 0:
            raise TypeError(f"an intrinsic reward needs actions Discrete(n), not {actions}")
        if not isinstance(view, spaces.Box) or view.dtype != np.uint8 or len(view.shape) != 3:
            raise TypeError(f"a view must be bytes [height, width, channels], not {view}")
        check_between("unroll", unroll, 1, LARGEST_INT)
        settings = settings or TrainSettings()
        if coefficient is not None:
            settings = replace(settings, intrinsic_coefficient=coefficient)
        counted = getattr(self.unwrapped, "counted_shape", None)  # if other than the observation
        number, shape = int(actions.n), counted or (view.shape[0], view.shape[1], view.shape[2])
        made = bonus(method, self.num_envs, shape, number, settings=settings)
        self._mode = autoreset_mode(env)
        self._init, self._learn = jax.jit(made.init), jax.jit(made.update)
        # Count tables are large, so they are changed in place.
        self._reward = jax.jit(partial(_in_place, made.step), donate_argnums=0)
        self._begin = jax.jit(partial(_in_place, made.begin), donate_argnums=0)
        self._key, self._keys_drawn, self._unroll = jax.random.key(seed), 0, unroll
        self._pending = np.zeros(self.num_envs, bool)  # the next step only begins an episode
        self._seen: list[Seen] = []  # since the last update
        self._played: list[tuple[Any, Any]] = []  # actions, and whether episodes ended
        if made.panoramas or counted:
            _show_panoramas(self.unwrapped)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin episodes, as `env` does; counts and networks stay.

        Raises:
            ValueError: `state` was set to that of another method, or of other environments.
        """
        mask = (options or {}).get("reset_mask")
        anew = np.ones(self.num_envs, bool) if mask is None else np.array(mask)
        obs, info = self.env.reset(seed=seed, options=options)
        seen = self._look(obs, info)
        if self.state is None:
            self.state, self._seen = self._init(self._draw_key(), seen), [seen]
            return obs, info
        if not self._seen:  # a kept state was set
            made = jax.eval_shape(self._init, self._key, seen)
            if jax.tree.map(np.shape, self.state) != jax.tree.map(np.shape, made):
                raise ValueError("`state` is of another method, or of other environments")
            self._seen = [seen]
        self._begin_episodes(self.state, self._seen[-1], seen, anew)
        self._seen[-1], self._pending = seen, self._pending & ~anew
        if self._played:
            actions, ended = self._played[-1]
            self._played[-1] = actions, ended | anew
        return obs, info

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Step all environments; the reward is the sum of both.

        Raises:
            ResetNeeded: `reset` was never called.
        """
        if self.state is None or not self._seen:
            raise gymnasium.error.ResetNeeded("call reset first")
        obs, extrinsic, terminated, truncated, info = self.env.step(actions)
        seen, ended, begun = self._look(obs, info), terminated | truncated, self._pending
        actions, last = np.array(actions, np.int32), seen
        if self._mode is AutoresetMode.SAME_STEP and ended.any():
            last = _last_seen(seen, info, ended)
        before = self._seen[-1], actions, last, begun
        self.state, gained = self._reward(*_parted(self.state), self._draw_key(), *before)
        intrinsic = np.where(begun, 0.0, np.asarray(gained, np.float64))
        if last is not seen:
            self._begin_episodes(self.state, last, seen, ended)
            begun = ended
        self._pending = ended & (self._mode is AutoresetMode.NEXT_STEP)
        self._remember(seen, actions, begun)
        parts = {"extrinsic_reward": np.array(extrinsic), "intrinsic_reward": intrinsic}
        masks = {f"_{name}": np.ones(self.num_envs, bool) for name in parts}
        return obs, extrinsic + intrinsic, terminated, truncated, info | parts | masks

    def _look(self, obs: Any, info: dict[str, Any]) -> Seen:
        """Return the views and panoramas of this moment, copied."""
        view = _kept(info[EGOCENTRIC] if EGOCENTRIC in info else _view(obs))
        if PANORAMA not in info:
            return Seen(view, view)
        panorama, told = _kept(info[PANORAMA]), info[f"_{PANORAMA}"]
        if not told.all():  # only some were reset
            panorama[~told] = np.asarray(self._seen[-1].panorama)[~told]
        return Seen(view, panorama)

    def _begin_episodes(self, state: BonusState, last: Seen, first: Seen, which: Any) -> None:
        self.state = self._begin(*_parted(state), self._draw_key(), last, first, which)

    def _remember(self, seen: Seen, actions: np.ndarray, ended: np.ndarray) -> None:
        """Remember a step, and learn if there are enough."""
        if self.state is None or not self.state.optimizers:
            self._seen = [seen]
            return
        self._seen.append(seen)
        self._played.append((actions, ended))
        if len(self._played) < self._unroll:
            return
        views = jax.tree.map(lambda *steps: jnp.stack(steps), *self._seen)
        before = jax.tree.map(lambda leaf: leaf[:-1], views)
        after = jax.tree.map(lambda leaf: leaf[1:], views)
        all_actions, all_ended = map(np.stack, zip(*self._played, strict=True))
        batch = Batch(before, jnp.asarray(all_actions), after, jnp.asarray(all_ended))
        self.state, metrics = self._learn(self.state, batch)
        self.metrics = {name: float(value) for name, value in metrics.items()}
        self._seen, self._played = [seen], []

    def _draw_key(self) -> Any:
        self._keys_drawn += 1
        return jax.random.fold_in(self._key, self._keys_drawn)


class Panorama(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Puts `panorama` into the `info` of one of MiniGrid's environments.

    It holds the agent's views to the right, down, left and up, `uint8[4, 7, 7, 3]`.
    """

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        obs, info = self.env.reset(seed=seed, options=options)
        return obs, info | {PANORAMA: self._look_around()}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take an action."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        return obs, reward, terminated, truncated, info | {PANORAMA: self._look_around()}

    def _look_around(self) -> np.ndarray:
        env: Any = self.unwrapped
        facing, views = env.agent_dir, []
        for env.agent_dir in range(4):
            views.append(env.gen_obs()["image"])
        env.agent_dir = facing
        return np.stack(views)


def _show_panoramas(envs: Any) -> None:
    """Have panoramas put into `info`, if these are gridworlds."""
    if isinstance(envs, SyncVectorEnv):
        if all(hasattr(env.unwrapped, "gen_obs") for env in envs.envs):
            envs.envs = [env if isinstance(env, Panorama) else Panorama(env) for env in envs.envs]
    elif hasattr(envs, PANORAMA):
        envs.panorama = True


def _in_place(function: Any, memory: Any, state: BonusState, *arguments: Any) -> Any:
    return function(state._replace(memory=memory), *arguments)


def _parted(state: BonusState) -> tuple[Any, BonusState]:
    return state.memory, state._replace(memory=())


def _view(obs: Any) -> Any:
    return obs["image"] if isinstance(obs, dict) else obs


def _kept(array: Any) -> Any:
    """Return an array that nobody changes: JAX's own, or a copy."""
    return array if isinstance(array, jax.Array) else np.array(array)


def _last_seen(seen: Seen, info: dict[str, Any], ended: Bool[np.ndarray, " N"]) -> Seen:
    """Return what is seen, but the last of an episode where one ended in this step."""
    view: Any = np.array(seen.view)
    for env in np.flatnonzero(ended):
        last = info["final_info"][EGOCENTRIC] if EGOCENTRIC in info else info["final_obs"]
        view[env] = _view(last[env])
    if PANORAMA not in info:
        return Seen(view, view)
    panorama: Any = np.array(seen.panorama)
    panorama[ended] = np.asarray(info["final_info"][PANORAMA])[ended]
    return Seen(view, panorama)
