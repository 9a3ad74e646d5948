"""Errors of kernels on CUDA devices that end a capture, explained."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from epprof_nb import _native
from epprof_nb.ep import cuda
from epprof_nb.util.code_place import place_of

if TYPE_CHECKING:
    from types import TracebackType

_LIBRARY = re.compile(r"calling (\w+) API during stream capture")
_REMEDIES = {"cuBLAS": "Multiply matrices with epprof_nb.ep.matmul, which can be captured. "}
_ARRAY_PACKAGES = ("cupy", "cupyx", "cupy_backends")


def report(error: BaseException) -> None:
    """End the capture of this thread if a kernel failed because of it; see `ep_report_violation`.

    Parameters
    ----------
    error
        The exception of the kernel.
    """
    if not isinstance(error, Exception):
        return
    text = str(error)
    if "captur" not in text.lower() and _native.ep_capture_is_intact():
        return
    place = _place(error.__traceback__)
    library = _LIBRARY.search(text)
    if library:
        _native.ep_report_violation(
            f"calls {library[1]} through CuPy, which refuses that in a capture, in {place}. "
            f"{_REMEDIES.get(library[1], '')}Launch kernels of your own there, or use a library "
            "that can be captured on ctx.stream, such as torch"
        )
        return
    _native.ep_report_violation(
        f"fails in a capture in {place}: {type(error).__name__}: {text}. A kernel in a graph must "
        "not wait for the device (get, synchronize, print), read its results on the host, nor make "
        "arrays from host memory. Leave that out, or do it once outside of the kernel"
    )


def _place(traceback: TracebackType | None) -> str:
    """Return the innermost place outside of CuPy."""
    packages = (*_ARRAY_PACKAGES, cuda.array_module().__name__)
    found = traceback
    while traceback is not None:
        name = traceback.tb_frame.f_globals.get("__name__", "")
        if not any(name == package or name.startswith(f"{package}.") for package in packages):
            found = traceback
        traceback = traceback.tb_next
    return place_of(found.tb_frame, found.tb_lineno) if found is not None else "its kernel"
