"""Worlds and rewards with other versions of Python and jax, in fresh environments.

`uv python find` must know a Python, or its tests are skipped.
"""

import shutil

import pytest

from tests.support.fresh_environment import CLEAN, ROOT, environment, output

pytestmark = pytest.mark.slow
VERSIONS = [
    ("3.12", "jax==0.6.0"),
    ("3.13", "jax==0.12.0.1"),
    ("3.14", "jax==0.12.0.1"),
    ("3.12", "gymnax==1.0.1"),
]
TESTS = (
    *("cbet_jax/other_learners/test_bonus.py", "cbet_jax/other_learners/test_intrinsic_reward.py"),
    *("envs/minigrid/test_rules.py", "envs/minigrid/test_gymnax_environment.py"),
)


@pytest.mark.parametrize(("python", "package"), VERSIONS)
def test_they_pass_their_tests(tmp_path, monkeypatch, python, package):
    tools = "beartype", "minigrid==3.2.0", "pytest", "pytest-xdist"
    programs = environment(tmp_path, python, ROOT, package, *tools)
    shutil.copytree(ROOT / "tests", tmp_path / "tests")  # beside no package
    monkeypatch.setitem(CLEAN, "XLA_FLAGS", "--xla_backend_optimization_level=0")
    run = "-m", "pytest", "-q", "-n0", "--noconftest", f"--config-file={ROOT / 'pyproject.toml'}"
    tests = [tmp_path / "tests" / name for name in TESTS]
    said = output(programs / "python", *run, f"--rootdir={tmp_path}", *tests, folder=tmp_path)
    assert " passed" in said
    assert "failed" not in said
    where = output(programs / "python", "-c", "import envs; print(envs.__file__)", folder=tmp_path)
    assert where.startswith(str(tmp_path / "env"))
