"""Blocks that PyTorch keeps as workspaces of cuBLAS."""

from __future__ import annotations

import gc
import os
import re
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb import _native
from epprof_nb.recording.memory.torch_tensors import addresses_of

if TYPE_CHECKING:
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.recording.memory.torch_snapshot import TorchSnapshot

_KIB = 1024
_DEFAULT, _OF_HOPPER = 8320 * _KIB, 32768 * _KIB
_HOPPER = 9
"""Compute capability from which the workspaces are larger."""
_PER_STREAM = 2
"""Threads with a workspace of their own: of the program, and of the backward pass."""


def workspace_addresses(before: TorchSnapshot, after: TorchSnapshot) -> IntArray:
    """Return the addresses of the blocks that are workspaces.

    PyTorch does not report them. They are blocks with exactly the size of a workspace that were in
    use during the whole history and in which no tensor of the program is. If there are more than a
    stream can have, some are something else, and none is returned.
    """
    sizes = {device: _sizes(device) for device in np.unique(after.segments.device).tolist()}
    blocks = after.blocks
    device = after.segments.device[blocks.segment]
    kept = after.in_use() & np.isin(blocks.address, before.blocks.address[before.in_use()])
    kept &= ~np.isin(blocks.address, after.events.address[after.events.of("alloc")])
    for number, chosen in sizes.items():
        kept &= (device != number) | np.isin(blocks.requested, chosen)
    rows = np.flatnonzero(kept)
    if not len(rows):
        return np.zeros(0, np.int64)
    rows = rows[~np.isin(blocks.address[rows], _all_tensors())]
    stream = after.segments.stream[blocks.segment]
    _, count = np.unique(np.stack([device, stream])[:, rows], axis=1, return_counts=True)
    found: IntArray = blocks.address[rows]
    return found if count.max(initial=0) <= _PER_STREAM else found[:0]


def _sizes(device: int) -> list[int]:
    """Return the sizes of workspaces, as PyTorch chooses them."""
    chosen = re.findall(r":(\d+):(\d+)", os.environ.get("CUBLAS_WORKSPACE_CONFIG", ""))
    if chosen:
        return [sum(int(size) * int(count) for size, count in chosen) * _KIB]
    major, _ = sys.modules["torch"].cuda.get_device_capability(device)
    return [_DEFAULT, _OF_HOPPER] if major >= _HOPPER else [_DEFAULT]


def _all_tensors() -> IntArray:
    """Return the addresses of all tensors that Python code could reach."""
    torch: Any = sys.modules["torch"]
    tensors = _native.instances_of(gc.get_objects(), torch.Tensor)
    with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001 - no code of subclasses
        return addresses_of(tensors)
