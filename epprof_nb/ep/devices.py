"""Devices of the provider, by name: the host device and CUDA devices."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from epprof_nb.core.errors import KernelError
from epprof_nb.ep import cuda

if TYPE_CHECKING:
    from collections.abc import Mapping

HOST = "host"
# Numbers of the host device: among the devices of its kind, and among CUDA devices.
_NUMBERS: dict[int | None, tuple[str, ...]] = {None: ("0", "-1")}


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


def name_of(index: int | None) -> str:
    """Return the name of a CUDA device, or of the host device for None."""
    return HOST if index is None else f"cuda:{index}"


def check(options: Mapping[str, str], chosen: int | None) -> None:
    """Check the options that choose the device, if there are any.

    Parameters
    ----------
    options
        Options of a session.
    chosen
        The CUDA device of the session; None for the host device.

    Raises
    ------
    KernelError
        If an option contradicts the device, or the device cannot be used.
    """
    name, number = name_of(chosen), options.get("device_id")
    if cuda_index(options.get("device", name)) != chosen:
        raise KernelError(
            f"The option device is {options['device']}, but ONNX Runtime has chosen {name}. Leave "
            "the option out if you choose a device with add_provider_for_devices; "
            f"epprof_nb.ep.provider({options['device']!r}) returns all options otherwise."
        )
    if number is not None and number not in _NUMBERS.get(chosen, (str(chosen),)):
        raise KernelError(
            f"The option device_id is {number}, but ONNX Runtime has chosen {name}. Leave the "
            "option out if you choose a device with add_provider_for_devices."
        )
    if chosen is not None:
        cuda.check_device(chosen)
