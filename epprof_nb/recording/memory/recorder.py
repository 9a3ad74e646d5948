"""The recorder of the memory that libraries hold on GPUs, block by block."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from epprof_nb.recording.memory.arena_blocks import ArenaLog
from epprof_nb.recording.memory.host_blocks import UNREAD, HostBlocks
from epprof_nb.recording.memory.pool_totals import (
    OWN_POOL,
    pool_of_torch,
    pools_on,
    used_devices,
)
from epprof_nb.recording.memory.process_memory import PROCESS
from epprof_nb.recording.memory.torch_history import TorchHistory
from epprof_nb.recording.recorder import Recorder, RecorderOutput

if TYPE_CHECKING:
    from epprof_nb.core.options import Options
    from epprof_nb.data.table import Table
    from epprof_nb.recording.memory.pool_totals import LibraryPool


class MemoryRecorder(Recorder):
    """Records blocks of memory. See `epprof_nb.recording.recorder.Recorder`."""

    name = "memory"

    def __init__(self) -> None:
        self._process = PROCESS
        self._torch = TorchHistory(self._process)
        self._arenas = ArenaLog()
        self._host = HostBlocks()
        self._held_before: dict[tuple[str, int], int] = {}
        self._process_before: int | None = None
        self._known: dict[str, Any] = {}
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self._process.forget()
        self._torch.forget()
        self._arenas.stop()

    def start(self, options: Options) -> list[str]:
        """Start, if the options request memory."""
        self._held_before, self._process_before, self._known = {}, None, {}
        return self.extend(options)

    def extend(self, options: Options) -> list[str]:
        """Also record memory, if the options request it."""
        if options.records("memory"):
            if not self._torch.is_wanted:
                self._host.begin()
            self._process.look()
            if self._process_before is None:
                self._process_before = self._process.read() if used_devices() else 0
            self._torch.start()
            self._arenas.start(options.max_records)
            self._held_before = {
                (pool.library, device): pool.held or 0 for device, pool in _library_pools("unread")
            }
        return []

    def drain(self, *, waited: bool = True) -> RecorderOutput:
        """Return the memory since the start, at the end of a session."""
        if not waited:
            return RecorderOutput(host_memory=UNREAD if self._torch.is_wanted else None)
        memory = self._torch.take()
        reason = "" if memory else next(iter(self._torch.notes()), "")
        self._known = self._layers(reason) if self._torch.is_wanted else {}
        return RecorderOutput(
            torch_memory=memory,
            host_memory=self._host.now() if self._torch.is_wanted else None,
            arena_memory=self._arenas.take(),
            library_pools=self._known.get("pools", ()),
        )

    def notes(self) -> list[str]:
        """Return why blocks are not recorded."""
        return [*self._torch.notes(), *self._arenas.notes()]

    def describe(
        self,
        ops: Table,  # noqa: ARG002
        activities: Table,  # noqa: ARG002
    ) -> tuple[dict[str, Any], list[str]]:
        """Return the known memory of the process besides the blocks of its pools."""
        return ({"memory": self._known} if self._known else {}), []

    def stop(self) -> None:
        """Stop, and leave the libraries as they were."""
        self._torch.stop()
        self._arenas.stop()

    def _layers(self, no_blocks: str) -> dict[str, Any]:
        """Return the memory of the process and of pools without a history, at the end.

        `no_blocks` is why PyTorch's blocks could not be read; "" if they were, or it has none.
        """
        pools = [
            {
                "pool": pool.library,
                "device_id": device,
                "held_bytes": pool.held,
                "in_use_bytes": pool.in_use,
                "held_before_bytes": self._held_before.get((pool.library, device), 0),
                "note": pool.reason,
            }
            for device, pool in _library_pools(no_blocks)
        ]
        uses_gpu = bool(used_devices())
        known = {
            "context_bytes": self._process.context_bytes,
            "process_bytes": self._process.read() if uses_gpu else None,
            "process_before_bytes": self._process_before if uses_gpu else None,
            "pools": pools or None,
        }
        return {name: value for name, value in known.items() if value is not None}


def _library_pools(no_blocks: str) -> list[tuple[int, LibraryPool]]:
    """Return the pools that hold memory or cannot be read, with their devices.

    PyTorch's is among them if there is a reason why its blocks could not be read. Kernels in Python
    have blocks instead.
    """
    return [
        (device, pool)
        for device in used_devices()
        for pool in [*pools_on(device), *(pool_of_torch(device, no_blocks) if no_blocks else ())]
        if (pool.held or pool.reason) and pool.library != OWN_POOL
    ]
