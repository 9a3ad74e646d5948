"""Memory and errors of kernels whose launches are captured into a CUDA graph.

A replay writes to the memory that a kernel allocated during the capture, so CuPy allocates it from
the graph.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.ep import cuda
from epprof_nb.util.code_place import place_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

_LIBRARY = re.compile(r"calling (\w+) API during stream capture")
_REMEDIES = {"cuBLAS": "Multiply matrices with epprof_nb.ep.matmul, which can be captured. "}
_ARRAY_PACKAGES = ("cupy", "cupyx", "cupy_backends")


class _Block:
    """Memory of a graph, which can reuse it after it is freed."""

    def __init__(self, device: int, nbytes: int) -> None:
        self._device = device
        self.address = _native.ep_device_allocate(device, nbytes)

    def __del__(self) -> None:
        if hasattr(self, "address"):
            _native.ep_device_free(self._device, self.address)


def _allocate(device: int, nbytes: int) -> Any:  # noqa: ANN401
    """Allocate memory for CuPy from the graph that this thread captures."""
    cupy = cuda.array_module()
    block = _Block(device, nbytes)
    memory = cupy.cuda.UnownedMemory(block.address, nbytes, block, device)
    return cupy.cuda.MemoryPointer(memory, 0)


@contextmanager
def capturing_stream(device: int, handle: int) -> Iterator[None]:
    """Make a captured stream current; CuPy then allocates from the graph."""
    allocator = cuda.array_module().cuda.using_allocator(partial(_allocate, device))
    with cuda.current_stream(device, handle), allocator:
        yield


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


def connect() -> None:
    """Give the native core the functions that kernels on CUDA devices need."""
    _native.ep_set_device_functions(
        cuda.view, cuda.current_stream, capturing_stream, cuda.stream_getter
    )
