"""Profiles with more threads, streams and sources than a page can show."""

import numpy as np
import pytest

from epprof_nb.arrays.intervals import covered_by_group, union
from epprof_nb.views.queries.source import MAX_SOURCES, source_listing
from epprof_nb.views.timeline.lanes import MAX_LANES
from epprof_nb.views.view_model import ViewModel
from epprof_nb.views.wire.headers import first_view_header
from epprof_nb.views.wire.page_payload import page_payload
from tests.helpers.tiny import call, kernel, line, op, profile

MANY = 3 * MAX_LANES


def shown(made):
    view_model = ViewModel(made)
    page_payload(view_model)
    return view_model, first_view_header(view_model)["headline"]["notes"]


def test_the_streams_with_the_most_device_time_are_drawn():
    made = profile(
        activities=[kernel(10 * i, 10 * i + i % 9 + 1, -1, stream_id=i) for i in range(MANY)]
    )
    view_model, notes = shown(made)
    lanes = view_model.layout.lanes
    assert len(lanes) == MAX_LANES
    assert f"{MAX_LANES} of {MANY:,} streams" in notes[0]
    drawn = view_model.layout.activities.is_drawn
    durations = made.tables["activities"]["duration_ns"]
    assert drawn.sum() == MAX_LANES
    assert durations[drawn].min() >= durations[~drawn].max()
    assert len(view_model.breakdown("stream")) == MANY
    assert view_model.breakdown("stream")["busy_ns"].sum() == durations.sum()


def test_the_main_thread_and_those_with_the_most_host_time_are_drawn():
    ops = [op(1, "In[1]", 0, 1, category="cell", thread_id=10**6)]
    ops += [op(i + 2, "op", 10 * i, 10 * i + i % 7 + 1, thread_id=i) for i in range(MANY)]
    calls = [call(0, 1, thread_id=i + 2 * MANY) for i in range(MANY)]
    view_model, notes = shown(profile(ops=ops, api_calls=calls))
    threads = [lane.thread for lane in view_model.layout.lanes]
    assert threads[0] == 10**6
    assert len(threads) == MAX_LANES
    assert f"{MAX_LANES} of {2 * MANY + 1:,} threads" in notes[0]


def test_the_sources_with_the_most_device_time_are_shown():
    names = [f"In[{i}]" for i in range(MANY)]
    busy = names[-1]
    made = profile(
        ops=[line(1, 1, 0, 10, cell=busy)],
        activities=[kernel(0, 5, 1)],
        sources=dict.fromkeys(names, "x = 1\n"),
    )
    view_model, notes = shown(made)
    listed = [part["cell"] for part in source_listing(view_model)]
    assert len(listed) == MAX_SOURCES
    assert listed == [*names[: MAX_SOURCES - 1], busy]
    assert f"{MAX_SOURCES} of {MANY:,} cells" in notes[0]


def test_a_profile_that_fits_has_no_notes():
    activities = [kernel(i, i + 1, -1, stream_id=i) for i in range(MAX_LANES)]
    view_model, notes = shown(profile(activities=activities))
    assert len(view_model.layout.lanes) == MAX_LANES
    assert notes == []


@pytest.mark.parametrize("seed", range(5))
def test_covered_by_group_is_the_union_of_each_group(seed):
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 20, 500)
    starts = rng.integers(-1000, 1000, 500)
    ends = starts + rng.integers(-3, 60, 500)
    expected = [
        int(np.subtract(*union(starts[groups == g], ends[groups == g])[::-1]).sum())
        for g in range(21)
    ]
    assert covered_by_group(groups, starts, ends, 21).tolist() == expected
