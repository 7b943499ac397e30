"""A run in Habitat that is small enough for tests."""

CHUNK_FRAMES = 2 * 2 * 5  # iterations x worlds x steps
TINY = (
    *("--preset", "smoke", "--chunk", "2", "--worlds", "2", "--batch", "2", "--unroll", "5"),
    *("--max-steps", "7", "--counts.capacity", "256", "--network.channels", "2"),
    *("--network.dense-units", "8", "--network.lstm-units", "8", "--checkpoint-seconds", "0"),
)
