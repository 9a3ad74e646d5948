"""Libraries whose import shows that a process may use a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epprof_nb.util.after_import import after_import

if TYPE_CHECKING:
    from collections.abc import Callable

LIBRARIES = ("torch", "cupy", "onnxruntime", "jax", "numba.cuda", "epprof_nb.host")
"""Modules, among them the embedded host device."""


def after_gpu_library(function: Callable[[], None]) -> None:
    """Call a function once a GPU library is imported: now, or after the first import of one.

    It may be called again for further libraries.
    """
    for name in LIBRARIES:
        after_import(name, function)
