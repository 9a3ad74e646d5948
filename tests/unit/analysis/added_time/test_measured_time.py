"""Time that profiling added, from times of unprofiled and profiled runs."""

import numpy as np
import pytest

from epprof_nb.analysis.added_time.measured_time import FASTER, VARY, measured_time
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
    ],
    ids=["no warm-ups", "no repeats", "too few"],
)
def test_too_few_runs_say_nothing(unprofiled, profiled):
    assert measured_time(unprofiled, np.array(profiled), 10_000) == {}


@pytest.mark.parametrize(
    ("unprofiled", "profiled", "reason"),
    [
        ([9, 1_000, 5_000, 1_000], [1_080, 4_000, 1_000], VARY),
        ([9, *[1_000] * 5, 9_000], [2_080] * 5 + [9_000], VARY),
        ([9, *range(1_000, 9_000, 1_000)], [*range(1_000, 9_000, 1_000)], VARY),
        ([9, 0, 0, 0], [1_080, 1_080, 1_080], VARY),
        ([9, *STEADY], [901, 900, 899], FASTER),
    ],
    ids=["few", "few for medians", "unsteady", "no time", "became faster"],
)
def test_what_cannot_be_told_has_a_reason(unprofiled, profiled, reason):
    assert measured_time(unprofiled, np.array(profiled), 10_000) == {"reason": reason}


@pytest.mark.parametrize("share", [0.0, 0.3, 20.0])
def test_a_few_delayed_runs_do_not_matter(share):
    unprofiled = np.array([1_000, 1_004, 997, 1_001, 999, 1_003, 1_002, 998, 1_000, 996, 1_001])
    profiled = np.rint(unprofiled * (1 + share)).astype(np.int64)
    unprofiled[3] += 9_000
    profiled[[5, 8]] += [90_000, 20_000]
    added = measured_time([9, *unprofiled.tolist()], profiled, 100_000)
    assert added["total"] == pytest.approx(100_000 * (1 - 1 / (1 + share)), abs=400)
    assert 0 < added["error"] < 1_000


@pytest.mark.parametrize("runs", [7, 15])
def test_medians_are_mostly_within_two_errors(runs):
    random = np.random.default_rng(runs)
    distances = []
    for _ in range(500):
        times = random.normal(1e6, 2e4, 2 * runs) * np.repeat([1, 3], runs)
        times += (random.random(2 * runs) < 0.15) * random.exponential(5e6, 2 * runs)
        times = times.astype(int)
        added = measured_time([9, *times[:runs].tolist()], times[runs:], 3_000_000)
        if "total" in added:
            distances.append(abs(added["total"] - 2_000_000) / added["error"])
    assert len(distances) > 400
    assert np.mean(np.array(distances) < 2) > 0.9


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


def test_the_headline_says_why_there_is_no_measurement():
    varied = headline(wall_ns=1_000, added_ns={"reason": VARY}, repeats=[[0, 500], [500, 1_000]])
    assert "profiling added: not measured, the runs vary too much" in varied.line
    assert "wall time is not known: the runs vary too much." in varied.overhead_note


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
