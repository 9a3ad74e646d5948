"""Replaced functions of frameworks, restored when recording stops."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.recording.frameworks.framework_ops import CALL, kind_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


_INHERITED = object()
"""Stands for what a class has from another one."""


class Switch:
    """Whether the replacements of a framework's functions record.

    Attributes
    ----------
    on
        True from the start of a recording to its end. False in a forked child, which records
        nothing.
    """

    __slots__ = ("on",)

    def __init__(self) -> None:
        self.on = True


class Patches:
    """Attributes of classes, modules and cells of closures that are replaced while recording.

    Other code may also replace them meanwhile. Its function then stays and probably calls ours,
    which must only call the original.

    A class may store something else than what its attribute returns: a function of an extension
    in an ``instancemethod``, without which it would not get the instance. That is put back.
    """

    def __init__(self) -> None:
        self._replaced: list[tuple[Any, str, Any, Any, Any]] = []

    def __bool__(self) -> bool:
        """Whether anything is replaced."""
        return bool(self._replaced)

    def replace(self, owner: Any, name: str, wrap: Callable[[Any], Any]) -> None:  # noqa: ANN401
        """Replace an attribute by ``wrap(attribute)``, and copy its name and documentation."""
        original = getattr(owner, name)
        ours = wrap(original)
        for attribute in ("__module__", "__name__", "__qualname__", "__doc__"):
            value = getattr(original, attribute, None)
            if isinstance(value, str):  # functions of extensions may have anything there
                setattr(ours, attribute, value)
        stored = getattr(owner, "__dict__", {name: original}).get(name, _INHERITED)
        self._replaced.append((owner, name, original, ours, stored))
        setattr(owner, name, ours)

    def suspend(self) -> None:
        """Restore the originals until `resume`, except where others have replaced ours."""
        for owner, name, _, ours, stored in reversed(self._replaced):
            if getattr(owner, name, None) is not ours:
                continue
            if stored is _INHERITED:
                delattr(owner, name)
            else:
                setattr(owner, name, stored)

    def resume(self) -> None:
        """End `suspend`, except where others have replaced the originals."""
        for owner, name, original, ours, _ in self._replaced:
            if getattr(owner, name, None) is original:
                setattr(owner, name, ours)

    def restore(self) -> None:
        """Restore the originals permanently, except where others have replaced ours."""
        self.suspend()
        self._replaced.clear()


def missing_functions(package: str, needed: Iterable[str]) -> list[str]:
    """Return the functions that recording needs but an imported package lacks.

    Parameters
    ----------
    package
        Name of the package.
    needed
        Names of the functions, below the package.

    Examples
    --------
    >>> import json
    >>> missing_functions("json", ["dumps", "decoder.JSONDecoder", "decoder.fast"])
    ['json.decoder.fast']
    """
    missing = []
    for path in needed:
        found: Any = sys.modules[package]
        for part in path.split("."):
            found = getattr(found, part, None)
        if found is None:
            missing.append(f"{package}.{path}")
    return missing


def recorded_function(
    original: Callable[..., Any], name: str, op_type: str, source: str, is_off: Callable[[], bool]
) -> Callable[..., Any]:
    """Wrap a function so that its calls are ops, except while ``is_off()``."""
    name_id, kind = _native.intern(name), kind_id(op_type, source)

    def recorded(*args: Any, **kwargs: Any) -> object:
        if is_off():
            return original(*args, **kwargs)
        op_id = _native.push(name_id, CALL, kind)
        try:
            return original(*args, **kwargs)
        finally:
            _native.pop(op_id)

    return recorded
