"""Python's own built-in functions, for programs that replace some."""

from __future__ import annotations

import builtins

_NAMES = vars(builtins)
_ORIGINAL = _NAMES.copy()
_MISSING = object()


class OriginalBuiltins:
    """Lets the profiler call functions of Python that the program has replaced or removed.

    The program finds its own again afterwards. Its other threads should not run meanwhile, so this
    is for the end of a process.

    Examples
    --------
    >>> kept, builtins.open = open, None
    >>> with OriginalBuiltins():
    ...     open is kept
    True
    >>> open is None
    True
    >>> builtins.open = kept
    """

    # These methods call no built-in function.

    def __enter__(self) -> None:
        self._before = _NAMES.copy()
        for name, value in _ORIGINAL.items():
            if self._before.get(name, _MISSING) is not value:
                _NAMES[name] = value

    def __exit__(self, *_: object) -> None:
        for name, value in _ORIGINAL.items():
            before = self._before.get(name, _MISSING)
            if before is _MISSING:
                del _NAMES[name]
            elif before is not value:
                _NAMES[name] = before
