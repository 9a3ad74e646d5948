"""Sorting events into rows, and block summaries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epprof_nb.views.timeline import row_builder
from epprof_nb.views.timeline.mipmap import BLOCK
from epprof_nb.views.timeline.row_builder import build_rows

SERIES = 5

runs = st.lists(
    st.tuples(
        st.integers(0, SERIES), st.integers(1, 30), st.integers(-300, 900), st.integers(-5, 40)
    ),
    max_size=25,
)


def device_events(found):
    """Code, start and end: runs of events that follow each other, each from a time of its own."""
    code, start, end = [], [], []
    for row, count, at, length in found:
        for number in range(count):
            code.append(row)
            start.append(at + 20 * number)
            end.append(at + 20 * number + length)
    return np.array(code, np.uint8), np.array(start, np.int64), np.array(end, np.int64)


@pytest.mark.parametrize(("piece", "few"), [(7, 0), (16, 64), (50, 4)])
@settings(max_examples=30, deadline=None)
@given(runs)
def test_series_and_blocks_are_those_of_sorting_all_events(piece, few, found):
    code, start, end = device_events(found)
    numbers = np.arange(SERIES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_builder, "_CHUNK", piece)
        patch.setattr(row_builder, "_FEW_ROWS", few)
        event_rows = build_rows(code, numbers, 0 * numbers, start, end)
    clipped = np.maximum(end, start)
    drawn = np.flatnonzero(code < SERIES)
    assert sorted(event_rows.order.tolist()) == drawn.tolist()
    assert np.diff(event_rows.first).tolist() == [np.count_nonzero(code == s) for s in numbers]
    cover = np.zeros(len(drawn), np.int64)
    for s in numbers:
        low, high = event_rows.first[s : s + 2]
        rows = event_rows.order[low:high]
        assert set(code[rows].tolist()) <= {s}
        assert np.all(np.diff(start[rows]) >= 0)
        reach = np.maximum.accumulate(clipped[rows])
        laps = bool(np.any(start[rows][1:] < reach[:-1]))
        assert event_rows.overlapping[s] == laps
        before = np.concatenate((start[rows][:1], reach[:-1]))
        cover[low:high] = np.maximum(clipped[rows] - np.maximum(start[rows], before), 0)
        for block in range(-(-low // BLOCK), high // BLOCK if laps else 0):
            mine = event_rows.order[block * BLOCK : (block + 1) * BLOCK]
            assert event_rows.latest[block] == clipped[mine].max()
    for block, first in enumerate(range(0, len(drawn), BLOCK)):
        mine = event_rows.order[first : first + BLOCK]
        assert event_rows.block_start[block] == start[mine[0]]
        assert event_rows.longest[block] == (clipped - start)[mine].max()
    ends = np.minimum(np.arange(len(event_rows.covered_ns)) * BLOCK, len(drawn))
    assert event_rows.covered_ns.tolist() == np.concatenate(([0], np.cumsum(cover)))[ends].tolist()
