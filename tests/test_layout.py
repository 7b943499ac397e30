"""The rules of place: which package imports which, and what stands where."""

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NOT_FOR = {  # what the files of a folder may not import
    "envs": ("cbet_jax", "experiments", "tests"),
    "cbet_jax": ("experiments", "tests"),
    "experiments": ("tests",),
}
ENVS_FOR_THE_ALGORITHM = {"envs.types", "envs.errors", "envs.hashing", "envs.barrier"}
ONLY_IN = {
    "navix": ("envs/minigrid", "experiments/benchmarks"),  # which compare with its own worlds
    "habitat_sim": ("envs/habitat/habitat_sim",),
}
MOST_FILES = {"cbet_jax": 13, "experiments": 26}


def modules(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    """Yield the modules that a file imports anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


@pytest.mark.parametrize("folder", NOT_FOR)
def test_packages_import_one_way(folder):
    for path in modules(folder):
        for module in imported(path):
            assert module.split(".")[0] not in NOT_FOR[folder], f"{path} imports {module}"


def test_the_algorithm_imports_no_world():
    for path in modules("cbet_jax"):
        found = {module for module in imported(path) if module.split(".")[0] == "envs"}
        assert found <= ENVS_FOR_THE_ALGORITHM, path


@pytest.mark.parametrize("name", ONLY_IN)
def test_simulators_are_imported_in_their_folders_only(name):
    for folder in NOT_FOR:
        for path in modules(folder):
            if not any(path.is_relative_to(ROOT / place) for place in ONLY_IN[name]):
                assert name not in {module.split(".")[0] for module in imported(path)}, path


def test_a_file_of_experiments_is_a_command():
    for path in (ROOT / "experiments").glob("[!_]*.py"):
        assert callable(import_module(f"experiments.{path.stem}").main)
        assert 'if __name__ == "__main__":' in path.read_text(), path


@pytest.mark.parametrize("folder", MOST_FILES)
def test_the_top_of_a_package_is_short(folder):
    assert len(list((ROOT / folder).glob("[!_]*.py"))) <= MOST_FILES[folder]


def test_tests_are_where_what_they_test_does():
    for path in (ROOT / "tests").glob("*/**/test_*.py"):
        folder = path.parent.relative_to(ROOT / "tests")
        assert (ROOT / folder).is_dir() or folder.parts[-1] == "solving", path


def test_no_test_file_lends_anything():
    for path in modules("tests"):
        for module in imported(path):
            assert not module.split(".")[-1].startswith("test_"), f"{path} imports {module}"
