"""Arrays in device memory, of torch, CuPy, JAX, ONNX Runtime and the host device."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from epprof_nb import _native
from epprof_nb.util.user_errors import USER_ERRORS

if TYPE_CHECKING:
    from collections.abc import Callable

HOST = "host"
"""Name of the host device, beside ``cuda:0`` and so on."""


class ArrayMemory(NamedTuple):
    """Memory of an array: its device, the address and bytes of the whole buffer, and its form."""

    device: str
    address: int
    nbytes: int
    form: str


class DeviceArrays:
    """Readers of the arrays of all libraries that are imported.

    They read attributes of the libraries only, run no code of users and allocate nothing on a
    device. Views of one buffer have its address.
    """

    def __init__(self) -> None:
        # By the id of a type, which is kept: types of others may have no hash.
        self._readers: dict[int, tuple[type, Callable[[Any], ArrayMemory | None] | None]] = {}
        self._classes = [
            (getattr(module, name), reader)
            for path, name, reader in (
                ("torch", "Tensor", _of_torch),
                ("cupy", "ndarray", _of_cupy),
                ("jax", "Array", _of_jax),
                ("onnxruntime", "OrtValue", _of_ort_value),
                ("epprof_nb.host.memory", "Array", _of_host),
            )
            if (module := sys.modules.get(path)) is not None and hasattr(module, name)
        ]

    def is_array(self, thing: object) -> bool:
        """Whether an object is an array of one of the libraries, on any device."""
        return self._reader(type(thing)) is not None

    def among(self, objects: list[Any]) -> list[Any]:
        """Return the arrays among many objects."""
        found = []
        for base, _ in self._classes:
            kinds = [base]
            if _is_virtual(base):
                types = _native.instances_of(objects, type)
                kinds = [kind for kind in types if _is_subclass(kind, base)]
            for kind in kinds:
                found += _native.instances_of(objects, kind)
        return found

    def memory_of(self, array: object) -> ArrayMemory | None:
        """Return the memory of an array; None if it owns none."""
        reader = self._reader(type(array))
        try:
            return None if reader is None else reader(array)
        except USER_ERRORS:  # deleted, fake, sparse or of a release that differs
            return None

    def _reader(self, kind: type) -> Callable[[Any], ArrayMemory | None] | None:
        try:
            return self._readers[id(kind)][1]
        except KeyError:
            found = next((r for c, r in self._classes if _is_subclass(kind, c)), None)
            self._readers[id(kind)] = kind, found
            return found


def _is_subclass(kind: type, base: type) -> bool:
    try:
        return type.__subclasscheck__(base, kind) or (_is_virtual(base) and issubclass(kind, base))
    except USER_ERRORS:  # metaclasses of others
        return False


def _is_virtual(base: type) -> bool:
    """Whether the classes of a library's arrays do not derive from their type."""
    return base.__module__.startswith("jax")


def _of_torch(tensor: Any) -> ArrayMemory | None:  # noqa: ANN401
    torch = sys.modules["torch"]
    with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001 - no code of subclasses
        storage = torch.Tensor.untyped_storage(tensor)
        kind = str(torch.Tensor.dtype.__get__(tensor)).removeprefix("torch.")
        form = _form(torch.Tensor.shape.__get__(tensor), kind)
        return ArrayMemory(str(storage.device), storage.data_ptr(), storage.nbytes(), form)


def _of_cupy(array: Any) -> ArrayMemory | None:  # noqa: ANN401
    memory = array.data.mem
    device = f"cuda:{array.data.device_id}"
    return ArrayMemory(device, memory.ptr, memory.size, _form(array.shape, array.dtype))


def _of_jax(array: Any) -> ArrayMemory | None:  # noqa: ANN401
    if array.is_deleted() or not array.is_fully_addressable:
        return None
    (device,) = array.devices()
    if device.platform not in ("gpu", "cuda"):
        return None
    name = f"cuda:{device.local_hardware_id}"
    form = _form(array.shape, array.dtype)
    return ArrayMemory(name, array.unsafe_buffer_pointer(), array.nbytes, form)


def _of_ort_value(value: Any) -> ArrayMemory | None:  # noqa: ANN401
    if value.device_name() != "cuda":
        return None
    inner = value._ortvalue  # noqa: SLF001 - the public class hides the device's number
    number = inner.device_id() if hasattr(inner, "device_id") else 0
    form = _form(value.shape(), value.data_type().removeprefix("tensor(").rstrip(")"))
    return ArrayMemory(f"cuda:{number}", value.data_ptr(), value.tensor_size_in_bytes(), form)


def _of_host(array: Any) -> ArrayMemory | None:  # noqa: ANN401
    kind = sys.modules["epprof_nb.host.memory"].Array
    # Its slots, and NumPy's attributes: subclasses of both may have their own.
    data = kind._data.__get__(array)  # noqa: SLF001
    shape, nbytes, dtype = (vars(np.ndarray)[n].__get__(data) for n in ("shape", "nbytes", "dtype"))
    return ArrayMemory(HOST, kind.address.__get__(array), nbytes, _form(shape, dtype))


def _form(lengths: Any, kind: object) -> str:  # noqa: ANN401
    """Return type and shape of an array, as ``float32[1,000]``."""
    shape = "\N{MULTIPLICATION SIGN}".join(f"{int(n):,}" for n in lengths)
    return f"{kind}[{shape}]" if shape else f"{kind} scalar"
