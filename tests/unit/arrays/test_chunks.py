"""Results do not depend on the size of the chunks in which tables are read."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

from epprof_nb.analysis.base import (
    activity_sums,
    attribution,
    device_work,
    index,
    missing_records,
)
from epprof_nb.analysis.breakdowns import by_kernel, line_totals
from epprof_nb.analysis.utilisation import launches
from epprof_nb.arrays import groups, ids
from epprof_nb.arrays.chunks import chunks
from epprof_nb.profiles import Profile
from epprof_nb.testing import synthetic_profile
from epprof_nb.views.view_model import ViewModel


def tables(profile):
    model = ViewModel(profile)
    of_lines = pd.DataFrame([(t.line, t.device_ns, t.kernels, t.top) for t in model.line_totals])
    names = ("op", "kernel", "line", "stream")
    return [
        *(model.breakdown(name).to_frame() for name in names),
        profile.gaps(1_000),
        profile.launches(),
        profile.waits(),
        of_lines,
    ]


@pytest.mark.parametrize("size", [1, 7, 500])
def test_results_do_not_depend_on_the_chunk_size(monkeypatch, size):
    made = synthetic_profile(activities=1_000, streams=3)
    shuffled = np.random.default_rng(1).permutation(1_000)
    profile = Profile(
        {**made.tables, "activities": made.tables["activities"].take(shuffled)},
        made.info,
        made.sources,
    )
    whole = tables(profile)
    for module in (
        attribution,
        device_work,
        activity_sums,
        missing_records,
        launches,
        by_kernel,
        line_totals,
        groups,
        ids,
        index,
    ):
        monkeypatch.setattr(module, "chunks", partial(chunks, size=size))
    for found, expected in zip(tables(profile), whole, strict=True):
        pd.testing.assert_frame_equal(found, expected, check_exact=True)


def test_count_distinct_works_for_any_range_of_values():
    of, values = np.array([0, 0, 1, 0, 1]), np.array([4, 4, -1, 7, 2**40])
    assert groups.count_distinct(of, values, 3).tolist() == [2, 1, 0]
    assert groups.count_distinct(of[:4], values[:4], 2).tolist() == [2, 0]
