"""Hosts that are to train together: what is read of the environment."""

import pytest

from cbet_jax.config import SettingsError
from cbet_jax.runs import multihost


@pytest.mark.parametrize("address", ["localhost", "localhost:", "localhost:x", "host:0", "h:65536"])
def test_an_address_without_a_port_is_refused(address, monkeypatch):
    monkeypatch.setenv(multihost.ADDRESS, address)
    with pytest.raises(SettingsError, match="must be host:port"):
        multihost.join()
