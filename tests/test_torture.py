"""The campaign of faults from outside."""

import subprocess
import sys

import pytest


@pytest.mark.slow
def test_no_fault_from_outside_is_lost_or_silent():
    """Over half an hour on two cores."""
    campaign = [sys.executable, "-m", "tests.torture"]
    done = subprocess.run(campaign, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
