"""C-BET in JAX: what a user imports, by name. Each name is imported when it is first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same names as below
    from cbet_jax.agent import Agent, AgentParams, Outputs, make_agent, network_agent, uniform
    from cbet_jax.config import (
        AuxiliarySettings,
        CountSettings,
        LossSettings,
        NetworkSettings,
        OptimizerSettings,
        RunSettings,
        TrainSettings,
        TransferSettings,
    )
    from cbet_jax.evaluate import Episodes, evaluate_uniform, make_evaluator
    from cbet_jax.intrinsic import METHODS, make_intrinsic
    from cbet_jax.intrinsic.interface import Intrinsic
    from cbet_jax.other_learners.bonus import Batch, Bonus, Seen, bonus
    from cbet_jax.other_learners.intrinsic_reward import IntrinsicReward
    from cbet_jax.program import Program, make_program, seed_keys
    from cbet_jax.rollout import act, begin_actor
    from cbet_jax.runs.devices import make_mesh, use_cpu
    from cbet_jax.runs.directory import RunDirectory
    from cbet_jax.runs.policy import Policy, load, train_policy
    from cbet_jax.runs.saved_policies import Policies, load_policies
    from cbet_jax.settings.ranges import SettingsError
    from cbet_jax.train import TrainState, make_trainer
    from cbet_jax.types import Trajectory, Transition

_NAMES = {
    "cbet_jax.agent": ("Agent", "AgentParams", "Outputs", "make_agent", "network_agent", "uniform"),
    "cbet_jax.config": (
        *("AuxiliarySettings", "CountSettings", "LossSettings", "NetworkSettings"),
        *("OptimizerSettings", "RunSettings", "TrainSettings", "TransferSettings"),
    ),
    "cbet_jax.evaluate": ("Episodes", "evaluate_uniform", "make_evaluator"),
    "cbet_jax.intrinsic": ("METHODS", "make_intrinsic"),
    "cbet_jax.intrinsic.interface": ("Intrinsic",),
    "cbet_jax.other_learners.bonus": ("Batch", "Bonus", "Seen", "bonus"),
    "cbet_jax.other_learners.intrinsic_reward": ("IntrinsicReward",),
    "cbet_jax.program": ("Program", "make_program", "seed_keys"),
    "cbet_jax.rollout": ("act", "begin_actor"),
    "cbet_jax.runs.devices": ("make_mesh", "use_cpu"),
    "cbet_jax.runs.directory": ("RunDirectory",),
    "cbet_jax.runs.policy": ("Policy", "load", "train_policy"),
    "cbet_jax.runs.saved_policies": ("Policies", "load_policies"),
    "cbet_jax.settings.ranges": ("SettingsError",),
    "cbet_jax.train": ("TrainState", "make_trainer"),
    "cbet_jax.types": ("Trajectory", "Transition"),
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}
__all__ = sorted(_MODULE_OF)

if not TYPE_CHECKING:  # type checkers know the names above, and no others

    def __getattr__(name: str) -> Any:
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
