"""Time that profiling added, where unprofiled runs have shown it."""

import numpy as np
import pytest

from epprof_nb.analysis.added_time.added_time import added_time
from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.summary.headline import headline_of
from tests.helpers.tiny import call, kernel, line, op, profile


def made(ops=(), activities=(), calls=(), wall=100_000, total=None):
    added = {} if total is None else {"added_ns": {"total": total, "error": 90}}
    return profile(ops, activities, calls, info={"wall_ns": wall} | added)


def test_it_is_a_share_of_the_unprofiled_time():
    found = added_time(ProfileIndex(made(total=20_000)))
    assert (found.total_ns, found.share()) == (20_000, 0.25)
    assert added_time(ProfileIndex(made(total=100_000))).share() is None
    assert added_time(ProfileIndex(made())) is None


def test_intervals_have_their_share_of_it():
    found = added_time(ProfileIndex(made(total=8_000)))
    begins, ends = np.array([0, 25_000, 30_000]), np.array([100_000, 50_000, 30_000])
    assert found.between(begins, ends).tolist() == [8_000, 2_000, 0]


def test_the_headline_says_it():
    headline = headline_of(ProfileIndex(made([line(1, 1, 0, 90_000)], total=7_400)))
    assert "profiling added about 8 %" in headline.line
    assert "measured by the warm-ups" in headline.overhead_note


def test_gains_are_those_of_the_code_without_the_profiler():
    ops = [line(1, 1, 0, 10_000_000), op(2, "a", 2_000_000, 3_000_000, 1)]
    work = [
        kernel(0, 1_000_000, 1, correlation_id=1),
        kernel(9_000_000, 10_000_000, 1, correlation_id=2),
    ]
    calls = [call(10, 20, correlation_id=1), call(8_999_000, 8_999_900, correlation_id=2)]
    gains = [
        made(ops, work, calls, wall=10_000_000, total=total).insights()["gain_ns"]
        for total in (None, 1_000_000)
    ]
    assert len(gains[0]) > 0
    assert gains[1].iloc[0] == pytest.approx(0.9 * gains[0].iloc[0])
