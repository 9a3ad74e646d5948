"""CUDA devices of the provider: NVIDIA's driver, and CuPy's arrays for kernels."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.core.errors import KernelError
from epprof_nb.ep import types
from epprof_nb.util.cuda_state import DRIVER

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

LIBRARY = "EpprofExecutionProvider.cuda"
"""Name under which the native core is registered with ONNX Runtime for CUDA devices."""

_BFLOAT16 = 14
"""First release of CuPy with bfloat16."""
_PACKAGES = {12: "cupy-cuda12x", 13: "cupy-cuda13x"}
_DTYPES = {number: name for name, number in types.NUMBERS.items()}


def open_driver(path: str | None = None) -> int:
    """Open NVIDIA's driver and return the number of its devices.

    Parameters
    ----------
    path
        File of the driver; `DRIVER` by default. A driver that was opened before stays in use.

    Raises
    ------
    KernelError
        If there is no driver, or no device.
    """
    try:
        return _native.ep_load_driver(path or DRIVER)
    except RuntimeError as error:
        raise KernelError(
            f"CUDA devices cannot be used: {error}. Kernels in Python also run without a GPU, on "
            'the host device: device="host".'
        ) from error


def check_device(device: int) -> None:
    """Check that the driver has a device and that CuPy works on it.

    Raises
    ------
    KernelError
        If there is no such device, or CuPy is missing or does not work with this driver.
    """
    count = open_driver()
    if not 0 <= device < count:
        known = ", ".join(f'"cuda:{i}"' for i in range(count))
        raise KernelError(f'device="cuda:{device}" does not exist. This machine has {known}.')
    check_array_module(array_module(), device)


def array_module() -> Any:  # noqa: ANN401
    """Return CuPy.

    Raises
    ------
    KernelError
        If it cannot be imported.
    """
    try:
        import cupy
    except ImportError as error:
        raise KernelError(
            f"Kernels in Python on CUDA devices need CuPy, which cannot be imported ({error}). Run "
            f"`pip install {_PACKAGES[13]}` (or {_PACKAGES[12]} for CUDA 12) and restart the "
            "kernel."
        ) from error
    return cupy


def check_array_module(module: Any, device: int) -> None:  # noqa: ANN401
    """Check that the driver supports this CuPy.

    Raises
    ------
    KernelError
        If CuPy is built for a newer CUDA than the driver supports, or fails on the device.
    """
    runtime = module.cuda.runtime
    built, supported = runtime.runtimeGetVersion() // 1000, runtime.driverGetVersion() // 1000
    if built > supported:
        package = _PACKAGES.get(supported, "the package of CuPy for it")
        raise KernelError(
            f"This CuPy is for CUDA {built}, but the driver supports CUDA {supported}. Install "
            f"{package} instead and restart the Jupyter kernel, or update the driver."
        )
    try:
        with module.cuda.Device(device):
            module.zeros(1, module.float32)
    except Exception as error:
        raise KernelError(
            f"CuPy {module.__version__} does not work on cuda:{device}: {error}"
        ) from error


def view(device: int, pointer: int, nbytes: int, onnx_type: int, shape: tuple[int, ...]) -> Any:  # noqa: ANN401
    """Return an array over device memory that belongs to ONNX Runtime."""
    cupy = array_module()
    dtype = _DTYPES.get(onnx_type) or types.small_float_dtypes().get(onnx_type)
    if dtype is None:
        raise TypeError(f"tensors of ONNX's element type {onnx_type} have no NumPy dtype")
    memory = cupy.cuda.UnownedMemory(pointer, nbytes, None, device)
    return cupy.ndarray(shape, dtype, cupy.cuda.MemoryPointer(memory, 0))


def has_dtype(number: int) -> bool:
    """Whether CuPy has arrays of one of ONNX's element types."""
    if number in _DTYPES:
        return True
    major = array_module().__version__.partition(".")[0]
    return (
        number == types.SMALL_FLOATS.get("bfloat16") and major.isdigit() and int(major) >= _BFLOAT16
    )


@dataclass(frozen=True)
class _Handle:
    """The address of a stream, in the form that CuPy accepts for external streams."""

    address: int

    def __cuda_stream__(self) -> tuple[int, int]:
        """Return the version of the protocol and the address."""
        return 0, self.address


@functools.lru_cache(maxsize=256)
def current_stream(device: int, handle: int) -> AbstractContextManager[Any]:
    """Return a context manager in which CuPy launches on a stream of the current device."""
    cupy = array_module()
    if hasattr(cupy.cuda.Stream, "from_external"):  # from CuPy 14 on
        stream: AbstractContextManager[Any] = cupy.cuda.Stream.from_external(_Handle(handle))
    else:
        stream = cupy.cuda.ExternalStream(handle, device)
    return stream


def stream_getter() -> Any:  # noqa: ANN401
    """Return CuPy's function that returns the current stream of a device."""
    return array_module().cuda.get_current_stream


def explain(error: Exception) -> None:
    """Add a note to the error of a run in which an allocation on a device failed."""
    failure = _native.ep_take_allocation_failure()
    if failure is not None and failure not in str(error):
        error.add_note(failure)
