"""Analyses by device take one pass over the activities, not one for each device."""

from __future__ import annotations

from collections import Counter

from epprof_nb.analysis.base.device_activity import copies, queued_launches
from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.utilisation.idle_intervals import idle_intervals
from epprof_nb.data.table import Table
from tests.helpers.tiny import activity, kernel, profile


def test_the_rows_of_each_device_are_its_work():
    index = ProfileIndex(profile([], [
        kernel(0, 10, device_id=3),
        activity("memcpy", 5, 9, device_id=0, bytes=4),
        activity("synchronization", 5, 20, device_id=0),
        kernel(10, 20),
        kernel(20, 30, device_id=3),
        kernel(20, 30, device_id=None),
        activity("synchronization", 5, 20, device_id=7),
    ]))  # fmt: skip
    rows = {device: index.work_of(device).tolist() for device in index.device_ids}
    assert rows == {-1: [5], 0: [1, 3], 3: [0, 4], 7: []}


def test_no_device_costs_a_pass_over_all_activities(monkeypatch):
    count = 500
    index = ProfileIndex(
        profile([], [kernel(100 * i, 100 * i + 50, device_id=i) for i in range(count)])
    )
    read = Counter()
    original = Table.__getitem__

    def counted(table, name):
        read[name] += 1
        return original(table, name)

    monkeypatch.setattr(Table, "__getitem__", counted)
    for device in index.device_ids:
        assert len(index.busy(device)[0]) == len(queued_launches(index, device).t) / 2 == 1
        assert len(copies(index, device).start) == 0
    assert len(idle_intervals(index).start) == count - 1
    # Code that compares the device of every activity reads this column.
    assert read["device_id"] < 10
