"""What the doctor says of this machine."""

import subprocess
import sys

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from experiments import doctor
from experiments.common import habitat
from experiments.doctor import Attempt, DoctorOptions
from tests.support.refusal import refused


def failing() -> str:
    raise RuntimeError("it is missing; install it")


FINE, MISSING = Attempt(lambda: "all is well", "none"), Attempt(failing, "or leave it")


def test_the_embedded_simulator_renders_a_frame(tmp_path) -> None:
    (tmp_path / "raycast.png").write_text("mine")
    assert "embree" in doctor.render("raycast", DoctorOptions(out=tmp_path))
    picture = np.asarray(Image.open(tmp_path / "raycast-2.png"))
    assert picture.shape == (64, 5 * 64, 3)
    assert picture.std() > doctor.FLAT_DEVIATION


def test_a_simulator_that_dies_while_it_renders_is_said_to(monkeypatch) -> None:
    monkeypatch.setattr(doctor.WorkerPool, "ask", lambda workers, requests: [None])
    with pytest.raises(RuntimeError, match="died while it rendered"):
        doctor.render("raycast", DoctorOptions())


def test_a_simulator_that_is_missing_comes_with_its_installation(monkeypatch, capsys) -> None:
    monkeypatch.delenv(habitat.PYTHON, raising=False)
    tried = doctor.attempts(DoctorOptions(simulator_python=sys.executable))
    assert doctor.diagnose({"habitat_sim": tried["habitat_sim"]}, Console(width=300))
    shown = capsys.readouterr().out
    assert "does not" in shown
    assert "No module named 'habitat_sim'" in shown
    assert "conda create" in shown
    assert "--simulator-python" in shown


def test_no_interpreter_helps_the_embedded_simulator(capsys) -> None:
    tried = doctor.attempts(DoctorOptions(scene="/nowhere/room.glb"))
    doctor.diagnose({"raycast": tried["raycast"]}, Console(width=300))
    shown = capsys.readouterr().out
    assert "there is no scene" in shown
    assert "--simulator-python" not in shown
    assert shown.count("\n") == 1


def test_only_missing_basics_are_a_failure(monkeypatch, capsys) -> None:
    monkeypatch.setattr(doctor, "attempts", lambda _: {"jax": FINE, "ffmpeg": MISSING})
    doctor.main([])
    shown = capsys.readouterr().out
    assert "all is well" in shown
    assert "ffmpeg: install it; or leave it" in shown
    monkeypatch.setattr(doctor, "attempts", lambda _: {"jax": MISSING._replace(basic=True)})
    with pytest.raises(SystemExit) as stop:
        doctor.main([])
    assert stop.value.code == doctor.BROKEN
    assert "cannot" in refused(doctor.main, ["--out", "/proc/frames"], capsys, status=3)


def test_a_scene_that_is_not_there_is_refused_and_an_axis_needs_one(capsys) -> None:
    assert "there is no scene" in refused(doctor.main, ["--scene", "nosuch"], capsys)
    assert "--up is for --scene" in refused(doctor.main, ["--up", "y"], capsys)


def test_an_interpreter_that_does_not_start_is_said_to_be_none(tmp_path, capsys) -> None:
    """In the simulator's own line, not as a file that cannot be read."""
    tried = doctor.attempts(DoctorOptions(simulator_python=str(tmp_path / "none")))
    doctor.diagnose({"habitat_sim": tried["habitat_sim"]}, Console(width=300))
    shown = capsys.readouterr().out
    assert "cannot be started as an interpreter" in shown
    assert "--simulator-python" in shown


def test_what_is_installed_is_not_to_be_installed(capsys) -> None:
    def failing() -> str:
        raise RuntimeError("Unable to initialize backend 'cuda'")

    doctor.diagnose({"jax": Attempt(failing, "install jax")}, Console(width=300))
    shown = capsys.readouterr().out
    assert "cannot be used" in shown
    assert "install jax" not in shown


@pytest.mark.slow
def test_the_basics_work_here() -> None:
    command = [sys.executable, "-m", "experiments.doctor"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert ended.returncode == 0, ended.stderr
    for name in ("jax", "navix", "ffmpeg", "raycast"):
        assert f"{name} " in ended.stdout
