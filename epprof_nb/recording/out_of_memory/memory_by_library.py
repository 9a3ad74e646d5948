"""Memory of a device by the library that holds it, as far as the libraries report it."""

from __future__ import annotations

import sys
from typing import NamedTuple

from epprof_nb.data.out_of_memory_explanation import Pool
from epprof_nb.recording.memory.pool_totals import pools_on
from epprof_nb.recording.out_of_memory.torch_pool import TorchPool, read_pool


class DeviceMemory(NamedTuple):
    """Size of a device and its free bytes."""

    total: int
    free: int


def torch_pool(device: int) -> TorchPool | None:
    """Return torch's memory of a device; None if torch does not use it."""
    torch = sys.modules.get("torch")
    try:
        if torch is None or not torch.cuda.is_initialized():
            return None
        return read_pool(device)
    except Exception:  # noqa: BLE001 - a broken context reports nothing
        return None


def other_pools(device: int) -> list[Pool]:
    """Return the memory of other libraries than torch, of those that have some."""
    pools = pools_on(device)
    return [Pool(one.library, one.in_use or 0, one.held) for one in pools if one.held]


def device_memory(device: int) -> DeviceMemory | None:
    """Return the size of a CUDA device and its free bytes; None if no library reports them."""
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    try:
        if torch is not None and torch.cuda.is_initialized():
            free, total = torch.cuda.mem_get_info(device)
            return DeviceMemory(total, free)
        if cupy is not None:
            free, total = cupy.cuda.Device(device).mem_info
            return DeviceMemory(total, free)
    except Exception:  # noqa: BLE001, S110 - a broken context reports nothing
        pass
    return None
