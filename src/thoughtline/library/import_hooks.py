"""Calls functions once a module has been imported: at once if it already is, or else on import."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import TypeAlias

WhenImported: TypeAlias = Callable[[ModuleType], None]


class ImportHook(MetaPathFinder):
    """Calls `then` with each module of these names."""

    def __init__(self, names: Sequence[str], then: WhenImported) -> None:
        self._names = names
        self._then = then
        self._looked_for: set[str] = set()

    def begin(self) -> None:
        """Start. Modules that another thread is importing now are missed: install before you start threads."""
        sys.meta_path.insert(0, self)
        for name in self._names:
            module = sys.modules.get(name)
            if module is not None:
                self._then(module)

    def end(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self._names or fullname in self._looked_for:
            return None
        self._looked_for.add(fullname)
        try:
            spec = find_spec(fullname)  # the same as without us
        finally:
            self._looked_for.discard(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._then)
        return spec


class _Loader(Loader):
    """Loads like the module's own loader, and restores that before any code of the module runs."""

    def __init__(self, loader: Loader, then: WhenImported) -> None:
        self._loader = loader
        self._then = then

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._then(module)
