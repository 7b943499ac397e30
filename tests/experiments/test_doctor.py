"""What the doctor says of this machine."""

import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from experiments import doctor
from experiments.common import habitat
from experiments.doctor import Check, DoctorOptions
from tests.support.refusal import refused

WORKS = Check("jax", True, "all is well", basic=True)


@pytest.fixture
def found(monkeypatch):
    """Replace what is tried."""

    def replace(*checks: Check) -> None:
        tried = {check.name: lambda check=check: check for check in checks}
        monkeypatch.setattr(doctor, "attempts", lambda options: tried)

    return replace


def test_the_embedded_simulator_renders_a_frame(tmp_path) -> None:
    check = doctor.try_simulator("raycast", DoctorOptions(out=tmp_path))
    assert check.works
    assert "embree" in check.found
    picture = np.asarray(Image.open(tmp_path / "raycast.png"))
    assert picture.shape == (64, 5 * 64, 3)
    assert picture.std() > doctor.FLAT_DEVIATION


def test_a_simulator_that_is_missing_comes_with_its_installation(monkeypatch) -> None:
    monkeypatch.delenv(habitat.PYTHON, raising=False)
    check = doctor.try_simulator("habitat_sim", DoctorOptions(simulator_python=sys.executable))
    assert not check.works
    assert "No module named 'habitat_sim'" in check.found
    assert "conda create" in check.fix
    assert "--simulator-python" in check.fix


@pytest.mark.parametrize(
    ("there", "cmake", "expected"),
    [
        (("conda",), None, ("possible", "possible", "no git, no c++, no cmake below 4")),
        (("git", "c++", "cmake"), "3.25.1", ("no conda", "no conda", "possible")),
        (("git", "c++", "cmake"), "4.1.0", ("no conda", "no conda", "no cmake below 4")),
    ],
)
def test_says_which_ways_to_habitat_sim_there_are(monkeypatch, there, cmake, expected) -> None:
    monkeypatch.setattr(doctor.shutil, "which", lambda name: name if name in there else None)
    said = subprocess.CompletedProcess([], 0, stdout=f"cmake version {cmake}\n")
    monkeypatch.setattr(doctor.subprocess, "run", lambda *_, **__: said)
    monkeypatch.setattr(doctor, "find_library", lambda name: f"lib{name}.so.1")
    check = doctor.find_ways()
    assert check.works == ("possible" in expected)
    assert tuple(way.partition(": ")[2] for way in check.found.split("; ")) == expected
    monkeypatch.setattr(doctor, "find_library", lambda name: None)
    assert not doctor.find_ways().works
    assert "libegl1" in doctor.find_ways().fix


def test_what_can_be_missing_is_no_failure(found, capsys) -> None:
    found(WORKS, Check("habitat_sim", False, "is missing", "install it"))
    doctor.main([])
    shown = capsys.readouterr().out
    assert "all is well" in shown
    assert "works" in shown
    assert "does not" in shown
    assert "[green]" not in shown
    assert "[/]" not in shown
    assert "habitat_sim: install it" in shown


def test_missing_basics_are_a_failure(found) -> None:
    found(WORKS, Check("navix", False, "is missing", "install it", basic=True))
    with pytest.raises(SystemExit) as stop:
        doctor.main([])
    assert stop.value.code == doctor.BROKEN


def test_no_frame_is_written_over(found, capsys, tmp_path) -> None:
    found(WORKS)
    (tmp_path / "raycast.png").write_text("mine")
    assert "already exists" in refused(doctor.main, ["--out", str(tmp_path)], capsys)
    error = refused(doctor.main, ["--out", "/proc/frames"], capsys, status=3)
    assert "cannot read or write /proc/frames: No such file" in error


def test_a_platform_without_its_plugin_is_a_row(monkeypatch, capsys) -> None:
    def assertion() -> None:
        raise AssertionError

    monkeypatch.setenv("JAX_PLATFORMS", "cuda")
    monkeypatch.setattr(doctor.jax, "devices", assertion)
    monkeypatch.setattr(doctor, "attempts", lambda options: {"jax": doctor.try_jax})
    with pytest.raises(SystemExit) as stop:
        doctor.main([])
    assert stop.value.code == doctor.BROKEN
    assert "JAX_PLATFORMS=cuda cannot be used" in " ".join(capsys.readouterr().out.split())


@pytest.mark.slow
def test_the_basics_work_here() -> None:
    command = [sys.executable, "-m", "experiments.doctor"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert ended.returncode == 0, ended.stderr
    for name in ("jax", "navix", "ffmpeg", "raycast"):
        assert f"{name} " in ended.stdout
