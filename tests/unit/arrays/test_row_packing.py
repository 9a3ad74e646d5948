"""Packing of overlapping intervals into rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epprof_nb.arrays import row_packing
from epprof_nb.arrays.row_packing import pack_rows


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), min_size=1, max_size=40),
    st.integers(0, 3),
)
def test_without_a_limit_no_events_of_a_row_overlap(events, vectorised_rows):
    start = np.array([begin for begin, _ in events], np.int64)
    end = start + np.array([length for _, length in events], np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_packing, "_MANY_ROWS", vectorised_rows)
        rows = pack_rows(start, end)
    for row in range(int(rows.max()) + 1):
        mine = np.flatnonzero(rows == row)
        mine = mine[np.lexsort((end[mine], start[mine]))]
        assert (start[mine[1:]] >= end[mine[:-1]]).all()
    depth = max(int(((start <= t) & (end > t)).sum()) for t in range(71))
    assert rows.max() < max(depth, 1) + (end == start).sum()
