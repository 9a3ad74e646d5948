"""Time that intervals cover, against a count of each nanosecond."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from epprof_nb.arrays.intervals import contain, covered_before, covered_between, union

SPANS = st.lists(st.tuples(st.integers(-5, 40), st.integers(0, 9)), max_size=12)
TIMES = st.lists(st.integers(-20, 60), max_size=30)


@given(SPANS, TIMES, st.booleans())
def test_covered_time_is_that_of_each_nanosecond(spans, times, is_sorted):
    starts, ends = union(*(np.array(ns, np.int64) for ns in _times(spans)))
    inside = {t for start, length in spans for t in range(start, start + length)}
    asked = np.array(sorted(times) if is_sorted else times, np.int64)
    expected = [sum(t < time for t in inside) for time in asked.tolist()]
    assert covered_before(starts, ends, asked).tolist() == expected
    assert covered_before(starts, ends, asked + 0.5).tolist() == [
        sum(min(1, max(0, time + 0.5 - t)) for t in inside) for time in asked.tolist()
    ]
    until = asked[::-1]
    between = covered_between(starts, ends, asked, until)
    assert between.tolist() == (np.array(expected[::-1]) - np.array(expected)).tolist()


@given(SPANS, st.sampled_from(["as given", "by start", "latest first"]))
def test_a_union_has_each_nanosecond_once_in_intervals_that_do_not_touch(spans, order):
    spans = {"by start": sorted(spans), "latest first": sorted(spans)[::-1] * 9}.get(order, spans)
    starts, ends = union(*(np.array(ns, np.int64) for ns in _times(spans)))
    inside = sorted({t for start, length in spans for t in range(start, start + length)})
    found = [t for start, end in zip(starts, ends, strict=True) for t in range(start, end)]
    assert found == inside
    assert (starts[1:] > ends[:-1]).all()


@given(st.integers(0, 60))
def test_intervals_of_any_order_have_the_same_union(count):
    starts = 3 * np.arange(count)[::-1]
    for order in (slice(None), slice(None, None, -1)):
        merged, _ = union(starts[order], starts[order] + 2)
        assert merged.tolist() == starts[::-1].tolist()


@given(SPANS, TIMES)
def test_a_time_is_in_an_interval_from_its_start_until_before_its_end(spans, times):
    starts, ends = (np.array(ns, np.int64) for ns in _times(spans))
    inside = {t for start, length in spans for t in range(start, start + length)}
    found = contain(starts, ends, np.array(times, np.int64))
    assert found.tolist() == [time in inside for time in times]


def _times(spans):
    return [start for start, _ in spans], [start + length for start, length in spans]
