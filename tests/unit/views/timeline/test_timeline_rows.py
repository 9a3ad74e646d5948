"""Sorting events into rows, and block summaries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epprof_nb import _native
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


@pytest.mark.parametrize("code_type", [np.uint8, np.uint16, np.uint32])
@settings(max_examples=30, deadline=None)
@given(runs)
def test_series_and_blocks_are_those_of_sorting_all_events(code_type, found):
    code, start, end = device_events(found)
    numbers = np.arange(SERIES)
    event_rows = build_rows(code.astype(code_type), numbers, 0 * numbers, start, end)
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


def test_rows_that_do_not_fit_are_refused():
    order, code = np.zeros(1, np.int32), np.zeros(2, np.uint8)
    with pytest.raises(ValueError, match="differ in length"):
        _native.order_rows(order, np.zeros(1, np.int64), code, 1)
    first, times, block = np.array([0, 1]), np.zeros(1, np.int64), np.zeros(1, np.int64)
    flags = np.zeros((2, 1), np.bool_)
    with pytest.raises(ValueError, match="differ in length"):
        _native.summarise_rows(
            block, block.copy(), flags[0], flags[1], first, order + 1, times, times, 16
        )
