"""Episodes in a corridor, played once for all tests of watching."""

import pytest

from experiments.watching import film
from experiments.watching.playing import Moment, play
from tests.support.watched import KEY, TITLE, corridor, network_player, player


@pytest.fixture(scope="session")
def moments() -> list[Moment]:
    """Two episodes of chance in the corridor."""
    return list(play(corridor(explore=False), player(), KEY, 2))


@pytest.fixture(scope="session")
def explored() -> list[Moment]:
    """An episode of chance in the corridor that success does not end.

    A network plays it: the same program then plays the network that acts with its memory.
    """
    return list(play(corridor(explore=True), network_player(0.0), KEY, 1))


@pytest.fixture(scope="session")
def frames(moments) -> list[film.Picture]:
    """The first pictures of one player."""
    return list(film.film(TITLE, ["somebody"], [(moment,) for moment in moments[:5]]))
