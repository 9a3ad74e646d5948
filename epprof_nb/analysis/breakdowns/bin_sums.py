"""Sums of device work by time bin, for exact breakdowns of any range of whole bins.

An activity adds its time to each bin in which it runs, and its count and bytes to its first bin.
Activities that started before a bin and still run in it are counted separately: a range that begins
with this bin counts them, and a range that begins earlier has already counted them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb import _native
from epprof_nb.analysis.base.device_activity import busy_total
from epprof_nb.analysis.base.device_work import MEMCPY
from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.ids import mask_as_rows
from epprof_nb.arrays.intervals import covered_before
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray

_MAX_BINS = 512
_MAX_CELLS = 1 << 21
"""Maximum number of bins times groups while the sums are computed."""


@dataclass(frozen=True, slots=True)
class BinSums:
    """Sums of the device work of each time bin by group: kind, name of the op, own name.

    Attributes
    ----------
    edges
        Ends of the bins, int64 ns, ascending, shape ``(bins + 1,)``.
    kind, op, name
        Of each group: code in `ACTIVITY_KINDS`, code of the op's name and of the short name of the
        activity, `MISSING` for none.
    bin, group
        Of each entry: a bin, and a group that has work there. Entries are sorted by bin.
    started, running
        Of each entry: number of activities that start in the bin, and number of earlier activities
        that still run.
    started_bytes, running_bytes
        Bytes of the copies among them.
    ns
        Of each entry: time of these activities within the bin.
    busy
        Of each device of the profile: busy time before each edge, ns, shape ``(bins + 1,)``.
    """

    edges: IntArray
    kind: IntArray
    op: IntArray
    name: IntArray
    bin: IntArray
    group: IntArray
    started: IntArray
    running: IntArray
    started_bytes: IntArray
    running_bytes: IntArray
    ns: IntArray
    busy: dict[int, IntArray]


def bin_sums(index: ProfileIndex, start_ns: int, end_ns: int, max_entries: int) -> BinSums | None:
    """Sum up the device work of a time range by bins of equal length.

    Parameters
    ----------
    index
        Index of the profile.
    start_ns, end_ns
        The time range, ns; work outside of it is left out.
    max_entries
        Maximum number of entries, and of busy times. The number of bins is a power of two within
        this limit.

    Returns
    -------
    sums
        None if a single bin has too many entries.
    """
    activities = index.profile.tables["activities"]
    start, end = activities["start_ns"], activities["end_ns"]
    inside = index.is_device_work & (start < end_ns) & ((end > start_ns) | (start >= start_ns))
    rows = mask_as_rows(inside)
    op_names = np.append(index.profile.tables["ops"].names("name").codes, np.int32(MISSING))
    columns = (
        index.kinds[rows],
        op_names[index.activity_op[rows]],
        activities.names("short_name").codes[rows],
    )
    groups, first = group_codes(*columns)
    devices = [device for device in index.device_ids if device >= 0]
    bins = min(_MAX_BINS, 1 << (end_ns - start_ns).bit_length() - 1)
    while bins > 1 and (bins * len(first) > _MAX_CELLS or bins * len(devices) > max_entries):
        bins //= 2
    if max(len(first), len(devices)) > max_entries:
        return None
    # Rounded: the viewer rounds the times of a marked range.
    edges = start_ns + (np.arange(bins + 1) * (end_ns - start_ns) + bins // 2) // bins
    size, is_copy = np.empty(0, np.int64), columns[0] == MEMCPY
    if is_copy.any():
        size = np.where(is_copy, np.maximum(activities["bytes"][rows], 0), 0)
    cells = _cells(edges, (start[rows], end[rows]), groups, size, count=len(first))
    while (found := int(np.count_nonzero(cells.any(axis=0)))) > max_entries and bins > 1:
        cells, edges, bins = _halved(cells), edges[::2], bins // 2
    if found > max_entries:
        return None
    bin_of, group_of = np.nonzero(cells.any(axis=0))
    started, running, started_bytes, running_bytes, ns = cells[:, bin_of, group_of]
    busy = {
        device: covered_before(*index.busy(device), edges, index.cached(busy_total, device))
        for device in devices
    }
    kind, op, name = (column[first].astype(np.int64) for column in columns)
    return BinSums(
        edges, kind, op, name, bin_of, group_of,
        started, running, started_bytes, running_bytes, ns, busy,
    )  # fmt: skip


def _cells(
    edges: IntArray,
    times: tuple[IntArray, IntArray],
    groups: IntArray,
    size: IntArray,
    *,
    count: int,
) -> IntArray:
    """Return the five sums of each bin and group, shape ``(5, bins, count)``.

    An activity is added where it begins and ends, and a running sum fills the bins between: the
    cost does not depend on the length of activities.
    """
    sums = np.zeros((6, len(edges), count), np.int64)
    start, end = map(np.ascontiguousarray, times)
    _native.add_to_bins(sums, edges, start, end, groups, size)
    started, started_bytes, ns, whole, running, running_bytes = sums
    ns[:-1] += np.cumsum(whole, axis=0)[:-1] * np.diff(edges)[:, None]
    running, running_bytes = np.cumsum(running, axis=0), np.cumsum(running_bytes, axis=0)
    cells: IntArray = np.stack([started, running, started_bytes, running_bytes, ns])[:, :-1]
    return cells


def _halved(cells: IntArray) -> IntArray:
    """Merge pairs of bins; activities that run into a pair run into its first bin."""
    merged = cells[:, ::2] + cells[:, 1::2]
    for row in (1, 3):
        merged[row] = cells[row, ::2]
    return merged
