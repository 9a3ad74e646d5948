"""Callbacks for modules that other code imports."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


def after_import(
    name: str, function: Callable[[], None], *, before: Callable[[], None] | None = None
) -> None:
    """Call a function now if a module is imported, else after its first import.

    Parameters
    ----------
    name
        Full name of the module.
    function
        The function. Exceptions that it raises reach the code that imports the module.
    before
        A function to call when the import begins, if the module is not imported yet.
    """
    module = sys.modules.get(name)
    # `sys.modules` also contains modules that are still being imported.
    if module is not None and not getattr(module.__spec__, "_initializing", False):
        function()
    else:
        sys.meta_path.insert(0, _Finder(name, function, before))


def cancel(name: str, function: Callable[[], None]) -> None:
    """Undo `after_import`; does nothing if the function has been called."""
    for finder in list(sys.meta_path):
        if isinstance(finder, _Finder) and (finder.name, finder.function) == (name, function):
            finder.function = None
            sys.meta_path.remove(finder)


class _Finder:
    """Import hook that calls a function at the end of the import of one module."""

    def __init__(
        self, name: str, function: Callable[[], None], before: Callable[[], None] | None
    ) -> None:
        self.name = name
        self.function: Callable[[], None] | None = function
        self.before = before
        self.loader: Any = None

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        # The other finders; some may be of this class.
        found = (finder.find_spec(name, path, target) for finder in list(sys.meta_path))
        spec = next((spec for spec in found if spec is not None), None)
        if spec is not None and spec.loader is not None:
            self.loader, spec.loader = spec.loader, self  # type: ignore[assignment]
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self.loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self.loader
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        if self.before is not None and self.function is not None:
            self.before()
        self.loader.exec_module(module)
        if self.function is not None:
            self.function()
