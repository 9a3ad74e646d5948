"""Functions of Python that the native core calls for kernels on CUDA devices."""

from __future__ import annotations

from epprof_nb import _native
from epprof_nb.ep import cuda
from epprof_nb.ep.cuda_capture import capturing_stream


def connect() -> None:
    """Give the native core the functions that kernels on CUDA devices need."""
    _native.ep_set_device_functions(
        cuda.view, cuda.current_stream, capturing_stream, cuda.stream_getter
    )
