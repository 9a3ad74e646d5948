"""by_range against summing up activity by activity."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from epprof_nb.analysis.base import time_chunks
from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.base.time_chunks import TimeChunks
from epprof_nb.analysis.breakdowns.by_range import by_range
from epprof_nb.arrays.chunks import chunks
from epprof_nb.testing import synthetic_profile
from tests.helpers.tiny import activity, kernel, op, profile

BUSY = ("kernel", "memcpy", "memset")


def by_hand(frame, ops, start, end):
    """Add up row by row, in Python's own integers."""
    told = {"device_ns": 0, "bytes": 0, "kernel": 0, "memcpy": 0, "memset": 0}
    names, launchers, busy = {}, {}, set()
    for row in frame.itertuples():
        inside = row.end_ns > start and row.start_ns < end
        inside |= row.start_ns == row.end_ns and start <= row.start_ns < end
        if row.kind not in BUSY or not inside:
            continue
        first, last = max(row.start_ns, start), min(row.end_ns, end)
        busy.update(range(first, last))
        told["device_ns"] += max(last - first, 0)
        told[row.kind] += 1
        if row.kind == "memcpy":
            told["bytes"] += row.bytes
        launcher = ops.name.get(row.op_id, None) or "(no op)"
        for sums, name in ((names, row.name), (launchers, launcher)):
            count, spent = sums.get(name, (0, 0))
            sums[name] = (count + 1, spent + max(last - first, 0))
    return told, names, launchers, len(busy)


@pytest.fixture(scope="module", params=["in order", "in any order"])
def small(request):
    """Sixty activities of at most 400 ns on two streams, some of them of one moment."""
    rng = np.random.default_rng(4)
    starts = rng.integers(0, 3_000, 60)
    starts = starts if request.param == "in any order" else np.sort(starts)
    kinds = rng.choice(["kernel", "memcpy", "memset", "synchronization"], 60)
    rows = [
        activity(
            str(kind), int(start), int(start + rng.integers(0, 400)), int(rng.integers(1, 5)),
            name=f"{kind} {rng.integers(3)}", stream_id=int(rng.integers(2)), bytes=int(start),
        )
        for start, kind in zip(starts, kinds, strict=True)
    ]  # fmt: skip
    return profile([op(i, f"op {i % 2}", 0, 4_000) for i in range(1, 4)], rows)


@pytest.mark.parametrize("piece", [1, 8, 1_000])
@pytest.mark.parametrize("span", [(0, 4_000), (500, 1_700), (1_000, 1_001), (2_000, 2_000)])
def test_range_counts_overlapping_activities_and_clips_their_time(small, span, piece, monkeypatch):
    monkeypatch.setattr(time_chunks, "chunks", partial(chunks, size=piece))
    told = by_range(ProfileIndex(small), *span, top=100)
    expected, names, launchers, busy = by_hand(small.activities, small.ops, *span)
    assert told["device_ns"] == expected["device_ns"]
    assert (told["kernels"], told["copies"], told["sets"], told["bytes"]) == (
        expected["kernel"], expected["memcpy"], expected["memset"], expected["bytes"],
    )  # fmt: skip
    assert {name: (count, ns) for name, count, ns in told["names"]["rows"]} == names
    assert {name: (count, ns) for name, count, ns in told["ops"]["rows"]} == launchers
    assert [d["busy"] for d in told["devices"]] == [busy]


def test_tables_have_the_top_rows_and_the_number_of_names(small):
    told = by_range(ProfileIndex(small), 0, 4_000, top=2)
    assert len(told["names"]["rows"]) == 2
    assert told["names"]["total"] > 2
    spent = [ns for _, _, ns in told["names"]["rows"]]
    assert spent == sorted(spent, reverse=True)


def test_overlapping_work_counts_once_as_busy_and_twice_as_time():
    told = by_range(ProfileIndex(profile([], [kernel(0, 100), kernel(50, 150)])), 0, 200)
    assert told["devices"][0]["busy"] == 150
    assert told["device_ns"] == 200
    assert told["ops"]["rows"] == [["(no op)", 2, 200]]


def test_a_graph_launch_counts_where_its_nodes_were_not_recorded():
    launch = activity("graph_launch", 10, 40, name="graph", correlation_id=1)
    told = by_range(ProfileIndex(profile([], [launch])), 0, 100)
    assert told["devices"][0]["busy"] == told["device_ns"] == 30


def test_range_of_a_profile_without_activities_is_empty():
    told = by_range(ProfileIndex(profile([op(1, "a", 0, 10)], [])), 0, 10)
    assert told["devices"] == []
    assert told["device_ns"] == 0
    assert told["names"] == {"rows": [], "total": 0}


def test_adjacent_ranges_add_up_to_the_whole():
    index = ProfileIndex(synthetic_profile(activities=3_000))
    end = index.profile.wall_ns + 1
    cuts = np.linspace(0, end, 8).astype(int)
    parts = [by_range(index, int(a), int(b)) for a, b in pairwise(cuts)]
    whole = by_range(index, 0, end)
    assert sum(part["device_ns"] for part in parts) == whole["device_ns"]
    assert sum(part["devices"][0]["busy"] for part in parts) == whole["devices"][0]["busy"]


@pytest.mark.parametrize("piece", [1, 7, 1_000])
def test_overlap_mask_has_the_rows_that_overlap_the_range(small, piece, monkeypatch):
    monkeypatch.setattr(time_chunks, "chunks", partial(chunks, size=piece))
    table = small.tables["activities"]
    found = TimeChunks(table)
    for low, high in ((0, 4_000), (700, 1_900), (1_000, 1_001), (5_000, 6_000)):
        expected = [
            first < high and (last > low or first >= low)
            for first, last in zip(table["start_ns"], table["end_ns"], strict=True)
        ]
        assert found.overlap_mask(low, high).tolist() == expected


def test_time_chunks_find_long_events_that_began_earlier():
    rows = [kernel(0, 1_000), *(kernel(i, i + 1) for i in range(1, 900))]
    found = TimeChunks(profile([], rows).tables["activities"]).overlap_mask(950, 960)
    assert np.flatnonzero(found).tolist() == [0]
