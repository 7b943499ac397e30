"""The names, titles and units of metrics.

A new metric needs one line here; without it, it is drawn among the diagnostics under its name.
Metrics of one world are called `NAME/WORLD`.
"""

from typing import NamedTuple


class Metric(NamedTuple):
    """One metric."""

    name: str  # name in the program and in metrics.csv
    title: str  # title of its panel
    unit: str  # label of the panel's vertical axis
    short: str | None = None  # name on the progress bar and in tables of sweeps (None: left out)
    main: bool = False  # drawn among the learning curves, and compared; others are diagnostics


INTRINSIC = "intrinsic_reward"  # 0 throughout in a run without one

METRICS = (
    Metric("interactions", "Unique interactions", "per episode", "interactions", main=True),
    Metric("success", "Episodes with success", "share of episodes", "success", main=True),
    Metric(INTRINSIC, "Intrinsic reward", "mean per step", "intrinsic", main=True),
    Metric("extrinsic_return", "Extrinsic return", "per episode", main=True),
    Metric("entropy", "Entropy of the policy", "nats", "entropy", main=True),
    Metric("episode_length", "Episode length", "steps", main=True),
    Metric(
        "positions", "Distinct positions", "visited since the run began", "positions", main=True
    ),
    Metric("episodes_cut", "Episodes cut by a lost simulator", "number", "cut"),
    Metric("policy_loss", "Policy-gradient loss", "summed over a sequence"),
    Metric("value_loss", "Value loss", "summed over a sequence"),
    Metric("prediction_loss", "Prediction error of RND", "summed over a sequence"),
    Metric("forward_loss", "Error of the forward model", "summed over a sequence"),
    Metric("inverse_loss", "Cross-entropy of the inverse model", "summed over a sequence"),
    Metric("divergence", "Divergence from the frozen policy", "nats"),
    Metric("importance_ratio", "Importance ratio of the actions", "mean"),
    Metric("policy_kl", "KL(policy that acted || policy)", "nats"),
    Metric("gradient_norm", "Gradient norm before clipping", "Euclidean norm"),
    Metric("step_norm", "Step of an update", "Euclidean norm"),
    Metric("count_overflow", "Visits that found no room in count tables", "number"),
    Metric("episodes", "Episodes that ended", "number per iteration"),
    Metric("levels_replayed", "Levels played twice", "share of levels"),
)
BY_NAME = {metric.name: metric for metric in METRICS}
MAIN = tuple(metric.name for metric in METRICS if metric.main)
SHOWN = {metric.name: metric.short for metric in METRICS if metric.short is not None}
HIDDEN = ("first_bad_update",)  # for the host only; not drawn


def episodes_of(name: str) -> str:
    """Return the metric with the number of episodes behind a mean ('' for other metrics)."""
    from envs.types import EPISODE_METRICS  # imported here: it takes seconds

    metric, slash, world = name.partition("/")
    return f"episodes{slash}{world}" if metric in EPISODE_METRICS else ""


def of(name: str) -> Metric:
    """Return a metric, with defaults for one without a line."""
    return BY_NAME.get(name) or Metric(name, name.replace("_", " ").capitalize(), "value")
