"""Device memory: arrays of the host device, subject to a memory limit."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, SupportsIndex

import numpy as np
import numpy.typing as npt

from epprof_nb.host import _log
from epprof_nb.host._log import LOG
from epprof_nb.util.format import size

_DEFAULT_SHARE = 0.5
"""Share of the memory of the machine or container that the device has by default."""
_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


class MemoryInfo(NamedTuple):
    """Device memory in bytes: current use, peak use and limit."""

    used: int
    peak: int
    limit: int


class Refusal(NamedTuple):
    """An allocation that exceeded the limit: its bytes, and the use and limit at that time."""

    requested: int
    used: int
    limit: int


class _Usage:
    """Accounting of device memory."""

    def __init__(self, limit: int) -> None:
        self.used = self.peak = 0
        self.limit = limit
        self.refusal: Refusal | None = None
        self.blocks: dict[int, tuple[int, int]] = {}
        """Address and bytes of each array in use, by its number: addresses are reused."""
        self.numbers = count()
        self.unlock()

    def unlock(self) -> None:
        # Reentrant, because the garbage collector may release an array inside the lock.
        self.lock = threading.RLock()

    def reserve(self, nbytes: int) -> None:
        with self.lock:
            if self.used + nbytes > self.limit:
                self.refusal = Refusal(nbytes, self.used, self.limit)
                raise MemoryError(
                    f"the host device is out of memory: {size(nbytes)} requested, "
                    f"{size(self.used)} of {size(self.limit)} in use. Delete arrays (they are "
                    "released once launched work no longer uses them), or raise the limit with "
                    "epprof_nb.host.set_memory_limit(bytes)."
                )
            self.used += nbytes
            self.peak = max(self.peak, self.used)

    def release(self, nbytes: int) -> None:
        with self.lock:
            self.used -= nbytes


def _default_limit() -> int:
    """Return the device's share of the memory of this machine or container."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    # The file is absent without a cgroup, and contains "max" without a limit.
    with contextlib.suppress(OSError, ValueError):
        total = min(total, int(_CGROUP_LIMIT.read_text()))
    return int(total * _DEFAULT_SHARE)


_USAGE = _Usage(_default_limit())
os.register_at_fork(after_in_child=_USAGE.unlock)


class Array:
    """A C-contiguous array in device memory, created by `empty` and `to_device`.

    Kernels receive it as a NumPy array; other code has to copy it. Its memory is released when
    the array is garbage collected and launched work no longer uses it.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    nbytes : int
    address : int
        Start address of its memory.
    """

    __slots__ = ("__weakref__", "_data", "address")

    def __init__(self, data: npt.NDArray[Any]) -> None:
        self._data = data
        self.address: int = data.__array_interface__["data"][0]

    @property
    def shape(self) -> tuple[int, ...]:
        """Size of each dimension."""
        return self._data.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements."""
        return self._data.dtype

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self._data.nbytes

    def __array__(self, *_: object, **__: object) -> NoReturn:
        raise TypeError(
            "an array in device memory cannot be used as a NumPy array; copy it with "
            "epprof_nb.host.to_host(array), or pass it to a kernel with epprof_nb.host.launch()"
        )

    def __repr__(self) -> str:
        return f"<epprof_nb.host.Array shape={self.shape} dtype={self.dtype}>"


def empty(
    shape: SupportsIndex | tuple[SupportsIndex, ...], dtype: npt.DTypeLike = np.float32
) -> Array:
    """Allocate an array in device memory without initialising it.

    Parameters
    ----------
    shape
        Size of each dimension.
    dtype
        Type of the elements; any type except Python objects.

    Raises
    ------
    MemoryError
        If it would exceed the memory limit; see `set_memory_limit`.
    TypeError
        If the dtype contains Python objects.
    """
    kind = np.dtype(dtype)
    if kind.hasobject:
        raise TypeError(
            f"device memory cannot store Python objects (dtype {kind}); convert the array to a "
            "numeric dtype first"
        )
    with LOG.memory_call(_log.MALLOC) as correlation:
        elements = 1
        for length in shape if isinstance(shape, tuple) else (shape,):
            elements *= int(length)
        nbytes = max(elements, 0) * kind.itemsize
        _USAGE.reserve(nbytes)
        try:
            array = Array(np.empty(shape, kind))
        except BaseException:
            _USAGE.release(nbytes)
            raise
        number = next(_USAGE.numbers)
        _USAGE.blocks[number] = array.address, nbytes
        weakref.finalize(array, _release, array.address, nbytes, number).atexit = False
        if correlation:
            LOG.add_memory("allocation", array.address, nbytes, correlation)
    return array


def _release(address: int, nbytes: int, number: int) -> None:
    with LOG.memory_call(_log.FREE) as correlation:
        _USAGE.release(nbytes)
        del _USAGE.blocks[number]
        if correlation:
            LOG.add_memory("release", address, nbytes, correlation)


def memory_info() -> MemoryInfo:
    """Return the current and peak use of device memory, and its limit, in bytes."""
    with _USAGE.lock:
        return MemoryInfo(_USAGE.used, _USAGE.peak, _USAGE.limit)


def blocks_in_use() -> dict[int, tuple[int, int]]:
    """Return address and bytes of each array in use, by a number that no other array gets."""
    return _USAGE.blocks.copy()


def last_refusal() -> Refusal | None:
    """Return the allocation that exceeded the limit last; None without one."""
    return _USAGE.refusal


def set_memory_limit(nbytes: int) -> None:
    """Limit device memory to `nbytes`; the default is half of the machine's memory.

    A limit below the current use only prevents new allocations.

    Raises
    ------
    ValueError
        If the limit is negative.
    """
    if nbytes < 0:
        raise ValueError(f"the memory limit must be at least 0 bytes, not {nbytes}")
    with _USAGE.lock:
        _USAGE.limit = int(nbytes)
