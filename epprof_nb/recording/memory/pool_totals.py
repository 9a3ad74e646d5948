"""Pools of device memory of libraries, as far as the libraries report it."""

from __future__ import annotations

import ctypes
import sys
from typing import TYPE_CHECKING, NamedTuple

from epprof_nb import _native
from epprof_nb.core.ort_binding import ONNX_RUNTIME
from epprof_nb.recording.cupti.find_library import find_driver
from epprof_nb.recording.onnxruntime.arenas import arenas

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


OWN_POOL = "kernels in Python"
"""Name of the arenas of the provider of kernels in Python."""


TORCH = "torch"
"""Name of PyTorch's pool."""


class LibraryPool(NamedTuple):
    """Memory that a library holds on a device, in bytes.

    Attributes
    ----------
    library
        Its name, as shown.
    in_use
        Bytes that arrays use; None if unknown.
    held
        Bytes that the library has from the driver; None if unknown.
    reason
        Why a number is unknown, or what it is instead; "" if both are known.
    """

    library: str
    in_use: int | None
    held: int | None
    reason: str = ""


def pools_on(device: int) -> list[LibraryPool]:
    """Return the pools of a CUDA device: of CuPy, JAX, ONNX Runtime and kernels in Python.

    It imports no library and starts none. The device must have a context, like the devices of
    `used_devices`.
    """
    return [
        *_guarded("CuPy", _cupy, device),
        *_guarded("JAX", _jax, device),
        *_guarded(ONNX_RUNTIME, _onnxruntime, device),
        *_own(device),
    ]


def torch_totals(device: int) -> tuple[int, int] | None:
    """Return the bytes that PyTorch uses and holds on a device; None if it has not started CUDA."""
    torch = sys.modules.get("torch")
    stats = torch.cuda.memory_stats(device) if torch is not None else None
    if not stats:
        return None
    return stats["allocated_bytes.all.current"], stats["reserved_bytes.all.current"]


def pool_of_torch(device: int, reason: str) -> list[LibraryPool]:
    """Return PyTorch's pool of a CUDA device, whose blocks are unknown for some reason."""

    def read(device: int) -> Iterator[LibraryPool]:
        if totals := torch_totals(device):
            yield LibraryPool(TORCH, *totals, reason)

    return _guarded(TORCH, read, device)


def used_devices() -> list[int]:
    """Return the CUDA devices on which this process has a context, without starting CUDA."""
    path = find_driver(load=False)
    if path is None:
        return []
    try:
        driver = ctypes.CDLL(path)
        count, flags, active = ctypes.c_int(), ctypes.c_uint(), ctypes.c_int()
        # Fails without side effects if CUDA is not initialised.
        if driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
            return []
        found = []
        for device in range(count.value):
            state = ctypes.byref(flags), ctypes.byref(active)
            if driver.cuDevicePrimaryCtxGetState(device, *state) == 0 and active.value:
                found.append(device)
    except (OSError, AttributeError):
        return []
    return found


def _guarded(
    library: str, read: Callable[[int], Iterator[LibraryPool]], device: int
) -> list[LibraryPool]:
    found: list[LibraryPool] = []
    try:
        found.extend(read(device))
    except Exception as error:  # noqa: BLE001 - the library may be half imported or broken
        reason = f"{library} does not report it: {type(error).__name__}: {error}"
        found.append(LibraryPool(library, None, None, reason))
    return found


def _cupy(device: int) -> Iterator[LibraryPool]:
    cupy = sys.modules.get("cupy")
    if cupy is None:
        return
    with cupy.cuda.Device(device):
        pool = cupy.get_default_memory_pool()
        yield LibraryPool("CuPy", pool.used_bytes(), pool.total_bytes())
        allocator = getattr(cupy.cuda, "get_allocator", lambda: pool)()
        owner = getattr(allocator, "__self__", allocator)
        if owner is pool:
            return
        if hasattr(owner, "used_bytes") and hasattr(owner, "total_bytes"):
            used, held = owner.used_bytes(), owner.total_bytes()
            yield LibraryPool(f"CuPy {type(owner).__name__}", used, held)
        else:
            name = getattr(allocator, "__qualname__", type(allocator).__name__)
            yield LibraryPool(
                "CuPy's allocator", None, None, f"CuPy uses {name}, which has no statistics"
            )


def _jax(device: int) -> Iterator[LibraryPool]:
    bridge = sys.modules.get("jax._src.xla_bridge")
    if bridge is None or not getattr(bridge, "_backends", None):  # asking would start one
        return
    for found in sys.modules["jax"].local_devices():
        if found.platform == "gpu" and found.local_hardware_id == device:
            stats = found.memory_stats()
            if not stats:
                yield LibraryPool("JAX", None, None, "JAX's allocator here has no statistics")
                return
            used, held = stats["bytes_in_use"], stats.get("pool_bytes")
            reason = "" if held else "bytes in use; JAX does not report how much its pool holds"
            yield LibraryPool("JAX", used, held or used, reason)


def _onnxruntime(device: int) -> Iterator[LibraryPool]:
    for arena in arenas():
        if arena.device == device:
            name = f"{ONNX_RUNTIME} {arena.session}" if arena.session else ONNX_RUNTIME
            yield LibraryPool(name, arena.in_use, arena.held, arena.reason)


def _own(device: int) -> Iterator[LibraryPool]:
    stats = _native.ep_device_statistics(device)
    yield LibraryPool(OWN_POOL, stats["in_use"], stats["reserved"])
