"""transfers: bandwidth, memory kinds and overlap of the copies of each place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis.base.copies import LARGE_BYTES, copied_bytes, is_synchronous
from epprof_nb.analysis.base.device_work import MEMCPY
from epprof_nb.analysis.base.lines_of_work import Places
from epprof_nb.analysis.base.result_table import OptionalColumn, ResultTable
from epprof_nb.analysis.peaks.host_link import link_bytes_per_s
from epprof_nb.analysis.utilisation.exposed_copies import exposed
from epprof_nb.arrays.groups import group_codes, sum_by_group

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray


def transfer_table(index: ProfileIndex) -> ResultTable:
    """Return the columns of `Profile.transfers`."""
    activities, places = index.profile.tables["activities"], index.cached(Places)
    rows = np.flatnonzero(index.kinds == MEMCPY)
    place = places.of_activities(rows)
    names = {name: activities.names(name).take(rows) for name in _KINDS}
    device = activities["device_id"][rows]
    groups, first = group_codes(place, device, *(column.codes for column in names.values()))
    size, time = copied_bytes(index, rows), _durations(index, rows)
    n = len(first)

    def total(values: npt.NDArray[Any]) -> IntArray:
        return sum_by_group(groups, values.astype(np.int64), n)[:-1]

    device_ns, sizes = total(time), total(size)
    order = np.argsort(-device_ns, kind="stable")
    peak = _peaks(index, rows)[first]
    with np.errstate(divide="ignore", invalid="ignore"):
        bandwidth = np.where(device_ns > 0, sizes * 1e9 / device_ns, np.nan)
    columns = {
        "copies": total(np.ones(len(rows), np.int64)),
        "bytes": sizes,
        "device_ns": device_ns,
        "bandwidth": bandwidth,
        "peak_bandwidth": peak,
        "synchronous": total(is_synchronous(index, rows)),
        "same_size": total(_has_earlier_size(groups, size)),
        "exposed_ns": total(exposed(index, rows)),
    }
    return ResultTable(
        {
            **places.columns(place[first[order]]),
            "device_id": OptionalColumn(device[first[order]], device[first[order]] < 0),
            **{name: column.take(first[order]).compact() for name, column in names.items()},
            **{name: values[order] for name, values in columns.items()},
        }
    )


_KINDS = ("copy_kind", "src_kind", "dst_kind")


def _durations(index: ProfileIndex, rows: IntArray) -> IntArray:
    activities = index.profile.tables["activities"]
    time: IntArray = np.maximum(activities["end_ns"][rows] - activities["start_ns"][rows], 0)
    return time


def _has_earlier_size(groups: IntArray, size: IntArray) -> BoolArray:
    """Return which copies have the size of an earlier one of their group."""
    pairs, first = group_codes(groups, size)
    has_earlier = np.ones(len(pairs), np.bool_)
    has_earlier[first] = False
    return has_earlier


def _peaks(index: ProfileIndex, rows: IntArray) -> npt.NDArray[np.float64]:
    """Return the bandwidth that each copy could reach, bytes per second; NaN if unknown.

    It is the highest bandwidth of a copy of at least 1 MB in the same direction on the same device,
    or the bandwidth of the device's link if it is known and higher.
    """
    activities = index.profile.tables["activities"]
    kinds, device = activities.names("copy_kind"), activities["device_id"][rows]
    groups, first = group_codes(kinds.codes[rows], device)
    size, time = copied_bytes(index, rows), _durations(index, rows)
    large = np.flatnonzero((size >= LARGE_BYTES) & (time > 0))
    best = np.full(len(first), -np.inf)
    np.maximum.at(best, groups[large], size[large] * 1e9 / time[large])
    directions = kinds.take(rows[first]).to_list()
    for group, (of_device, direction) in enumerate(
        zip(device[first].tolist(), directions, strict=True)
    ):
        link = link_bytes_per_s(index.profile.info, of_device, direction or "")
        best[group] = max(best[group], link or -np.inf)
    best[np.isinf(best)] = np.nan
    of_copy: npt.NDArray[np.float64] = best[groups]
    return of_copy
