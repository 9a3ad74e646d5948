"""Collectives of gloo that PyTorch issued in C++, from its flight recorder, as ops.

DistributedDataParallel reduces gradients in C++, where no function can be replaced. PyTorch keeps
its newest collectives (`TORCH_FR_BUFFER_SIZE`) in a flight recorder, with the communicator, the
number in it, the size and the time of each call, but not its end.
"""

from __future__ import annotations

import json
import math
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb import _native
from epprof_nb.analysis.ranks.collective_kinds import CALL
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import MISSING, OPS
from epprof_nb.data.table import Table, concat
from epprof_nb.recording.epoch import pair_with_epoch
from epprof_nb.recording.ops_by_time import OpsByTime

if TYPE_CHECKING:
    from epprof_nb.arrays.types import IntArray

_BACKEND = "gloo:"
_SLACK_NS = 50_000
"""Tolerated difference between the clocks of the flight recorder and of the ops."""


def with_flight_recorder(ops: Table, opened_ns: int, stopped_ns: int) -> Table:
    """Return the ops with the collectives of gloo that no replaced function has seen.

    Parameters
    ----------
    ops
        The ops of a recording, with absolute times.
    opened_ns, stopped_ns
        Begin and end of the recording.

    Returns
    -------
    ops
        The ops, sorted by start. Added ones have no duration.
    """
    found = _entries(opened_ns, stopped_ns)
    known = np.flatnonzero(ops.names("op_type").equals(CALL))
    if found and len(known):
        start, end = ops["start_ns"][known], ops["end_ns"][known]
        at = np.array([entry["at_ns"] for entry in found])
        # Calls of one thread follow each other.
        before = np.searchsorted(start - _SLACK_NS, at, side="right") - 1
        is_known = (before >= 0) & (at <= end[before] + _SLACK_NS)
        found = [entry for entry, seen in zip(found, is_known.tolist(), strict=True) if not seen]
    if not found:
        return ops
    times = np.array([entry["at_ns"] for entry in found], np.int64)
    threads = np.array([entry["thread_id"] for entry in found], np.int64)
    ids = _native.reserve_op_ids(len(found)) + np.arange(len(found), dtype=np.int64)
    added = Table(
        OPS,
        {
            "op_id": ids,
            "parent_op_id": _innermost(ops, times, threads),
            "name": CategoryColumn.of([entry["kind"] for entry in found]),
            "op_type": CategoryColumn.constant(CALL, len(found)),
            "category": CategoryColumn.constant("framework", len(found)),
            "source": CategoryColumn.constant("torch", len(found)),
            "thread_id": threads,
            "start_ns": times,
            "end_ns": times,
            "count": np.ones(len(found), np.int64),
            "status": CategoryColumn.constant("complete", len(found)),
            "args": CategoryColumn.of([json.dumps(entry["args"]) for entry in found]),
        },
    )
    both = concat([ops, added])
    return both.in_start_order()


def _innermost(ops: Table, times: IntArray, threads: IntArray) -> IntArray:
    """Return the op that was open on a thread at each time."""
    found = np.full(len(times), MISSING, np.int64)
    for thread in np.unique(threads).tolist():
        of_thread = OpsByTime(ops.take(ops["thread_id"] == thread))
        rows = np.flatnonzero(threads == thread)
        found[rows] = of_thread.ids(times[rows], times[rows])
    return found


def _entries(opened_ns: int, stopped_ns: int) -> list[dict[str, Any]]:
    """Return the collectives of gloo in a stretch of time, by time."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available():
        return []
    native = sys.modules["torch._C._distributed_c10d"]
    monotonic, epoch = pair_with_epoch()
    with suppress(Exception):  # the interface is not public
        entries = json.loads(native._dump_fr_trace_json())["entries"]  # noqa: SLF001
        threads = {thread.ident: thread.native_id for thread in threading.enumerate()}
        sizes = _sizes(sys.modules.get("torch.distributed.distributed_c10d"))
        found = [
            _entry(entry, threads, sizes, monotonic - epoch)
            for entry in entries
            if str(entry["profiling_name"]).startswith(_BACKEND)
        ]
        inside = [entry for entry in found if opened_ns <= entry["at_ns"] <= stopped_ns]
        return sorted(inside, key=lambda entry: entry["at_ns"])
    return []


def _sizes(module: Any) -> dict[str, int]:  # noqa: ANN401 - torch.distributed.distributed_c10d
    """Return the number of ranks of each communicator that still exists, by its name."""
    with suppress(Exception):  # the interface is not public
        return {name: group.size() for group, name in module._world.pg_names.items()}  # noqa: SLF001
    return {}


def _entry(
    entry: dict[str, Any], threads: dict[int | None, int | None], sizes: dict[str, int], shift: int
) -> dict[str, Any]:
    kind = str(entry["profiling_name"]).removeprefix(_BACKEND)
    communicator = str(entry["process_group"][0])
    side = "output" if kind == "reduce_scatter" else "input"
    types = entry[f"{side}_dtypes"]
    args: dict[str, object] = {"communicator": communicator}
    if communicator in sizes:
        args["ranks"] = sizes[communicator]
    args["bytes"] = sum(
        math.prod(shape) * _ITEM_BYTES.get(name, 4)
        for shape, name in zip(entry[f"{side}_sizes"], types, strict=True)
    )
    args["number"] = int(entry["collective_seq_id"])
    return {
        "at_ns": int(entry["time_created_ns"]) + shift,
        "thread_id": threads.get(int(entry["thread_id"])) or threading.main_thread().native_id or 0,
        "kind": kind,
        "args": args,
    }


_ITEM_BYTES = {
    "Byte": 1, "Char": 1, "Bool": 1, "Short": 2, "Half": 2, "BFloat16": 2, "Int": 4, "Float": 4,
    "Long": 8, "Double": 8, "ComplexFloat": 8, "ComplexDouble": 16,
}  # fmt: skip
"""Bytes of an element by the type's name in the flight recorder."""
