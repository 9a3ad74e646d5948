"""Libraries with whose import a child process begins to record, or to listen for cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epprof_nb.util.after_import import after_import

if TYPE_CHECKING:
    from collections.abc import Callable

LISTENED_FROM = ("torch", "cupy", "onnxruntime", "jax", "numba.cuda", "epprof_nb.host")
"""Modules with which a running child begins to listen, among them the embedded host device."""

RECORDED_FROM = (
    "numpy", "torch", "cupy", "jax", "jaxlib", "onnxruntime", "tensorflow", "tensorrt", "triton",
    "numba", "cuda", "pycuda", "warp", "paddle", "llama_cpp",
)  # fmt: skip
"""Modules with which a child begins to record: others do no work worth the start of a session."""

OWN_MODULES = tuple(
    f"epprof_nb.{name}"
    for name in ("ep", "host", "onnxruntime", "profiles", "recording.ranges.ranges", "testing")
)
"""Modules of the package with which a child begins to record, too; they import NumPy."""


def after_gpu_library(function: Callable[[], None]) -> None:
    """Call a function once a GPU library is imported: now, or after the first import of one.

    It may be called again for further libraries.
    """
    for name in LISTENED_FROM:
        after_import(name, function)
