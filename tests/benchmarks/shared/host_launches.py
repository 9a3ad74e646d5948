"""Launches of the host device for PyTorch's operators, to try programs for GPUs without one."""

from __future__ import annotations

from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

from epprof_nb import host


class HostLaunches(TorchDispatchMode):
    """Launches work of the host device for each operator."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        host.launch(int)
        return func(*args, **(kwargs or {}))
