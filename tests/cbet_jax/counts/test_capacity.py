"""How large count tables are."""

import pytest

from cbet_jax.config import CountSettings, TrainSettings
from cbet_jax.counts.capacity import table_capacity

PAPER = {"frames": 50_000_000, "worlds": 40}  # 1,250,000 steps of each actor


@pytest.mark.parametrize(
    ("shared", "lasting", "slots"),
    [
        (False, False, 2**14),
        (True, False, 2**20),  # 40 x 2^14, rounded up
        (False, True, 2**21),
        (True, True, 2**26),
    ],
)
def test_tables_have_room_for_what_is_counted(shared, lasting, slots):
    settings = TrainSettings(**PAPER, counts=CountSettings(shared=shared))
    assert table_capacity(settings, lasting=lasting) == slots


def test_lasting_tables_have_some_room_in_short_runs_too():
    assert table_capacity(TrainSettings(frames=1, worlds=4, batch=4), lasting=True) == 2**18


@pytest.mark.parametrize("lasting", [False, True])
def test_the_settings_can_say_how_large_tables_are(lasting):
    settings = TrainSettings(counts=CountSettings(capacity=64, shared=True))
    assert table_capacity(settings, lasting=lasting) == 64
