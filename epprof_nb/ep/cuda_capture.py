"""Memory of kernels whose launches are captured into a CUDA graph.

A replay writes to the memory that a kernel allocated during the capture, so CuPy allocates it from
the graph.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.ep import cuda

if TYPE_CHECKING:
    from collections.abc import Iterator


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
