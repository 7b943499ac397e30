"""Register our environments with navix, without importing navix.

navix takes seconds to import, and most programs that use these worlds do not need it. Our
environments therefore join navix's registry right after other code imports navix, or at once
if it is already imported.
"""

import importlib
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any


def register_with_navix() -> None:
    """Register our environments with navix now, or right after it is imported."""
    if "navix" in sys.modules:
        importlib.import_module("envs.minigrid.navix_environment")
    elif not any(isinstance(finder, _AfterNavix) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AfterNavix())


class _AfterNavix(MetaPathFinder):
    """Find navix where Python would, and register our environments after it is imported."""

    def find_spec(
        self, fullname: str, path: Any, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "navix":
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and spec.loader is not None:
            spec.loader = _ThenRegister(spec.loader)
        return spec


class _ThenRegister(Loader):
    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # Give the module its own loader back: inspect and pytest read `__loader__`.
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        sys.meta_path[:] = [each for each in sys.meta_path if not isinstance(each, _AfterNavix)]
        importlib.import_module("envs.minigrid.navix_environment")
