"""Measurement of the peaks of devices: arithmetic by a matrix product, bandwidth by a copy."""

from __future__ import annotations

import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis.base.devices import is_gpu
from epprof_nb.analysis.peaks.peaks_in_info import Peaks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_MIN_NS = 20_000_000
"""Shortest duration of a measurement."""
_ROUNDS = 5
_GOLDEN, _PERIOD = 0.6180339887, 65_521
"""Multiples of the first, modulo 1, are spread evenly and are exact enough up to the second."""
_HOST = {"size": 1024, "copied": 2**24}
_CUDA = {"size": 4096, "copied": 2**27}
"""Sizes of the measurements; copies are of 64 and 512 MiB."""
_PINNED = 2**24
"""Elements that are copied over the link, 64 MiB: large blocks take long to pin."""


def measure_devices(info: Mapping[str, Any], host_device: str) -> dict[int, Peaks]:
    """Measure the devices of a profile that are in this machine, each in less than two seconds.

    A CUDA device is measured only if the process has already imported CuPy or PyTorch.

    Parameters
    ----------
    info
        The profile's info.
    host_device
        Name of this machine's host device.

    Returns
    -------
    peaks
        Device id to its peaks. Devices of other machines, and devices that no imported library can
        use, are left out.
    """
    found = {}
    for device in info.get("devices", ()):
        number, name = device.get("device_id"), device.get("name")
        if device.get("kind") == "host" and name == host_device:
            dtypes = {"float": np.float32, "double": np.float64}
            found[number] = measure(np, lambda: None, dtypes=dtypes, **_HOST)
        elif is_gpu(device) and (peaks := _cuda(number, name)) is not None:
            found[number] = peaks
    return found


def _cuda(number: int, name: str) -> Peaks | None:
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if torch is not None and torch.cuda.is_available() and number < torch.cuda.device_count():
        if torch.cuda.get_device_name(number) != name:
            return None
        dtypes = {"float": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
        host = torch.ones(_PINNED, pin_memory=True)
        pinned = host, lambda target, source: target.copy_(source, non_blocking=True)
        with torch.cuda.device(number), torch.no_grad():
            return measure(
                torch, torch.cuda.synchronize, dtypes=dtypes, pinned=pinned, device="cuda", **_CUDA
            )
    if cupy is not None and number < cupy.cuda.runtime.getDeviceCount():
        properties = cupy.cuda.runtime.getDeviceProperties(number)
        if properties["name"].decode() != name:
            return None
        import cupyx  # CuPy is imported

        dtypes = {"float": cupy.float32, "float16": cupy.float16}
        with cupy.cuda.Device(number) as device:
            host = cupyx.empty_pinned(_PINNED, np.float32)
            return measure(
                cupy, device.synchronize, dtypes=dtypes, pinned=(host, _copy_of_cupy), **_CUDA
            )
    return None


def _copy_of_cupy(target: Any, source: Any) -> None:  # noqa: ANN401
    if isinstance(target, np.ndarray):
        source.data.copy_to_host_async(target.ctypes.data, target.nbytes)
    else:
        target.data.copy_from_host_async(source.ctypes.data, source.nbytes)


def measure(
    xp: Any,  # noqa: ANN401 - an array module
    synchronize: Callable[[], object],
    *,
    size: int,
    copied: int,
    dtypes: Mapping[str, Any],
    pinned: Any = None,  # noqa: ANN401
    **options: Any,
) -> Peaks:
    """Measure the peaks of a device.

    Parameters
    ----------
    xp
        NumPy, CuPy or PyTorch, whose arrays are on the device.
    synchronize
        Function that waits until the device has finished its work.
    size
        Rows and columns of the matrices.
    copied
        Number of elements of the copied arrays, which must not fit into a cache.
    dtypes
        ONNX Runtime's name of each element type to the dtype of `xp`.
    pinned
        Pinned memory of the host: an array of up to `copied` elements of the first of `dtypes`, and
        a function that copies from its second to its first argument, one of which is on the device;
        None if the device has no link.
    **options
        Further arguments of ``xp.arange`` and ``xp.ones``, such as ``device="cuda:0"``.

    Returns
    -------
    peaks
        The peaks in the fastest of several rounds.

    Examples
    --------
    >>> import numpy as np
    >>> peaks = measure(np, lambda: None, size=64, copied=4096, dtypes={"float": np.float32})
    >>> peaks.flops_per_s["float"] > 0, peaks.bytes_per_s > 0
    (True, True)
    """
    flops = {}
    for name, dtype in dtypes.items():
        # Equal numbers take less power than others, so the clock would be too high.
        spread = xp.arange(size * size, dtype=next(iter(dtypes.values())), **options)
        spread = (spread % _PERIOD * _GOLDEN % 1 - 0.5).reshape(size, size)
        a, b = (xp.ones((size, size), dtype=dtype, **options) for _ in range(2))
        a[...], b[...] = spread, spread.T
        out = xp.ones((size, size), dtype=dtype, **options)
        seconds = _fastest(partial(xp.matmul, a, b, out=out), synchronize)
        flops[name] = 2 * size**3 / seconds
    dtype = next(iter(dtypes.values()))
    source, target = (xp.ones(copied, dtype=dtype, **options) for _ in range(2))
    seconds = _fastest(partial(target.__setitem__, ..., source), synchronize)
    link = {}
    if pinned is not None:
        host, copy = pinned
        device = target[: len(host)]
        for direction, ends in (("HtoD", (device, host)), ("DtoH", (host, device))):
            link[direction] = host.nbytes / _fastest(partial(copy, *ends), synchronize)
    return Peaks(flops, 2 * source.nbytes / seconds, link)


def _fastest(act: Callable[[], object], synchronize: Callable[[], object]) -> float:
    """Return the shortest time of one call, in seconds."""
    act()
    synchronize()
    calls = 1
    while (taken := _timed(act, synchronize, calls)) < _MIN_NS and calls < 2**20:
        calls *= 2
    best = min(taken, *(_timed(act, synchronize, calls) for _ in range(_ROUNDS)))
    return max(best, 1) / calls / 1e9


def _timed(act: Callable[[], object], synchronize: Callable[[], object], calls: int) -> int:
    begin = time.perf_counter_ns()
    for _ in range(calls):
        act()
    synchronize()
    return time.perf_counter_ns() - begin
