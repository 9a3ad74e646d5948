"""Measurement of the peaks of a profile's devices that are in this machine."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis.base.devices import is_gpu
from epprof_nb.analysis.base.peaks import Peaks, measure
from epprof_nb.host.device import device_name

if TYPE_CHECKING:
    from collections.abc import Mapping

_HOST = {"size": 1024, "copied": 2**24}
_CUDA = {"size": 4096, "copied": 2**27}
"""Sizes of the measurements; copies are of 64 and 512 MiB."""
_PINNED = 2**24
"""Elements that are copied over the link, 64 MiB: large blocks take long to pin."""


def measure_devices(info: Mapping[str, Any]) -> dict[int, Peaks]:
    """Measure the devices of a profile, each in less than two seconds.

    A CUDA device is measured only if the process has already imported CuPy or PyTorch.

    Parameters
    ----------
    info
        The profile's info.

    Returns
    -------
    peaks
        Device id to its peaks. Devices of other machines, and devices that no imported library can
        use, are left out.
    """
    found = {}
    for device in info.get("devices", ()):
        number, name = device.get("device_id"), device.get("name")
        if device.get("kind") == "host" and name == device_name():
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
