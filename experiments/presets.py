"""The presets: complete settings under a name. Every field can be overridden."""

from cbet_jax.config import NetworkSettings, OptimizerSettings, TrainSettings
from cbet_jax.run_directory import RunSettings

PRESETS: dict[str, RunSettings] = {
    # The published code's values, which are the defaults of every field.
    "paper": RunSettings(),
    # The same algorithm with a network that learns within minutes on two CPU cores.
    "laptop": RunSettings(
        train=TrainSettings(
            frames=9_000_000,
            worlds=64,
            batch=32,
            network=NetworkSettings(dense_layers=2, dense_units=256, lstm_layers=1, lstm_units=256),
            optimizer=OptimizerSettings(learning_rate=3e-4),
        ),
        chunk=15,
    ),
    # Everything once, in less than a minute: shows that it runs, learns nothing.
    "smoke": RunSettings(
        train=TrainSettings(
            frames=8_000,
            worlds=8,
            batch=8,
            unroll=20,
            network=NetworkSettings(
                channels=8, dense_layers=1, dense_units=32, lstm_layers=1, lstm_units=32
            ),
        ),
        chunk=10,
    ),
}
DEFAULT = "paper"
