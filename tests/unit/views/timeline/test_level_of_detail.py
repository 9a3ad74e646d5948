"""The rectangles of a window account for all of its events."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.arrays.intervals import clip_times
from epprof_nb.arrays.row_packing import pack_rows
from epprof_nb.views.timeline import lanes, level_of_detail
from epprof_nb.views.timeline.row_builder import build_rows
from tests.helpers import tiny


def ordered(code, start, end, event_rows=3):
    start, end = clip_times(np.array(start, np.int64), np.array(end, np.int64))
    numbers = np.arange(event_rows)
    return build_rows(np.array(code, np.uint8), numbers, np.zeros(event_rows, int), start, end)


def pairs_of(drawn):
    return zip(drawn[::2], drawn[1::2], strict=False)


def union_length(start, end):
    """Nanoseconds covered, one interval after another."""
    covered, reach = 0, None
    for begin, stop in sorted(zip(start, end, strict=True)):
        low = begin if reach is None else max(begin, reach)
        covered += max(stop - low, 0)
        reach = stop if reach is None else max(reach, stop)
    return covered


events = st.lists(
    st.tuples(st.integers(0, 3), st.integers(-50, 500), st.integers(-20, 60)), max_size=120
)


# Drawn as bytes, because Hypothesis takes long to draw long lists of tuples.
crowds = st.binary(min_size=160, max_size=600).map(
    lambda drawn: [(a >> 7, a % 61, b % 4) for a, b in pairs_of(drawn)]
)


def one_after_another(found):
    at = np.cumsum([gap + length for _, gap, length in found])
    return [(code, int(end) - length, length)
            for (code, _, length), end in zip(found, at, strict=True)]  # fmt: skip


queues = st.binary(min_size=160, max_size=600).map(
    lambda drawn: one_after_another(
        [(a >> 7, (0, 0, 0, 1, 9)[a % 5], b % 3) for a, b in pairs_of(drawn)]
    )
)


@settings(max_examples=80, deadline=None)
@given(events | crowds | queues, st.integers(-80, 400), st.integers(1, 500), st.integers(1, 40))
def test_rectangles_add_up_to_the_events_of_the_window(found, low, length, bins):
    code = [c for c, _, _ in found]
    start = np.array([s for _, s, _ in found], np.int64)
    end = start + np.array([d for _, _, d in found], np.int64)
    event_rows = ordered(code, start, end)
    rects = level_of_detail.rects_in_window(event_rows, low, low + length, np.full(3, bins))
    clipped = np.maximum(end, start)
    seen = np.zeros(len(found), int)
    for i in range(len(rects.begin)):
        members = event_rows.order[rects.begin[i] : rects.begin[i] + rects.members[i]]
        seen[members] += 1
        assert {code[m] for m in members} == {rects.row_index[i]}
        lengths = clipped[members] - start[members]
        assert rects.start[i] == start[members].min()
        assert rects.start[i] + rects.dur[i] == clipped[members].max()
        longest = event_rows.order[rects.event[i]]
        assert longest in members
        assert clipped[longest] - start[longest] == lengths.max()
        assert 0 <= rects.cover[i] <= rects.dur[i]
        if rects.members[i] > 1:
            # Within one bin, and the half of one that a block may be longer.
            first = max(start[members].min(), low)
            assert start[members].max() - first <= 1.5 * length / bins + 1
    assert seen.max(initial=0) <= 1
    reaches = (clipped >= low) & (start <= low + length) & (np.array(code, int) < 3)
    assert np.all(seen[reaches] == 1)
    # Apart from events that reach into the window, only events of overlapping rows.
    extra = np.flatnonzero((seen == 1) & ~reaches)
    assert all(event_rows.overlapping[code[e]] for e in extra)
    for s in range(3):
        mine = rects.row_index == s
        assert mine.sum() <= 3 * bins + 2 or rects.members[mine].max() == 1
        if not event_rows.overlapping[s]:
            members = np.flatnonzero((seen == 1) & (np.array(code, int) == s))
            assert rects.cover[mine].sum() == union_length(start[members], clipped[members])


@settings(max_examples=60, deadline=None)
@given(events | crowds | queues)
def test_of_the_whole_the_cover_is_the_union_even_where_events_overlap(found):
    code = [c for c, _, _ in found]
    start = np.array([s for _, s, _ in found], np.int64)
    end = np.maximum(start + np.array([d for _, _, d in found], np.int64), start)
    event_rows = ordered(code, start, end)
    rects = level_of_detail.rects_in_window(
        event_rows, -1000, max(end, default=0) + 1, np.full(3, 7)
    )
    for s in range(3):
        mine = np.flatnonzero(np.array(code, int) == s)
        assert rects.members[rects.row_index == s].sum() == len(mine)
        assert event_rows.covered_ns[-1] == sum(
            union_length(start[np.array(code, int) == n], end[np.array(code, int) == n])
            for n in range(3)
        )


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 30), st.integers(0, 2)), max_size=60),
    st.integers(1, 6),
)
def test_rows_are_those_of_placing_one_event_after_another(found, rows):
    start = np.array([s for s, _, _ in found], np.int64)
    end = start + np.array([d for _, d, _ in found], np.int64)
    least = np.minimum(np.array([r for _, _, r in found], np.int64), rows - 1)
    expected = np.zeros(len(found), int)
    free = [-1] * rows
    for i in np.lexsort((-end, start)):
        row = int(least[i])
        while row < rows - 1 and free[row] > start[i]:
            row += 1
        free[row] = max(free[row], end[i])
        expected[i] = row
    assert pack_rows(start, end, least, rows).tolist() == expected.tolist()


@settings(max_examples=60, deadline=None)
@given(crowds | queues, st.integers(1, 6), st.sets(st.integers(0, 79), max_size=8))
def test_what_is_kept_stays_by_itself_in_a_crowd(found, bins, rows):
    code = [c for c, _, _ in found]
    start = np.array([s for _, s, _ in found], np.int64)
    end = start + np.array([d for _, _, d in found], np.int64)
    event_rows = ordered(code, start, end)
    keep = level_of_detail.positions_of(event_rows, np.isin(np.arange(len(found)), list(rows)))
    rects = level_of_detail.rects_in_window(event_rows, 0, 5000, np.full(3, bins), keep=keep)
    assert rects.members.sum() == len(found)
    assert rects.members[np.isin(rects.event, keep)].tolist() == [1] * len(keep)


@pytest.mark.parametrize("overlap", [0, 40, 5000])
@pytest.mark.parametrize("bins", [1, 7, 300])
def test_many_thousand_events_add_up_as_few_do(overlap, bins):
    rng = np.random.default_rng(overlap + bins)
    gaps = np.where(rng.random(60_000) < 0.001, 3000, rng.integers(0, 5, 60_000))
    length = rng.integers(0, 30, 60_000)
    start = np.cumsum(gaps + length) - length
    end = start + length + np.where(rng.random(60_000) < 0.01, rng.integers(0, overlap + 1), 0)
    code = (np.arange(60_000) >= 40_007).astype(np.uint8)
    event_rows = ordered(code, start, end, 2)
    low, high = int(start[5_000]) + 1, int(start[55_000])
    rects = level_of_detail.rects_in_window(event_rows, low, high, np.full(2, bins))
    for i, begin in enumerate(rects.begin.tolist()):
        members = event_rows.order[begin : begin + rects.members[i]]
        length = end[members] - start[members]
        assert end[event_rows.order[rects.event[i]]] - start[
            event_rows.order[rects.event[i]]
        ] == max(length)
        assert rects.start[i] == start[members[0]]
        assert rects.start[i] + rects.dur[i] == end[members].max()
        assert len(members) == 1 or max(length) < (high - low) / bins or overlap
        assert start[members[-1]] <= max(rects.start[i], low) + 1.5 * (high - low) / bins + 1
    assert rects.members.sum() == np.count_nonzero((end >= low) & (start <= high)) or overlap
    for s in range(2 if not overlap else 0):
        mine = np.flatnonzero((code == s) & (end >= low) & (start <= high))
        assert rects.cover[rects.row_index == s].sum() == (end - start)[mine].sum()


def test_many_overlapping_clusters_are_placed_as_few_are():
    begin = np.repeat(np.arange(300) * 100, 3)
    start = begin + np.tile([0, 10, 30], 300)
    end = begin + np.tile([50, 20, 90], 300)
    assert pack_rows(start, end, np.zeros(900, int), 4).tolist() == [0, 1, 1] * 300


def test_a_long_event_stays_by_itself_among_short_ones():
    start = np.concatenate([np.arange(0, 1000, 2), [1000], np.arange(9000, 10_000, 2)])
    end = start + 1
    end[500] = 9000
    event_rows = ordered(np.zeros(len(start)), start, end)
    rects = level_of_detail.rects_in_window(event_rows, 0, 10_000, np.full(3, 10))
    alone = np.flatnonzero(rects.members == 1)
    assert (rects.start[alone], rects.dur[alone]) == ([1000], [8000])
    assert rects.members.sum() == 1001
    # Idle time between rectangles remains idle.
    assert rects.start[-1] >= 9000


@pytest.mark.parametrize("most", [10, 1000, 50_000])
def test_the_number_of_rectangles_is_bounded_whatever_the_number_of_lanes(most):
    counts = np.full(10_000, 500)
    bins = level_of_detail.allocate_bins(counts, np.full(10_000, 1000.0), most)
    assert bins.min() >= 1
    assert np.minimum(counts, 2 * bins).sum() <= max(most, 2 * 10_000)


def test_marked_rows_are_found_at_their_positions():
    rng = np.random.default_rng(3)
    code, start = rng.integers(0, 4, 5000), rng.integers(0, 10**6, 5000)
    event_rows = ordered(code, start, start + 5)
    marked = rng.random(5000) < 0.01
    at = level_of_detail.positions_of(event_rows, marked)
    assert set(event_rows.order[at]) == set(np.flatnonzero(marked & (code < 3)))
    rects = level_of_detail.rects_in_window(event_rows, 0, 10**6, np.full(3, 50))
    holds = level_of_detail.contains_any(rects, at)
    for i, holding in enumerate(holds):
        members = event_rows.order[rects.begin[i] : rects.begin[i] + rects.members[i]]
        assert holding == marked[members].any()


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ([], []),
        ([5], [5]),
        ([5], [-9]),
        ([-(2**63)], [2**63 - 1]),
        ([0, 10**18], [1, 10**18 + 1]),
        ([9, 3, 6, 1], [10, 4, 7, 2]),
    ],
)
def test_odd_times_are_drawn(start, end):
    event_rows = ordered([0] * len(start), start, end)
    rects = level_of_detail.rects_in_window(event_rows, -(2**61), 2**61, np.full(3, 100))
    assert rects.members.sum() == len(start)
    assert (rects.dur >= 0).all()
    assert (rects.cover <= rects.dur).all()


def test_as_many_streams_as_can_be_drawn_have_a_lane_each():
    count = lanes.MAX_LANES
    rows = [tiny.kernel(i, i + 1, stream_id=i % count) for i in range(2 * count)]
    profile = tiny.profile(activities=rows)
    laid = lanes.build_layout(profile, ProfileIndex(profile))
    assert len(laid.lanes) == count
    assert laid.activities.event_rows.lane[laid.activities.row_index].tolist() == [
        i % count for i in range(2 * count)
    ]


def test_what_runs_at_once_in_one_stream_has_rows_of_its_own():
    profile = tiny.profile(
        activities=[tiny.kernel(0, 10), tiny.kernel(5, 8), tiny.kernel(12, 14), tiny.kernel(0, 3)]
    )
    laid = lanes.build_layout(profile, ProfileIndex(profile))
    assert laid.activities.event_rows.row[laid.activities.row_index].tolist() == [0, 1, 0, 1]
    assert [lane.rows for lane in laid.lanes] == [2]
