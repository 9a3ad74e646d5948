"""Single-pass queries give the same results as sorting."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epprof_nb.arrays.chunks import chunks
from epprof_nb.views.queries import single_pass
from epprof_nb.views.queries.single_pass import EvenSample, same_name_neighbours
from epprof_nb.views.timeline.lanes import EventLayout
from epprof_nb.views.timeline.row_builder import build_rows

events = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 8)), min_size=1, max_size=40
)


@pytest.mark.parametrize("piece", [1, 6, 1_000])
@settings(max_examples=60, deadline=None)
@given(events, st.data())
def test_an_event_among_those_of_its_name(piece, found, data):
    names, code, start = (np.array(column) for column in zip(*found, strict=True))
    number = np.arange(2)
    event_rows = build_rows(code.astype(np.uint8), number, 0 * number, start, start + 1)
    shown = [row for row, (_, series_of, _) in enumerate(found) if series_of < 2]
    if not shown:
        return
    row = data.draw(st.sampled_from(shown))
    same = sorted((start[other], other) for other in shown if names[other] == names[row])
    at = same.index((start[row], row))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(single_pass, "chunks", partial(chunks, size=piece))
        told = same_name_neighbours(names, EventLayout(code.astype(np.uint8), event_rows), row)
    assert (told.number, told.total) == (at + 1, len(same))
    assert told.before == (same[at - 1][1] if at else None)
    assert told.after == (same[at + 1][1] if at + 1 < len(same) else None)


row = st.tuples(st.integers(-5, 50), st.booleans(), st.booleans())


@settings(max_examples=80, deadline=None)
@given(st.lists(st.lists(row, max_size=9), max_size=9), st.integers(1, 12))
def test_some_are_the_longest_and_others_near_ones_first(parts, most):
    some, wanted, first = EvenSample(most), {}, 0
    for part in parts:
        length, which, near = (np.array(c) for c in zip(*part, strict=True)) if part else [
            np.empty(0, kind) for kind in (np.int64, np.bool_, np.bool_)
        ]  # fmt: skip
        some.add(first, length, which, near)
        wanted |= {first + n: values for n, values in enumerate(part) if values[1]}
        first += len(part)
    found = some.rows.tolist()
    assert some.total == len(wanted)
    assert found == sorted(set(found))
    assert set(found) <= set(wanted)
    assert len(found) == min(most, len(wanted))
    if found:
        longest = max(max(values[0], 0) for values in wanted.values())
        assert max(max(wanted[row][0], 0) for row in found) == longest
        near = sum(values[2] for values in wanted.values())
        # One place may have gone to the longest one, wherever it is.
        assert sum(wanted[row][2] for row in found) >= min(near, most - 1)


def test_some_of_many_are_spread_evenly():
    some = EvenSample(5)
    for first in (0, 1_000):
        some.add(first, np.full(1_000, 7), np.ones(1_000, np.bool_))
    assert np.diff(some.rows[1:]).tolist() == pytest.approx([666, 666, 666], abs=1)
