"""The markers that instrumented code calls, by name, and their installation in a namespace."""

from __future__ import annotations

import builtins
from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from epprof_nb import _native
from epprof_nb.recording.statements import torch_dynamo

if TYPE_CHECKING:
    from collections.abc import Callable

# Names ending in two underscores are not mangled inside classes.
LINE = "__epprof_line__"
BACK = "__epprof_back__"
BODY = "__epprof_body__"
FRAME_BODY = "__epprof_frame_body__"
YIELD_BODY = "__epprof_yield_body__"
SUSPEND = "__epprof_suspend__"
RESUME = "__epprof_resume__"


class _Markers(_native.Markers):
    """The markers as methods of an object that is pickled as functions without effect.

    Functions of a cell that are pickled by value (with cloudpickle, by Dask, Ray or joblib) include
    the markers. In the receiving process, keys of statements have no meaning, and this package may
    be missing.
    """

    __slots__ = ()

    def __reduce__(self) -> str | tuple[Any, ...]:
        same = partial(cast, None)  # returns its argument
        nothing = SimpleNamespace(
            line=bool, back=bool, body=nullcontext, frame_body=nullcontext, yield_body=nullcontext,
            suspend=same, resume=same,
        )  # fmt: skip
        return nothing.__reduce__()


_markers = _Markers()
MARKERS: dict[str, Callable[[Any], object]] = {
    LINE: _markers.line,
    BACK: _markers.back,
    BODY: _markers.body,
    FRAME_BODY: _markers.frame_body,
    YIELD_BODY: _markers.yield_body,
    SUSPEND: _markers.suspend,
    RESUME: _markers.resume,
}


def install_markers(namespace: dict[str, object]) -> None:
    """Define the markers for code that runs in `namespace`.

    They are added to the namespace, so that functions pickled by value include them, and to
    ``builtins``, so that functions still work after a ``%reset`` of the namespace.
    """
    for name, marker in MARKERS.items():
        namespace[name] = marker
        setattr(builtins, name, marker)
    torch_dynamo.register_markers(
        calls=(MARKERS[LINE], MARKERS[BACK]),
        bodies=(MARKERS[BODY], MARKERS[FRAME_BODY], MARKERS[YIELD_BODY]),
        same=(MARKERS[SUSPEND], MARKERS[RESUME]),
    )
