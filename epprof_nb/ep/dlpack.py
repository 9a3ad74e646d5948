"""Tensors of the provider's devices for other libraries, by DLPack."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

from epprof_nb import _native
from epprof_nb.core.errors import KernelError
from epprof_nb.ep import cuda

_CPU, _CUDA = 1, 2
"""``DLDeviceType``: kDLCPU and kDLCUDA."""


class _Tensor(ctypes.Structure):
    """The beginning of DLPack's ``DLManagedTensor``."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
    ]


@dataclass(frozen=True)
class Shared:
    """A tensor that other libraries read through DLPack; see `dlpack`."""

    value: Any
    device_type: int
    device_id: int

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's type and number of the device."""
        return self.device_type, self.device_id

    def __dlpack__(self, **_: object) -> object:
        """Return a capsule with the tensor, which keeps its memory."""
        # ONNX Runtime labels the memory of all devices of its type GPU as CUDA memory. Before 1.26,
        # only the inner object has the method.
        own = self.value if hasattr(self.value, "__dlpack__") else self.value._ortvalue  # noqa: SLF001
        capsule = own.__dlpack__()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        tensor = _Tensor.from_address(pointer(capsule, b"dltensor"))
        tensor.device_type, tensor.device_id = self.device_type, self.device_id
        return capsule


def dlpack(value: Any) -> Shared:  # noqa: ANN401
    """Share an ``onnxruntime.OrtValue`` with another library, without a copy.

    ``OrtValue`` itself describes the memory of the host device as memory of a GPU, which no library
    can use. The object that this function returns describes it as memory of the CPU.

    Parameters
    ----------
    value
        A tensor on the host device, on a CUDA device, or on the CPU. Memory of ONNX Runtime's CUDA
        provider is also CUDA memory.

    Returns
    -------
    object
        An argument for ``numpy.from_dlpack`` (host device), ``cupy.from_dlpack`` or
        ``torch.from_dlpack`` (CUDA). The array that they return keeps the tensor's memory.

    Raises
    ------
    KernelError
        If the value is not an ``OrtValue``, or its tensor is neither in memory of the CPU nor
        of these devices.

    Examples
    --------
    >>> import numpy as np, onnxruntime as ort
    >>> from epprof_nb import ep
    >>> entry = ep.provider("host")
    >>> value = ort.OrtValue.ortvalue_from_numpy(np.ones(3, np.float32), "gpu", 0)
    >>> np.from_dlpack(ep.dlpack(value))
    array([1., 1., 1.], dtype=float32)
    """
    device = _device_of(value)
    return Shared(value, _CPU, 0) if device is None else Shared(value, _CUDA, device)


def _device_of(value: Any) -> int | None:  # noqa: ANN401
    """Return the CUDA device that a tensor lies on; None if the CPU can read it."""
    if not hasattr(value, "data_ptr") or not hasattr(value, "device_name"):
        raise KernelError(
            f"ep.dlpack() shares an onnxruntime.OrtValue, not {type(value).__name__}. Pass "
            "arrays to from_dlpack() directly."
        )
    address, name = value.data_ptr(), value.device_name()
    device = _native.ep_device_of(address)
    if device is not None:
        return device if device >= 0 else None
    if name == "cpu":
        return None
    if name == "cuda":  # perhaps from ONNX Runtime's CUDA provider
        cuda.open_driver()
        device = _native.ep_cuda_device_at(address)
    if device is None:
        raise KernelError(
            f"This tensor of shape {tuple(value.shape())} lies in memory of another provider "
            f"({name}). Pass it to the other library directly."
        )
    return device
