"""Callbacks for modules that other code imports."""

from __future__ import annotations

import sys
from contextlib import suppress
from threading import get_ident
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
    spec = getattr(module, "__spec__", None)  # stand-ins of tests may have none
    if module is not None and not getattr(spec, "_initializing", False):
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
    """Import hook that calls a function at the end of the first successful import of a module."""

    def __init__(
        self, name: str, function: Callable[[], None], before: Callable[[], None] | None
    ) -> None:
        self.name = name
        self.function: Callable[[], None] | None = function
        self.before = before
        self._asking: set[int] = set()
        """Threads on which it asks other finders, which may ask all finders in turn."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        thread = get_ident()
        if name != self.name or thread in self._asking:
            return None
        # It stays: a program may only look whether the module exists, or import it in vain.
        finders = list(sys.meta_path)
        later = finders[finders.index(self) + 1 :] if self in finders else ()
        self._asking.add(thread)
        try:
            # The finders before this one have found nothing. Some others may be of this class.
            found = (f.find_spec(name, path, target) for f in later if hasattr(f, "find_spec"))
            spec = next((spec for spec in found if spec is not None), None)
        finally:
            self._asking.discard(thread)
        if spec is not None and hasattr(spec.loader, "__dict__"):
            self._extend(spec.loader)
        return spec

    def _extend(self, loader: Any) -> None:  # noqa: ANN401
        """Replace a method of a loader, which otherwise stays what other code expects."""
        execute = getattr(loader, "exec_module", None)
        if execute is None or isinstance(loader, type):  # no file of Python, as of all we wait for
            return

        def exec_module(module: ModuleType) -> None:
            function = self.function
            if function is None or module.__name__ != self.name:  # a loader of several modules
                execute(module)
                return
            vars(loader).pop("exec_module", None)
            if self.before is not None:
                self.before()
            execute(module)
            if self.function is not None:  # not cancelled meanwhile
                self.function = None
                with suppress(ValueError):  # the program has removed it
                    sys.meta_path.remove(self)
                function()

        loader.exec_module = exec_module
