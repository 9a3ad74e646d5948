"""What can be launched on a stream: kernels, copies and sets."""

# ruff: noqa: SLF001 (the device's modules share the internals of its few classes)

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from epprof_nb.host import _log
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
    """Launch a kernel: `function` runs on the stream's worker thread, the caller goes on.

    Parameters
    ----------
    function
        What to run, as ``np.add``. It gets `arrays`, the device arrays among them as NumPy
        arrays that share the device memory; what it returns is dropped. NumPy lets other
        threads run while it works on large arrays, so streams truly overlap.
    *arrays
        Device arrays (see `empty`, `to_device`), and scalars.
    grid, block
        Dimensions to record with the kernel, up to three; they change nothing in how it runs.
    stream
        Where to run; the default stream if left out.
    name
        Name of the kernel in profiles; the function's own if left out.

    Raises
    ------
    TypeError
        For an argument that is a NumPy array, which is not in device memory.
    ValueError
        For a grid or block that is not one to three positive numbers.
    RuntimeError
        If the stream is closed.

    Notes
    -----
    What `function` raises surfaces as `DeviceError` at the next synchronisation of the stream;
    until then the stream runs none of the commands that follow.
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
        caller = sys._getframe(1)  # an error that surfaces elsewhere must name the line
        label = f"kernel {name!r}, launched at {caller.f_code.co_filename}:{caller.f_lineno},"
        stream._queue.submit(Command(run, label, activity))


def memcpy(
    destination: Array | npt.NDArray[Any],
    source: Array | npt.NDArray[Any],
    stream: Stream | None = None,
) -> None:
    """Copy bytes, asynchronously, between device and host memory in any direction.

    A NumPy array counts as pinned memory: leave it unchanged until the stream is synchronised.
    `to_device` and `to_host` have no such rule.

    Raises
    ------
    ValueError
        If the two differ in size, or a NumPy array is not C-contiguous or not writeable.
    RuntimeError
        If the stream is closed.
    """
    _copy(destination, source, stream or default_stream(), "pinned")


def to_device(array: npt.ArrayLike, stream: Stream | None = None) -> Array:
    """Copy a host array to a new device array, asynchronously.

    As in CUDA for pageable memory, the bytes are staged before the call returns: `array` may be
    changed at once.

    Returns
    -------
    Array
        Of the same shape and dtype; usable on `stream` at once, on other streams after an event.

    Raises
    ------
    MemoryError
        If it would exceed the device's memory limit.
    TypeError
        For a dtype that holds Python objects.
    """
    host = np.asarray(array)
    device = empty(host.shape, host.dtype)
    staged = np.array(host, order="C", copy=True)
    _copy(device, staged, stream or default_stream(), "pageable")
    return device


def to_host(array: Array, stream: Stream | None = None) -> npt.NDArray[Any]:
    """Copy a device array to a new host array and wait for it, and what `stream` did before.

    Raises
    ------
    DeviceError
        If a command of the stream failed since its last synchronisation.
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
        If `value` is no byte.
    RuntimeError
        If the stream is closed.
    """
    if not 0 <= value <= 255:
        raise ValueError(
            f"memset sets bytes: value must be 0 to 255, not {value}; to fill with another "
            "number launch a kernel"
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
        stream._queue.submit(Command(run, "a memset", activity))


def _copy(
    destination: Array | npt.NDArray[Any],
    source: Array | npt.NDArray[Any],
    stream: Stream,
    host_kind: str,
) -> None:
    with LOG.call(_log.MEMCPY_ASYNC) as correlation:
        to_data, to_letter, to_kind = _side("destination", destination, host_kind)
        from_data, from_letter, from_kind = _side("source", source, host_kind)
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
            activity = Activity(
                "memcpy", f"memcpy {copy_kind}", correlation, stream.stream_id, to_data.nbytes,
                copy_kind, from_kind, to_kind,
            )  # fmt: skip
        stream._queue.submit(Command(run, f"a copy {copy_kind}", activity))


def _side(which: str, array: Array | npt.NDArray[Any], host_kind: str) -> tuple[_Bytes, str, str]:
    """Return one side of a copy: its bytes, CUPTI's letter for it, and its kind of memory."""
    if isinstance(array, Array):
        return _bytes(array._data), "D", "device"
    if not array.flags.c_contiguous:
        raise ValueError(
            f"the {which} is not C-contiguous and cannot be copied in one piece; pass "
            "np.ascontiguousarray(array)"
        )
    if which == "destination" and not array.flags.writeable:
        raise ValueError("the destination is read-only; pass a writeable array, as a copy of it")
    return _bytes(array), "H", host_kind


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
    # A functools.partial has no name of its own.
    named = getattr(function, "func", function)
    return getattr(named, "__name__", None) or type(named).__name__


def _dimensions(what: str, given: int | Sequence[int]) -> tuple[int, int, int]:
    if given is _ONE:
        return _ONE
    lengths = (given,) if isinstance(given, int) else tuple(given)
    if not 1 <= len(lengths) <= 3 or any(length < 1 for length in lengths):
        raise ValueError(
            f"{what} must be one to three positive numbers, as (64, 1, 1), not {given!r}"
        )
    x, y, z = (*lengths, 1, 1)[:3]
    return x, y, z
