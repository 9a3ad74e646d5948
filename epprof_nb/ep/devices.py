"""Devices of the provider, by name: the host device and CUDA devices."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from epprof_nb.core.errors import KernelError
from epprof_nb.ep import cuda

if TYPE_CHECKING:
    from collections.abc import Mapping

HOST = "host"


def cuda_index(device: str) -> int | None:
    """Return the number of a CUDA device; None for the host device.

    Raises
    ------
    KernelError
        If the name is not a device.
    """
    if device == HOST:
        return None
    found = re.fullmatch(r"cuda(?::(\d{1,3}))?", device) if isinstance(device, str) else None
    if not found:
        raise KernelError(
            f"device={device!r} is not supported. Kernels in Python run on the host device, "
            'device="host", or on a CUDA device, device="cuda:0".'
        )
    return int(found[1] or 0)


def options_of(device: str, stream: int | None) -> dict[str, str]:
    """Return the provider's options for a device and the user's stream."""
    index = cuda_index(device)
    if index is None:
        if stream is not None:
            raise KernelError('stream= is the address of a CUDA stream; device="host" has none.')
        return {"device": HOST}
    # ONNX Runtime chooses the device by device_id.
    options = {"device": f"cuda:{index}", "device_id": str(index)}
    if stream is not None:
        if not isinstance(stream, int) or stream <= 0:
            raise KernelError(
                f"stream={stream!r} is not the address of a stream that can be shared. Create "
                "one, and pass its address: cupy.cuda.Stream(non_blocking=True).ptr."
            )
        options["stream"] = str(stream)
    return options


def check(options: Mapping[str, str]) -> None:
    """Check the options that choose the device.

    Raises
    ------
    KernelError
        If they contradict each other, or the device cannot be used.
    """
    index = cuda_index(options.get("device", HOST))
    number = options.get("device_id")
    expected = None if index is None else str(index)
    if number != expected:
        raise KernelError(
            f"device={options.get('device', HOST)!r} needs the option "
            f"{'device_id=' + repr(expected) if expected else 'device_id to be left out'}, not "
            f"device_id={number!r}. epprof_nb.ep.provider() returns both."
        )
    if index is not None:
        cuda.check_device(index)
