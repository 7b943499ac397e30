"""How long a run takes, said before it begins."""

from dataclasses import replace

import jax

from cbet_jax.config import Factors, NetworkSettings, RunSettings
from cbet_jax.intrinsic import COUNT_REWARDS
from cbet_jax.program import Program
from cbet_jax.runs.host_loop import LONG_SECONDS
from experiments.common.presets import PRESETS

# Frames a second of C-BET on two CPU cores (README, "Speed"), by preset and factors.
MEASURED: dict[tuple[str, Factors], int] = {
    ("laptop", "float32"): 53_400,
    ("paper", "float32"): 1_093,
    ("paper", "bfloat16"): 1_780,
}
LAPTOP = "; --preset laptop trains a smaller network in about nine minutes"


def before(settings: RunSettings, program: Program) -> list[str]:
    """Return what to know before a run: frames that are rounded up, and hours, if it takes any."""
    frames = settings.train.frames
    chunk = program.iterations_per_chunk * program.frames_per_iteration
    rounded = -(-frames // chunk) * chunk
    lines = []
    if rounded != frames:
        lines.append(f"{frames:,} frames are rounded up to {rounded:,}: whole chunks of {chunk:,}")
    seconds = expected_seconds(settings)
    if seconds and seconds > LONG_SECONDS:
        lines.append(
            f"this takes about {seconds / 3600:.1f} hours on two CPU cores{advice(settings)}"
        )
    return lines


def expected_seconds(settings: RunSettings) -> float | None:
    """Return how long a run takes on two CPU cores, None where that was not measured."""
    if settings.habitat or settings.transfer or jax.default_backend() != "cpu":
        return None
    if settings.train.method not in COUNT_REWARDS:  # rates of other methods were not measured
        return None
    network = settings.train.network
    for (preset, factors), rate in MEASURED.items():
        if replace(_network(preset), factors=factors) == network:
            return settings.train.frames * settings.seeds / rate
    return None


def advice(settings: RunSettings) -> str:
    """Return what a shorter way would be, where there is one."""
    is_small = (
        settings.habitat or settings.train.network.lstm_units <= _network("laptop").lstm_units
    )
    return "" if is_small else LAPTOP


def _network(preset: str) -> NetworkSettings:
    return PRESETS[preset].train.network
