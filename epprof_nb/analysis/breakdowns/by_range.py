"""by_range: device time of a time range, by op and by activity name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis.base.device_activity import busy_total
from epprof_nb.analysis.base.devices import device_name
from epprof_nb.analysis.base.missing_records import not_recorded
from epprof_nb.analysis.base.op_tree import NO_OP
from epprof_nb.analysis.breakdowns.range_sums import RangeAggregator, chunk_sums, merge_totals
from epprof_nb.arrays.intervals import covered_before

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.breakdowns.range_sums import NameTotals
    from epprof_nb.data.names import CategoryColumn

NO_NAME = "(no name)"


def by_range(index: ProfileIndex, start_ns: int, end_ns: int, top: int = 12) -> dict[str, Any]:
    """Break down the device time of a time range.

    Parameters
    ----------
    index
        Index of the profile.
    start_ns, end_ns
        The time range, nanoseconds since the profile's start.
    top
        Maximum number of rows of each table.

    Returns
    -------
    breakdown
        JSON-serialisable. Each activity that overlaps the range counts as one; its time is
        clipped to the range.

        ``start``, ``end``
            The range, ns.
        ``devices``
            ``device``, ``name`` and ``busy`` (ns) of each device of the profile, and ``unknown``,
            the time in which it was not recorded, unless that is 0.
        ``device_ns``
            Total time of the device work.
        ``kernels``, ``copies``, ``sets``, ``bytes``
            Numbers of kernels, copies and memsets, and the bytes of the copies.
        ``ops``, ``names``
            Device work by the op that launched it, and by the activity's name: ``rows``, each
            ``[name, count, ns]``, by descending time, and ``total``, the number of names. Both
            add up to ``device_ns``.

    Examples
    --------
    >>> from epprof_nb.analysis.base.index import ProfileIndex
    >>> from epprof_nb.testing import synthetic_profile
    >>> profile = synthetic_profile(activities=100)
    >>> by_range(ProfileIndex(profile), 0, profile.wall_ns)["kernels"]
    97
    """
    profile, time_chunks = index.profile, index.time_chunks
    of_chunks = index.cached(chunk_sums)
    whole = np.flatnonzero(time_chunks.fully_inside(start_ns, end_ns)).tolist()
    aggregator = RangeAggregator(index)
    counts, ops, names = zip(
        aggregator.sums(slice(0, 0)),
        *(of_chunks[number] for number in whole),
        *(
            aggregator.sums(rows, start_ns, end_ns)
            for rows in time_chunks.partial_rows(start_ns, end_ns)
        ),
        strict=True,
    )
    kernels, copies, memsets, size, device_ns = np.sum(counts, axis=0).tolist()
    op_names = profile.tables["ops"].names("name")
    activity_names = profile.tables["activities"].names("short_name")
    return {
        "start": start_ns,
        "end": end_ns,
        "devices": _busy(index, start_ns, end_ns),
        "device_ns": device_ns,
        "kernels": kernels,
        "copies": copies,
        "sets": memsets,
        "bytes": size,
        "ops": _table(merge_totals(ops), op_names, NO_OP, top),
        "names": _table(merge_totals(names), activity_names, NO_NAME, top),
    }


def _busy(index: ProfileIndex, start_ns: int, end_ns: int) -> list[dict[str, Any]]:
    edges = np.array([start_ns, max(start_ns, end_ns)])
    devices = []
    for device in index.device_ids:
        if device >= 0:
            total = index.cached(busy_total, device)
            before, until = covered_before(*index.busy(device), edges, total).tolist()
            gaps = index.cached(not_recorded, device)
            unknown = int(np.diff(covered_before(*gaps, edges))[0])
            name = device_name(index.profile.info, device)
            told = {"device": device, "name": name, "busy": until - before}
            # Unrecorded time is neither busy nor idle.
            devices.append(told | ({"unknown": unknown} if unknown else {}))
    return devices


def _table(totals: NameTotals, names: CategoryColumn, missing: str, top: int) -> dict[str, Any]:
    """Return the names with the most time, and the number of names."""
    order = np.lexsort((-totals.counts, -totals.ns))
    rows = [
        [names.categories[code] if code >= 0 else missing, int(count), int(time)]
        for code, count, time in zip(*(column[order[:top]] for column in totals), strict=True)
    ]
    return {"rows": rows, "total": len(order)}
