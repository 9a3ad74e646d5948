"""Time that profiling added, from times of unprofiled and profiled runs."""

import numpy as np
import pytest

from epprof_nb.analysis.added_time.measured_time import measured_time
from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.summary.headline import headline_of
from tests.helpers.tiny import kernel, profile

STEADY = [1_000, 1_010, 990]


@pytest.mark.parametrize("share", [0.0, 0.08, 0.5, 4.0])
def test_it_is_the_difference_of_steady_runs(share):
    profiled = np.array([round(time * (1 + share)) for time in STEADY])
    added = measured_time([50_000, *STEADY], profiled, int(profiled.sum()))
    assert added["total"] == pytest.approx(3_000 * share, abs=2)
    assert 0 < added["error"] < 0.01 * profiled.sum()


@pytest.mark.parametrize("seed", range(5))
def test_the_true_value_is_mostly_within_two_errors(seed):
    random = np.random.default_rng(seed)
    found = []
    for _ in range(300):
        runs = random.normal(1e6, 1e4, 16) * np.repeat([1, 1.2], [9, 7])
        times = runs.astype(int)
        added = measured_time(times[:9].tolist(), times[9:], 1_200_000)
        found.append(abs(added["total"] - 200_000) <= 2 * added["error"])
    assert np.mean(found) > 0.9


@pytest.mark.parametrize(
    ("unprofiled", "profiled"),
    [
        ([], [1_000] * 9),
        ([9, *[1_000] * 9], [1_080]),
        ([9, 1_000, 1_000], [1_080, 1_080, 1_080]),
        ([9, 1_000, 5_000, 1_000], [1_080, 4_000, 1_000]),
        ([9, 0, 0, 0], [1_080, 1_080, 1_080]),
        ([9, *STEADY], [901, 900, 899]),
    ],
    ids=["no warm-ups", "no repeats", "too few", "unsteady", "no time", "became faster"],
)
def test_what_cannot_be_told_is_missing(unprofiled, profiled):
    assert measured_time(unprofiled, np.array(profiled), 10_000) == {}


def test_repeats_that_are_faster_by_chance_added_nothing():
    assert measured_time([9, *STEADY], np.array([999, 985, 995]), 2_979)["total"] == 0


def headline(**info):
    return headline_of(ProfileIndex(profile([kernel(1, 0, 20)], info=info)))


def test_the_headline_says_a_notable_share():
    noted = headline(wall_ns=1_080, added_ns={"total": 80, "error": 5})
    assert noted.added == 0.08
    assert "profiling added about 8 %" in noted.line
    assert "Profiling added 8.0 % to the wall time, measured" in noted.overhead_note
    little = headline(wall_ns=1_020, added_ns={"total": 20, "error": 5})
    assert "profiling added" not in little.line
    assert "Profiling added 2.0 %" in little.overhead_note


@pytest.mark.parametrize("added", [None, {}, {"total": 1_000, "error": 1}])
def test_without_a_measurement_the_headline_says_nothing(added):
    info = {"wall_ns": 1_000} if added is None else {"wall_ns": 1_000, "added_ns": added}
    assert "profiling added" not in headline(**info).line.lower()


def test_the_error_is_that_of_the_time_and_not_of_the_ratio():
    """If profiling slows code down fourfold, an error of the ratio is a small one of the time."""
    random = np.random.default_rng(7)
    distances = []
    for _ in range(400):
        times = (random.normal(1e6, 1e4, 20) * np.repeat([1, 4], [10, 10])).astype(int)
        added = measured_time([9, *times[:10].tolist()], times[10:], 4_000_000)
        distances.append((added["total"] - 3_000_000) / added["error"])
    assert 0.8 < np.std(distances) < 1.25
