"""What the system refuses is one line."""

import errno
import os

import pytest

from experiments.common.refusals import BAD_INPUT, NOT_WRITTEN, refusal


def os_error(number: int) -> OSError:
    return OSError(number, os.strerror(number), "/runs/x")


@pytest.mark.parametrize(
    ("error", "line", "status"),
    [
        (os_error(errno.ENOSPC), "cannot write /runs/x: No space left on device", NOT_WRITTEN),
        (os_error(errno.EROFS), "cannot write /runs/x: Read-only file system", NOT_WRITTEN),
        (os_error(errno.EACCES), "cannot read or write /runs/x: Permission denied", NOT_WRITTEN),
        (os_error(errno.ELOOP), "cannot read or write /runs/x: it is a link", NOT_WRITTEN),
        (MemoryError(), "it takes more memory than there is", BAD_INPUT),
        (RuntimeError("RESOURCE_EXHAUSTED: Out of memory\nmore"), "than there is (Out", BAD_INPUT),
        (RuntimeError("Unable to initialize backend 'cuda': no"), "'cuda': no", BAD_INPUT),
        (RuntimeError("Unknown backend foo. Available"), "JAX_PLATFORM", BAD_INPUT),
    ],
)
def test_it_is_one_line(error, line, status):
    found = refusal(error)
    assert found is not None
    assert line in found.line
    assert "\n" not in found.line
    assert found.status == status


def test_a_platform_without_its_plugin_is_one_line(monkeypatch):
    def assertion():
        raise AssertionError

    assert refusal(AssertionError()) is None
    monkeypatch.setenv("JAX_PLATFORMS", "cuda")
    monkeypatch.setattr("jax.devices", assertion)
    found = refusal(AssertionError())
    assert found is not None
    assert found.line.startswith("JAX_PLATFORMS=cuda cannot be used: JAX has no device")
    assert found.status == BAD_INPUT


def test_the_cause_is_asked_and_advice_follows():
    error, cause = RuntimeError("saving failed"), os_error(errno.EDQUOT)
    cause.add_note("name another folder")
    error.__cause__ = cause
    found = refusal(error)
    assert found is not None
    assert "quota" in found.line
    assert found.line.endswith("; name another folder")


@pytest.mark.parametrize("error", [ValueError("x"), ZeroDivisionError(), OSError("z")])
def test_all_else_is_not_its_business(error):
    assert refusal(error) is None
