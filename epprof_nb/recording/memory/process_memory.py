"""Memory that this process holds on all GPUs together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epprof_nb.recording.cupti import gpu_state
from epprof_nb.recording.memory.pool_totals import used_devices

if TYPE_CHECKING:
    from collections.abc import Callable

_IDLE_BYTES = 32 << 20
"""Most memory of GPUs that no process uses: the driver itself takes some megabytes."""


class ProcessMemory:
    """Reads the memory of this process from NVML.

    Many containers hide the processes from NVML. The memory of the whole GPU then stands for that
    of this process, if no GPU was in use before this process started CUDA, and if NVML lists no
    other process since.
    """

    def __init__(self) -> None:
        self._was_alone = False
        self.context_bytes: int | None = None
        """Memory of the process when CUDA had a context and nothing was allocated; None if that was
        not measured, or if nothing reports it."""

    def measure_context(self, create: Callable[[], None]) -> None:
        """Measure the context of CUDA that `create` makes, if the process has none yet."""
        if self.context_bytes is None and not used_devices():
            create()
            self.context_bytes = self.read()

    def look(self) -> None:
        """Check whether the GPUs are in use, if this process has not started CUDA."""
        if not used_devices():
            used = gpu_state.used_bytes_if_alone()
            self._was_alone = used is not None and used < _IDLE_BYTES

    def forget(self) -> None:
        """Forget all numbers, in a forked child."""
        self._was_alone, self.context_bytes = False, None

    def read(self) -> int | None:
        """Return the bytes of this process; None if nothing reports them."""
        own = gpu_state.own_memory_bytes()
        if own is None and self._was_alone:
            return gpu_state.used_bytes_if_alone()
        return own


PROCESS = ProcessMemory()
"""The memory of this process."""
