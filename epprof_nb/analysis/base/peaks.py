"""Peaks of a device: arithmetic by a matrix product, and bandwidth by a copy."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_MIN_NS = 20_000_000
"""Shortest duration of a measurement."""
_ROUNDS = 5
_GOLDEN, _PERIOD = 0.6180339887, 65_521
"""Multiples of the first, modulo 1, are spread evenly and are exact enough up to the second."""


@dataclass(frozen=True, slots=True)
class Peaks:
    """Peaks of a device.

    Attributes
    ----------
    flops_per_s
        ONNX Runtime's name of an element type to FLOPs per second of a matrix product.
    bytes_per_s
        Bytes read and written per second by a copy.
    link_bytes_per_s
        ``"HtoD"`` and ``"DtoH"`` to bytes per second of a copy of pinned memory; empty if the
        device has no link.
    """

    flops_per_s: dict[str, float]
    bytes_per_s: float
    link_bytes_per_s: dict[str, float] = field(default_factory=dict)

    def to_info(self) -> dict[str, Any]:
        """Return the entry of ``info["peaks"]``."""
        entry = {"flops_per_s": dict(self.flops_per_s), "bytes_per_s": self.bytes_per_s}
        if self.link_bytes_per_s:
            entry["link_bytes_per_s"] = dict(self.link_bytes_per_s)
        return entry

    def flops_of(self, dtype: str) -> float | None:
        """Return the FLOPs per second of an element type, else of float; None if unknown."""
        return self.flops_per_s.get(dtype, self.flops_per_s.get("float"))


def peaks_of(info: Mapping[str, Any]) -> dict[int, Peaks]:
    """Return the peaks in a profile's info, by device id. Malformed entries are left out."""
    entries, found = info.get("peaks"), {}
    for device, entry in entries.items() if isinstance(entries, dict) else ():
        try:
            flops, link = (
                {str(k): float(v) for k, v in entry.get(key, {}).items() if float(v) > 0}
                for key in ("flops_per_s", "link_bytes_per_s")
            )
            peaks = Peaks(flops, float(entry["bytes_per_s"]), link)
            if peaks.bytes_per_s > 0:
                found[int(device)] = peaks
        except (KeyError, TypeError, ValueError, AttributeError):
            continue
    return found


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
