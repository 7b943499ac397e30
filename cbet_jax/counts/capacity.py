"""How many slots a count table has."""

from cbet_jax.config import TrainSettings

RESET_SLOTS = 2**14  # of a table that is reset now and then
LASTING_SLOTS = 2**18  # of a table that is never reset, at least
MAX_SLOTS = 2**26  # of any table, unless the settings ask for more


def table_capacity(settings: TrainSettings, *, lasting: bool) -> int:
    """Return the number of slots of a count table, a power of two.

    A learned policy may meet something new at two of three steps, and a table overflows little
    until it is two thirds full. So a table that is never reset gets a slot for every step.

    Args:
        settings: of the run. `counts.capacity`, if set, is the answer.
        lasting: whether the table is never reset.
    """
    if settings.counts.capacity is not None:
        return settings.counts.capacity
    steps = -(-settings.frames // settings.worlds)  # of each actor
    slots = max(LASTING_SLOTS, steps) if lasting else RESET_SLOTS
    if settings.counts.shared:
        slots *= settings.worlds
    return min(1 << (slots - 1).bit_length(), MAX_SLOTS)
