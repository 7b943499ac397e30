"""The names that users import from the packages: all are there, and cost nothing until used."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGES = ("cbet_jax", "envs")
HEAVY = ("flax", "jax", "navix", "optax", "rich")


@pytest.mark.parametrize("name", PACKAGES)
def test_every_name_is_there_and_type_checkers_see_the_same(name):
    package = importlib.import_module(name)
    tree = ast.parse(Path(package.__file__).read_text())
    checked = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.name: node.module
        for node in checked.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert sorted(seen) == package.__all__
    for word, module in seen.items():
        assert getattr(package, word) is getattr(importlib.import_module(module), word)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        package.nothing  # noqa: B018


def test_importing_the_packages_imports_nothing_heavy():
    program = f"import sys, cbet_jax, envs; print(*(n for n in {HEAVY} if n in sys.modules))"
    command = [sys.executable, "-c", program]
    assert subprocess.check_output(command, text=True).split() == []
