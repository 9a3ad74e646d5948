"""Modules of the standard library of which a program has its own: neither gets the other's.

A program may have a file ``statistics.py`` beside its script. Python imports it, unless the
standard module of this name is imported already. The profiler imports many before the program.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import contextmanager
from importlib.machinery import FrozenImporter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

_FIRST = ("encodings",)
"""Modules of files that Python imports before it knows the folder of a program."""

_STANDARD = os.path.dirname(os.path.realpath(os.__file__))  # noqa: PTH120
_folders: list[str] = []
"""Folders of the program that have such modules."""
_names: set[str] = set()
_own: dict[str, ModuleType] = {}
"""Modules that the profiler has imported under these names."""
_lock = threading.RLock()


def leave_to_program(folder: str) -> None:
    """Let a program import the modules in its folder, though the profiler has imported others.

    Parameters
    ----------
    folder
        The first entry of ``sys.path`` of the program.
    """
    if os.path.realpath(folder) == _STANDARD:  # the program is a standard module
        return
    try:
        files = {name.partition(".")[0] for name in os.listdir(folder or ".")}  # noqa: PTH208
    except OSError:
        return
    names = {name for name in files & sys.stdlib_module_names if _can_replace(folder, name)}
    names -= _names
    if names:
        _folders.append(folder)
        _names.update(names)
        _own.update(_take(names))


def _can_replace(folder: str, name: str) -> bool:
    """Whether ``import name`` finds the module in a folder, if that is first in ``sys.path``."""
    if name in sys.builtin_module_names or name in _FIRST or FrozenImporter.find_spec(name):
        return False
    path = os.path.join(folder, name)  # noqa: PTH118
    return any(map(os.path.isfile, (f"{path}.py", os.path.join(path, "__init__.py"))))  # noqa: PTH118


def _take(names: set[str]) -> dict[str, ModuleType]:
    """Remove the modules of these names, and those in them, from ``sys.modules``."""
    found = [name for name in [*sys.modules] if name.partition(".")[0] in names]
    return {name: sys.modules.pop(name) for name in found}


@contextmanager
def own_imports() -> Iterator[None]:
    """Let the profiler, and libraries that it imports, import standard modules meanwhile.

    Examples
    --------
    >>> with own_imports():
    ...     import statistics
    >>> statistics.median([1, 2, 3])
    2
    """
    if not _names:
        yield
        return
    with _lock:
        of_program = _take(_names)
        sys.modules.update(_own)
        path = [*sys.path]
        # The entry "" is the working directory.
        sys.path[:] = [entry for entry in path if entry and entry not in _folders]
        try:
            yield
        finally:
            sys.path[:] = path
            _own.update(_take(_names))
            sys.modules.update(of_program)
