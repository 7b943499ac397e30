"""The table of metrics names what the training program reports."""

import jax
import pytest

from cbet_jax.config import AuxiliarySettings, CountSettings, TrainSettings
from cbet_jax.program import make_program, seed_keys
from cbet_jax.runs import metrics
from tests.support.tiny import NETWORK
from tests.support.worlds import corridor

SMALL = TrainSettings(
    frames=40,
    worlds=4,
    batch=4,
    unroll=5,
    network=NETWORK,
    counts=CountSettings(capacity=16),
    auxiliary=AuxiliarySettings((4,), 8),
)


@pytest.mark.parametrize("method", ["cbet", "rnd", "curiosity"])
def test_every_metric_has_a_title_or_is_hidden(method):
    settings = TrainSettings(**{**vars(SMALL), "method": method})
    program = make_program(settings, corridor(4), seeds=1, iterations_per_chunk=1)
    _, reported = jax.eval_shape(program.advance, jax.eval_shape(program.init, seed_keys(1)))
    names = {name.partition("/")[0] for name in reported}
    assert "interactions" in names
    assert names <= {*metrics.BY_NAME, *metrics.HIDDEN}


def test_a_metric_without_a_line_is_drawn_under_its_name():
    assert metrics.of("mean_time").title == "Mean time"
    assert metrics.of("success").title == "Episodes with success"
