"""The method that is checked, and what it makes of a walk."""

from typing import Any

import jax
import numpy as np

from cbet_jax.config import TrainSettings
from cbet_jax.intrinsic import make_intrinsic
from cbet_jax.intrinsic.types import Memory, Params
from cbet_jax.method_check.corridor import ACTIONS
from cbet_jax.method_check.walk import Played, Walk, play

QUICKLY = {"xla_backend_optimization_level": 0}  # to compile; each function runs a few times


class Subject:
    """The method that is checked, and its compiled functions."""

    def __init__(self, settings: TrainSettings) -> None:
        """Make the method.

        Raises:
            SettingsError: it is unknown, or refuses the settings.
        """
        self.settings = settings
        self.method = make_intrinsic(settings, ACTIONS)
        self.traces = 0
        self._init = jax.jit(self.method.init, compiler_options=QUICKLY)
        self._play = jax.jit(self._traced, compiler_options=QUICKLY)

    def _traced(self, *arguments: Any) -> Played:
        self.traces += 1
        return play(self.method, *arguments)

    def begin(self, walk: Walk) -> tuple[Params, Memory]:
        """Return the method's parameters and memory before the first step."""
        params, memory = self._init(jax.random.key(0), walk.first)
        return params, memory

    def play(self, params: Params, memory: Memory, walk: Walk) -> Played:
        """Return what the method makes of a walk, always with the same key."""
        played: Played = self._play(params, memory, jax.random.key(1), walk)
        return played

    def rewards(self, walk: Walk) -> np.ndarray:
        """Return the rewards of a walk for a method that has just begun: [T, N]."""
        return np.asarray(self.play(*self.begin(walk), walk).reward)
