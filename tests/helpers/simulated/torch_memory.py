"""torch's CUDA memory, simulated with tensors of the CPU, with a limit and a snapshot."""

from __future__ import annotations

import weakref

import torch

from epprof_nb.recording.memory.history_calls import HISTORY_CALLS


class SimulatedMemory:
    """The allocator of a simulated device.

    Parameters
    ----------
    total
        Bytes of the device.
    device
        Its number.

    Attributes
    ----------
    observers
        What was attached to be called when an allocation fails.
    snapshots
        Number of snapshots that were taken.
    cached, cached_state
        Sizes of the blocks without a tensor, and their state in snapshots.
    """

    def __init__(self, total: int, device: int = 0) -> None:
        self.total, self.device = total, device
        self.observers: list = []
        self.snapshots = 0
        self.cached: list[int] = []
        self.cached_state = "inactive"
        self.backend = "native"
        self.history = False
        self._blocks: dict[int, int] = {}

    def patch(self, monkeypatch) -> None:
        """Let torch's functions on CUDA memory answer from here."""
        core, cuda = torch._C, torch.cuda
        for owner, name, value in (
            (core, "_cuda_attach_out_of_memory_observer", self._attach),
            (core, "_cuda_memorySnapshot", self._snapshot),
            (core, "_cuda_isHistoryEnabled", lambda: self.history),
            (cuda, "is_initialized", lambda: True),
            (cuda, "mem_get_info", lambda _: (self.free, self.total)),
            (cuda.memory, "get_allocator_backend", lambda: self.backend),
            (cuda, "memory_stats", self._stats),
            (HISTORY_CALLS, "_stacks", 0),  # else stacks of one test concern all later ones
        ):
            monkeypatch.setattr(owner, name, value, raising=False)

    @property
    def held(self) -> int:
        """Bytes that the allocator has from the driver."""
        return sum(self._blocks.values()) + sum(self.cached)

    @property
    def free(self) -> int:
        """Bytes that the driver has free."""
        return self.total - self.held

    def empty(self, nbytes: int, **options) -> torch.Tensor:
        """Allocate a tensor of bytes; raises what torch raises if there is no memory."""
        if nbytes > max([self.free, *self.cached]):
            for observer in self.observers:
                observer(self.device, nbytes, self.total, self.free)
            raise torch.OutOfMemoryError(
                f"CUDA out of memory. Tried to allocate {nbytes / 2**20:.2f} MiB. "
                f"GPU {self.device} has a total capacity of {self.total / 2**20:.2f} MiB of which "
                f"{self.free / 2**20:.2f} MiB is free."
            )
        tensor = torch.empty(nbytes // 4, **options)
        self._blocks[tensor.data_ptr()] = nbytes
        weakref.finalize(tensor, self._blocks.pop, tensor.data_ptr(), None)
        return tensor

    def _attach(self, observer) -> None:
        if self.backend != "native":
            raise RuntimeError(f"{self.backend} does not yet support attachOutOfMemoryObserver")
        self.observers.append(observer)

    def _snapshot(self, _) -> dict:
        self.snapshots += 1
        live = [(a, n, "active_allocated") for a, n in self._blocks.items()]
        free = [(16 + 8 * i, n, self.cached_state) for i, n in enumerate(self.cached)]
        segments = [
            {
                "device": self.device, "address": address, "total_size": size, "stream": 0,
                "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False,
                "blocks": [
                    {"address": address, "size": size, "requested_size": size, "state": state}
                ],
            }
            for address, size, state in (*live, *free)
        ]  # fmt: skip
        return {"segments": segments, "device_traces": [], "allocator_settings": {}}

    def _stats(self, _) -> dict[str, int]:
        return {
            "allocated_bytes.all.current": sum(self._blocks.values()),
            "reserved_bytes.all.current": self.held,
        }
