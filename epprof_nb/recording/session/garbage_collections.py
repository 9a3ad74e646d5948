"""Pauses of Python's garbage collector, recorded as ops."""

from __future__ import annotations

import gc
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

from epprof_nb import _native
from epprof_nb.recording.frameworks.framework_ops import kind_id

if TYPE_CHECKING:
    from epprof_nb.core.options import Options
    from epprof_nb.data.table import Table

_NAME, _TYPE = "garbage collection", "gc"


@cache
def _register() -> None:
    name = _native.intern(_NAME)
    young, full = (kind_id(_TYPE, "python", generations=numbers) for numbers in ([0, 1], [2]))
    _native.set_collection_ops(name, young, full)


def start(options: Options) -> None:  # noqa: ARG001
    """Record the pauses from now on."""
    _register()
    if _native.on_collection not in gc.callbacks:
        gc.callbacks.append(_native.on_collection)


def stop() -> None:
    """Stop recording pauses."""
    with suppress(ValueError):  # other code has cleared the list
        gc.callbacks.remove(_native.on_collection)


def without_own(ops: Table, opened_ns: int, stopped_ns: int) -> Table:
    """Return the ops without the pauses of the profiler, while it prepared itself and stopped."""
    own = (ops["end_ns"] < opened_ns) | (ops["start_ns"] >= stopped_ns)
    own &= ops.names("op_type").equals(_TYPE)
    return ops.take(~own) if own.any() else ops
