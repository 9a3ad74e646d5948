"""Finding on communication that no computation hides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.devices import device_labels
from epprof_nb.analysis.base.work_classes import COMMUNICATION, work_classes
from epprof_nb.analysis.findings.finding import Finding, capitalised, op_id_of, place_name
from epprof_nb.analysis.utilisation.overlap import overlap_table
from epprof_nb.arrays.intervals import clip_times
from epprof_nb.util.format import duration, percent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.analysis.base.index import ProfileIndex


def exposed_communication(index: ProfileIndex) -> Iterator[Finding]:
    """Yield a finding on the device whose communication no computation hides for the longest."""
    communicates = index.is_device_work & (index.cached(work_classes) == COMMUNICATION)
    if not communicates.any():
        return
    table = index.cached(overlap_table)
    # Work that ends before it starts, in a damaged file, keeps no device busy.
    if not len(table["communication_ns"]):
        return
    top = int(table["communication_ns"].argmax())
    device = int(table["device_id"][top])
    alone, compute = int(table["communication_ns"][top]), int(table["compute_ns"][top])
    if not alone:
        return
    activities = index.profile.tables["activities"]
    rows = np.flatnonzero(communicates & (activities["device_id"] == device))
    starts, ends = clip_times(activities["start_ns"][rows], activities["end_ns"][rows])
    longest = int(rows[(ends - starts).argmax()])
    label = capitalised(device_labels(index.profile.info, index.device_ids)[device])
    op = int(index.activity_op[longest])
    where = place_name(index, op)
    share = alone / max(int(table["span_ns"][top]), 1)
    yield Finding(
        f"{label} only communicated for {duration(alone)} ({percent(share)} of its span)"
        f"{f', most of all in {where}' if where else ''}.",
        # Communication can overlap only with existing computation.
        min(alone, compute),
        int(activities["start_ns"][longest]),
        int(activities["end_ns"][longest]),
        kind="exposed communication",
        remedy="Communicate while there is still work to compute: use smaller buckets, or a "
        "separate stream.",
        op_id=op_id_of(index, op),
        rows=lambda: rows,
    )
