"""Snapshots of PyTorch's allocator that a GPU machine recorded, and what PyTorch said of them.

``training`` is two steps of GPT-2 with AdamW, from before the first to after the second; ``graph``
is later, without a history, when a CUDA graph had a pool of its own (torch 2.11 on an H200).
"""

from __future__ import annotations

import gzip
import json
import pickle
import threading
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parents[1] / "data" / "memory"


def recorded_snapshot(name: str) -> dict[str, Any]:
    """Return the snapshot with this name."""
    with gzip.open(_FOLDER / f"torch_2_11_{name}.pickle.gz") as file:
        snapshot: dict[str, Any] = pickle.load(file)
    return snapshot


def recorded_numbers() -> dict[str, Any]:
    """Return statistics of PyTorch, NVML and the driver at these times, and clock readings."""
    numbers: dict[str, Any] = json.loads((_FOLDER / "torch_2_11_numbers.json").read_text())
    return numbers


def snapshot_before(after: dict[str, Any]) -> dict[str, Any]:
    """Return the snapshot with which the history of ``training`` began.

    All that its steps allocated they released, so only segments are left out.
    """
    (trace,) = after["device_traces"]
    added = {entry["addr"] for entry in trace if entry["action"] == "segment_alloc"}
    segments = [segment for segment in after["segments"] if segment["address"] not in added]
    return {"segments": segments, "device_traces": []}


class Allocator:
    """A small model of PyTorch's allocator, whose snapshots have its format.

    It splits and merges as PyTorch's does, in one segment, and keeps its own statistics. Requests
    are rounded up to one of the `divisions` of the range from a power of two to the next.
    """

    def __init__(
        self, segment_bytes: int, *, begin_us: int = 1_000_000, divisions: int = 0
    ) -> None:
        self.divisions = divisions
        self.base, self.segment_bytes = 0x7F0000000000, segment_bytes
        self.used: dict[int, tuple[int, int]] = {}
        self.now_us, self.allocated, self.peak = begin_us, 0, 0
        self.trace: list[dict[str, Any]] = []
        self.texts = threading.local()

    def _note(self, action: str, address: int, size: int) -> None:
        entry = {"action": action, "addr": address, "size": size, "stream": 0}
        text = getattr(self.texts, "value", "")
        self.trace.append(entry | {"time_us": self.now_us, "user_metadata": text})

    def _free(self) -> list[tuple[int, int]]:
        ends = [(a, a + size) for a, (size, _) in sorted(self.used.items())]
        begins = [self.base, *(end for _, end in ends)]
        limits = [*(begin for begin, _ in ends), self.base + self.segment_bytes]
        return [(b, e - b) for b, e in zip(begins, limits, strict=True) if e > b]

    def alloc(self, requested: int) -> int:
        """Allocate in the smallest piece that is large enough."""
        size = -(-requested // 512) * 512
        if self.divisions and requested > 512 * self.divisions:
            power = 1 << (requested.bit_length() - 1)
            marks = (power + power * i // self.divisions for i in range(self.divisions + 1))
            size = min(mark for mark in marks if mark >= requested)
        room, address = min((room, a) for a, room in self._free() if room >= size)
        left = room - size
        if size > 1 << 20 and left <= 1 << 20:
            size = room
        self.used[address] = size, requested
        self.allocated += size
        self.peak = max(self.peak, self.allocated)
        self._note("alloc", address, requested)
        return address

    def free(self, address: int) -> None:
        """Release a block."""
        size, requested = self.used.pop(address)
        self.allocated -= size
        self._note("free_requested", address, requested)
        self._note("free_completed", address, requested)

    def snapshot(self) -> dict[str, Any]:
        """Return the snapshot, with the history so far."""
        blocks = [
            {"address": a, "size": size, "requested_size": r, "state": "active_allocated"}
            for a, (size, r) in self.used.items()
        ]
        blocks += [
            {"address": a, "size": size, "requested_size": 0, "state": "inactive"}
            for a, size in self._free()
        ]
        segment = {
            "device": 0, "address": self.base, "total_size": self.segment_bytes, "stream": 0,
            "segment_type": "large", "blocks": sorted(blocks, key=lambda b: b["address"]),
        }  # fmt: skip
        taken = {"segments": [segment], "device_traces": [list(self.trace)]}
        divisions = {str(1 << i): self.divisions for i in range(16)}
        taken["allocator_settings"] = {"roundup_power2_divisions": divisions}
        self._note("snapshot", 0, self.allocated)
        return taken
