"""The samples of a recording as a table, and their numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.arrays.ids import mask_as_slice, unique_values
from epprof_nb.arrays.intervals import contain
from epprof_nb.data.schema import HOST_SAMPLES
from epprof_nb.data.table import Table
from epprof_nb.recording.native_columns import numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from epprof_nb.arrays.types import BoolArray, IntArray

COUNTS = ("exact", "outer", "inconsistent", "dropped")


def sample_table(
    drained: Sequence[dict[str, Any]],
    begin_ns: int,
    end_ns: int,
    calls: tuple[IntArray, IntArray, IntArray],
) -> Table:
    """Return the samples of a time range that were taken outside of API calls.

    Parameters
    ----------
    drained
        What `_native.drain_samples` returned; empty dicts for none.
    begin_ns, end_ns
        The time range, on the clock of the native core.
    calls
        Thread, start and end of the recorded API calls. Calls of the host device are known only
        once they have ended, so threads in them were sampled.

    Returns
    -------
    samples
        A table of schema `epprof_nb.data.schema.HOST_SAMPLES`, in which `stack_id` is the native
        core's number.
    """

    def get(name: str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        parts = [numbers(raw, name, dtype) for raw in drained if raw]
        return np.concatenate(parts) if parts else np.empty(0, dtype)

    samples = Table(
        HOST_SAMPLES,
        {
            "start_ns": get("time", np.int64),
            "thread_id": get("thread_id", np.uint64).astype(np.int64),
            "stack_id": get("stack_id", np.int32),
            "interval_ns": get("interval", np.int64),
            "processor_ns": get("processor", np.int64),
            "core_wait_ns": get("core_wait", np.int64),
        },
    )
    time = samples["start_ns"]
    is_kept = (time >= begin_ns) & (time <= end_ns)
    is_kept &= ~_in_call(samples["thread_id"], time, *calls)
    return samples.take(is_kept)


def _in_call(
    thread: IntArray, time: IntArray, threads: IntArray, starts: IntArray, ends: IntArray
) -> BoolArray:
    """Return which samples were taken in an API call of their thread."""
    found = np.zeros(len(time), np.bool_)
    for one in unique_values(thread):
        calls, rows = mask_as_slice(threads == one), np.flatnonzero(thread == one)
        found[rows] = contain(starts[calls], ends[calls], time[rows])
    return found


def sample_counts(
    drained: Sequence[dict[str, Any]], before: Sequence[dict[str, Any]]
) -> dict[str, int] | None:
    """Return the numbers of samples by their outcome; None if none were taken.

    Parameters
    ----------
    drained, before
        What `_native.drain_samples` returned in the recording and before it; its counts are those
        since the start.
    """
    if not drained or not drained[-1]:
        return None
    earlier = before[-1] if before else {}
    return {name: drained[-1][name] - earlier.get(name, 0) for name in COUNTS}
