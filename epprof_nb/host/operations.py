"""Operations on streams: kernel launches, copies and memsets."""

# ruff: noqa: SLF001 (the device's modules share the internals of its few classes)

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from epprof_nb.host import _log
from epprof_nb.host._copies import copy_activity
from epprof_nb.host._log import LOG, Activity
from epprof_nb.host._queue import Command
from epprof_nb.host.memory import Array, empty
from epprof_nb.host.stream import Stream, default_stream

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_ONE = (1, 1, 1)
_Bytes = npt.NDArray[np.uint8]


def launch(
    function: Callable[..., object],
    *arrays: object,
    grid: int | Sequence[int] = _ONE,
    block: int | Sequence[int] = _ONE,
    stream: Stream | None = None,
    name: str | None = None,
) -> None:
    """Launch a kernel: `function` runs asynchronously on the worker thread of the stream.

    Parameters
    ----------
    function
        Function to run, such as ``np.add``. It is called with `arrays`, where device arrays are
        replaced by NumPy arrays that share the device memory. Its return value is ignored. NumPy
        releases the GIL while it works on large arrays, so streams truly overlap.
    *arrays
        Device arrays (see `empty`, `to_device`) and scalars.
    grid, block
        Up to three dimensions that are recorded with the kernel. They do not affect execution.
    stream
        Stream to run on; default: the default stream.
    name
        Name of the kernel in profiles; default: the name of the function.

    Raises
    ------
    TypeError
        If an argument is a NumPy array, which is not in device memory.
    ValueError
        If grid or block is not one to three positive numbers.
    RuntimeError
        If the stream is closed.

    Notes
    -----
    An exception of `function` is raised as `DeviceError` at the next synchronization of the
    stream. Until then the stream skips all later commands.
    """
    stream = stream or default_stream()
    with LOG.call(_log.LAUNCH_KERNEL) as correlation:
        name = name or _name_of(function)
        grid, block = _dimensions("grid", grid), _dimensions("block", block)
        views = [_view(name, i, argument) for i, argument in enumerate(arrays)]

        def run(_keep: tuple[object, ...] = arrays) -> None:
            function(*views)

        activity = None
        if correlation:
            activity = Activity(
                "kernel", name, correlation, stream.stream_id, grid=grid, block=block
            )
        caller = sys._getframe(1)  # asynchronous errors name the line of the launch
        label = f"kernel {name!r}, launched at {caller.f_code.co_filename}:{caller.f_lineno},"
        stream._queue.launch(Command(run, label, activity))


def memcpy(
    destination: Array | npt.NDArray[Any],
    source: Array | npt.NDArray[Any],
    stream: Stream | None = None,
) -> None:
    """Copy bytes asynchronously between device and host memory in any direction.

    NumPy arrays are treated as pinned memory: do not change them until the stream is
    synchronized. `to_device` and `to_host` have no such restriction.

    Raises
    ------
    ValueError
        If the sizes differ, or a NumPy array is not C-contiguous or not writeable.
    RuntimeError
        If the stream is closed.
    """
    _copy(destination, source, stream or default_stream(), "pinned")


def to_device(array: npt.ArrayLike, stream: Stream | None = None) -> Array:
    """Copy a host array to a new device array, asynchronously.

    As in CUDA with pageable memory, the bytes are staged before the call returns, so `array` may
    be changed immediately.

    Returns
    -------
    Array
        A device array of the same shape and dtype. It can be used immediately on `stream`, and
        on other streams after an event.

    Raises
    ------
    MemoryError
        If it would exceed the memory limit of the device.
    TypeError
        If the dtype contains Python objects.
    """
    host = np.asarray(array)
    device = empty(host.shape, host.dtype)
    staged = np.array(host, order="C", copy=True)
    _copy(device, staged, stream or default_stream(), "pageable")
    return device


def to_host(array: Array, stream: Stream | None = None) -> npt.NDArray[Any]:
    """Copy a device array to a new host array and synchronize `stream`.

    Raises
    ------
    DeviceError
        If a command of the stream failed since its last synchronization.
    RuntimeError
        If called inside a kernel, or if the stream is closed.
    """
    stream = stream or default_stream()
    host = np.empty(array.shape, array.dtype)
    _copy(host, array, stream, "pageable")
    stream.synchronize()
    return host


def memset(array: Array, value: int, stream: Stream | None = None) -> None:
    """Set each byte of a device array to `value` (0 to 255), asynchronously.

    Raises
    ------
    ValueError
        If `value` is not in the range of a byte.
    RuntimeError
        If the stream is closed.
    """
    if not 0 <= value <= 255:
        raise ValueError(
            f"memset sets bytes, so value must be 0 to 255, not {value}; launch a kernel to fill "
            "an array with another number"
        )
    stream = stream or default_stream()
    with LOG.call(_log.MEMSET_ASYNC) as correlation:
        data = _bytes(array._data)

        def run(_keep: Array = array) -> None:
            data.fill(value)

        activity = None
        if correlation:
            activity = Activity(
                "memset", "memset", correlation, stream.stream_id, array.nbytes, dst_kind="device"
            )
        stream._queue.launch(Command(run, "a memset", activity))


def _copy(
    destination: Array | npt.NDArray[Any],
    source: Array | npt.NDArray[Any],
    stream: Stream,
    host_kind: str,
) -> None:
    with LOG.call(_log.MEMCPY_ASYNC) as correlation:
        to_data, to_letter = _side("destination", destination)
        from_data, from_letter = _side("source", source)
        if to_data.nbytes != from_data.nbytes:
            raise ValueError(
                f"cannot copy {from_data.nbytes} bytes to an array of {to_data.nbytes} bytes; "
                "source and destination must have the same size"
            )

        def run(_keep: tuple[object, object] = (destination, source)) -> None:
            np.copyto(to_data, from_data)

        copy_kind = f"{from_letter}to{to_letter}"
        activity = None
        if correlation:
            activity = copy_activity(
                f"memcpy {copy_kind}", correlation, stream.stream_id,
                nbytes=to_data.nbytes, copy_kind=copy_kind, host_kind=host_kind,
            )  # fmt: skip
        stream._queue.launch(Command(run, f"a copy {copy_kind}", activity))


def _side(which: str, array: Array | npt.NDArray[Any]) -> tuple[_Bytes, str]:
    """Return the bytes and CUPTI's letter of one side of a copy."""
    if isinstance(array, Array):
        return _bytes(array._data), "D"
    if not array.flags.c_contiguous:
        raise ValueError(
            f"the {which} is not C-contiguous and cannot be copied; pass "
            "np.ascontiguousarray(array)"
        )
    if which == "destination" and not array.flags.writeable:
        raise ValueError("the destination is read-only; pass a writeable array, such as a copy")
    return _bytes(array), "H"


def _bytes(data: npt.NDArray[Any]) -> _Bytes:
    return data.reshape(-1).view(np.uint8)


def _view(kernel: str, position: int, argument: object) -> object:
    if isinstance(argument, Array):
        return argument._data
    if isinstance(argument, np.ndarray):
        raise TypeError(
            f"argument {position} of kernel {kernel!r} is a NumPy array in host memory; copy it "
            "to the device first with epprof_nb.host.to_device(array)"
        )
    return argument


def _name_of(function: Callable[..., object]) -> str:
    # functools.partial objects have no name.
    named = getattr(function, "func", function)
    return getattr(named, "__name__", None) or type(named).__name__


def _dimensions(name: str, value: int | Sequence[int]) -> tuple[int, int, int]:
    if value is _ONE:
        return _ONE
    sizes = (value,) if isinstance(value, int) else tuple(value)
    if not 1 <= len(sizes) <= 3 or any(size < 1 for size in sizes):
        raise ValueError(
            f"{name} must be one to three positive numbers, such as (64, 1, 1), not {value!r}"
        )
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z
