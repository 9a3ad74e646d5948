"""Device memory: arrays of the host device, counted against a limit."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, SupportsIndex

import numpy as np
import numpy.typing as npt

from epprof_nb.host import _log
from epprof_nb.host._log import LOG

_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


class MemoryInfo(NamedTuple):
    """Bytes of device memory: in use, most ever in use, and what may be in use at most."""

    used: int
    peak: int
    limit: int


class _Account:
    """How much device memory is in use."""

    def __init__(self, limit: int) -> None:
        self.used = self.peak = 0
        self.limit = limit
        self.unlock()

    def unlock(self) -> None:
        # Reentrant: an array may be released by the garbage collector inside the lock.
        self.lock = threading.RLock()

    def take(self, nbytes: int) -> None:
        with self.lock:
            if self.used + nbytes > self.limit:
                raise MemoryError(
                    f"the host device is out of memory: {_size(nbytes)} asked for, "
                    f"{_size(self.used)} of {_size(self.limit)} in use. Let go of arrays "
                    "(del them; work in flight keeps them until it is done), or raise the limit "
                    "with epprof_nb.host.set_memory_limit(bytes)."
                )
            self.used += nbytes
            self.peak = max(self.peak, self.used)

    def give_back(self, nbytes: int) -> None:
        with self.lock:
            self.used -= nbytes


def _size(nbytes: int) -> str:
    """Bytes for people, as ``1.50 GB``."""
    value, unit = float(nbytes), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if value < 1000 or unit == "TB":
            break
        value /= 1000
    return f"{value:.3g} {unit}"


def _default_limit() -> int:
    """Half of the memory that this machine, or its container, has."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    # Without a cgroup the file is absent; without a limit it says "max".
    with contextlib.suppress(OSError, ValueError):
        total = min(total, int(_CGROUP_LIMIT.read_text()))
    return total // 2


_ACCOUNT = _Account(_default_limit())
os.register_at_fork(after_in_child=_ACCOUNT.unlock)


class Array:
    """An array in device memory; kernels get it as a NumPy array, other code copies it.

    Made by `empty` and `to_device`, C-contiguous. Its memory is released when the array is
    garbage collected and no launched work needs it any more.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    nbytes : int
    address : int
        Where its memory begins.
    """

    __slots__ = ("__weakref__", "_data", "address")

    def __init__(self, data: npt.NDArray[Any]) -> None:
        self._data = data
        self.address: int = data.__array_interface__["data"][0]

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each dimension."""
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
    """Allocate an array in device memory; what it holds is arbitrary.

    Parameters
    ----------
    shape
        Length of each dimension.
    dtype
        Type of the elements; anything but Python objects.

    Raises
    ------
    MemoryError
        If it would exceed the memory limit; see `set_memory_limit`.
    TypeError
        For a dtype that holds Python objects.
    """
    kind = np.dtype(dtype)
    if kind.hasobject:
        raise TypeError(
            f"device memory cannot hold Python objects (dtype {kind}); convert the array to a "
            "numeric dtype first"
        )
    with LOG.memory_call(_log.MALLOC) as correlation:
        count = 1
        for length in shape if isinstance(shape, tuple) else (shape,):
            count *= int(length)
        nbytes = max(count, 0) * kind.itemsize
        _ACCOUNT.take(nbytes)
        try:
            array = Array(np.empty(shape, kind))
        except BaseException:
            _ACCOUNT.give_back(nbytes)
            raise
        weakref.finalize(array, _release, array.address, nbytes).atexit = False
        if correlation:
            LOG.add_memory("allocation", array.address, nbytes, correlation)
    return array


def _release(address: int, nbytes: int) -> None:
    with LOG.memory_call(_log.FREE) as correlation:
        _ACCOUNT.give_back(nbytes)
        if correlation:
            LOG.add_memory("release", address, nbytes, correlation)


def memory_info() -> MemoryInfo:
    """Return the bytes of device memory in use, their peak, and the limit."""
    with _ACCOUNT.lock:
        return MemoryInfo(_ACCOUNT.used, _ACCOUNT.peak, _ACCOUNT.limit)


def set_memory_limit(nbytes: int) -> None:
    """Let arrays take `nbytes` at most; the default is half of the machine's memory.

    Raises
    ------
    ValueError
        For a limit below 0. A limit below what is in use only refuses new arrays.
    """
    if nbytes < 0:
        raise ValueError(f"the memory limit must be 0 or more bytes, not {nbytes}")
    with _ACCOUNT.lock:
        _ACCOUNT.limit = int(nbytes)
