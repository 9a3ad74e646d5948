"""Reads: copies to the host that the host waits for, and the kernels that computed the values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.copies import copied_bytes
from epprof_nb.analysis.base.device_work import KERNEL, MEMCPY
from epprof_nb.arrays.ids import unique_values
from epprof_nb.arrays.nearest import last_until
from epprof_nb.arrays.types import MISSING
from epprof_nb.util.format import size

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray


def reads_of(index: ProfileIndex, calls: IntArray) -> IntArray:
    """Return the copies to the host that some API calls waited for: rows, without duplicates.

    A call waits for the copy that it makes itself, or that the call before it on its thread made.
    """
    activities, table = (index.profile.tables[name] for name in ("activities", "api_calls"))
    copies = np.flatnonzero((index.kinds == MEMCPY) & activities.names("copy_kind").equals("DtoH"))
    of_call = np.full(len(table) + 1, MISSING, np.int64)
    of_call[index.calls.rows(activities["correlation_id"][copies])] = copies
    of_call[-1] = MISSING  # of copies without a recorded call
    found = of_call[calls]
    found = np.where(found == MISSING, of_call[_calls_before(index, calls)], found)
    return np.unique(found[found != MISSING])


def _calls_before(index: ProfileIndex, calls: IntArray) -> IntArray:
    """Return the API call before each of some calls on its thread; `MISSING` for none."""
    thread = index.profile.tables["api_calls"]["thread_id"][calls]
    before = np.full(len(calls), MISSING, np.int64)
    for number in unique_values(thread):
        rows, of_thread = index.calls_of_thread(number), np.flatnonzero(thread == number)
        order = np.argsort(rows, kind="stable")  # mostly in this order
        at = order[np.searchsorted(rows[order], calls[of_thread])]
        before[of_thread[at > 0]] = rows[at[at > 0] - 1]
    return before


def read_text(index: ProfileIndex, reads: IntArray) -> str:
    """Return what some copies read, as ``, to read 4 B after `sum_kernel` ``; empty for none."""
    if not len(reads):
        return ""
    activities = index.profile.tables["activities"]
    text = f", to read {size(int(np.median(copied_bytes(index, reads))))}"
    is_kernel = index.kinds == KERNEL
    if not is_kernel.any():
        return text
    start = np.sort(activities["start_ns"][reads])
    kernels = last_until(activities["end_ns"], is_kernel, start)
    names = activities.names("short_name")
    codes, count = np.unique(names.codes[kernels[kernels != MISSING]], return_counts=True)
    if not len(codes) or codes[0] < 0:
        return text
    return f"{text} after `{names.categories[codes[int(count.argmax())]]}`"
