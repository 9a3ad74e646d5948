"""State of torch's CUDA memory at an error: bytes in use, cached and free, and its blocks.

The tables of memory in a profile come from `recording.memory.torch_history`.
"""

from __future__ import annotations

import sys
from inspect import signature
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.recording.memory.history_calls import HISTORY_CALLS
from epprof_nb.recording.memory.pool_totals import torch_totals
from epprof_nb.recording.memory.torch_snapshot import AWAITING_FREE, INACTIVE, read_snapshot

if TYPE_CHECKING:
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.recording.memory.torch_snapshot import TorchSnapshot

NO_BLOCKS_ASYNC = (
    "torch uses the allocator cudaMallocAsync here, which does not report its blocks, so the free "
    "pieces are unknown."
)
NO_BLOCKS_HISTORY = "The free pieces are unknown, because {reason}."


class TorchPool(NamedTuple):
    """torch's memory of one device. All sizes are in bytes.

    Attributes
    ----------
    in_use
        Blocks that hold tensors.
    held
        Segments that torch has from the driver.
    free_blocks
        Sizes of the cached free blocks, the largest first; None if they cannot be read.
    addresses, sizes
        The blocks in use, int64, by address; empty if they cannot be read.
    reason
        Why the blocks cannot be read; "" if they were.
    waiting
        Blocks that the program has released, but that cannot be used until a stream has passed
        their last use, or a capture ends; 0 if they cannot be read.
    """

    in_use: int
    held: int
    free_blocks: tuple[int, ...] | None
    addresses: IntArray
    sizes: IntArray
    reason: str = ""
    waiting: int = 0


def read_pool(device: int) -> TorchPool:
    """Read the state of torch's memory on a device, without allocating there.

    Raises
    ------
    Exception
        An error of torch, if it cannot report its memory.
    """
    if sys.modules["torch"].cuda.memory.get_allocator_backend() != "native":
        return _totals(device, NO_BLOCKS_ASYNC)
    if reason := HISTORY_CALLS.reason():
        return _totals(device, NO_BLOCKS_HISTORY.format(reason=reason))
    return pool_of(_snapshot(), device)


def pool_of(read: TorchSnapshot, device: int) -> TorchPool:
    """Return the state of a device in a snapshot."""
    blocks, segments = read.blocks, read.segments
    here = segments.device[blocks.segment] == device
    used = here & read.in_use()
    free = np.sort(blocks.nbytes[here & (blocks.state == INACTIVE)])[::-1]
    order = np.argsort(blocks.address[used])
    return TorchPool(
        int(blocks.nbytes[used].sum()),
        int(segments.nbytes[segments.device == device].sum()),
        tuple(free.tolist()),
        blocks.address[used][order],
        blocks.nbytes[used][order],
        waiting=int(blocks.nbytes[here & (blocks.state == AWAITING_FREE)].sum()),
    )


def _snapshot() -> TorchSnapshot:
    function = sys.modules["torch"].cuda.memory.memory_snapshot
    new = "include_traces" in signature(function).parameters  # the history is not needed
    segments = function(include_traces=False) if new else function()
    return read_snapshot({"segments": segments, "device_traces": []})


def _totals(device: int, reason: str) -> TorchPool:
    none = np.zeros(0, np.int64)
    in_use, held = torch_totals(device) or (0, 0)
    return TorchPool(in_use, held, None, none, none, reason)
