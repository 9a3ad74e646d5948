"""Pauses of Python's garbage collector, recorded as ops."""

from __future__ import annotations

import gc
from contextlib import suppress
from functools import cache

from epprof_nb import _native
from epprof_nb.recording.frameworks.framework_ops import kind_id


@cache
def _register() -> None:
    name = _native.intern("garbage collection")
    young, full = (kind_id("gc", "python", generations=numbers) for numbers in ([0, 1], [2]))
    _native.set_collection_ops(name, young, full)


def start() -> None:
    """Record the pauses from now on."""
    _register()
    if _native.on_collection not in gc.callbacks:
        gc.callbacks.append(_native.on_collection)


def stop() -> None:
    """Stop recording pauses."""
    with suppress(ValueError):  # other code has cleared the list
        gc.callbacks.remove(_native.on_collection)
