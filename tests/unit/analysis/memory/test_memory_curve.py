"""Counters of memory: exact where they can be, and with the extremes otherwise."""

import numpy as np
import pytest

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.memory.memory_curve import MemoryCurve, memory_columns, memory_tracks
from tests.helpers.memory_blocks import block, profile_of, random_profile


@pytest.fixture(scope="module")
def busy():
    prof = random_profile()
    return prof, ProfileIndex(prof)


def held(prof, at, device=0):
    """Bytes by pool, from the public table."""
    table = prof.memory_at(int(at))
    return table[table["device_id"] == device].groupby("pool", observed=True)["bytes"].sum()


def test_a_profile_without_blocks_has_no_counters():
    assert memory_tracks(ProfileIndex(profile_of([]))) == []


def test_few_changes_are_exact_at_every_time():
    prof = profile_of(
        [
            block(5, None, None, category="parameter"),
            block(40, None, 300),
            block(7, 100, 300),
            block(9, 300, 600, pool="driver"),
        ]
    )
    index = ProfileIndex(prof)
    memory, pools = memory_tracks(index)
    assert memory["parts"] == ["before this profile", "parameter", "unknown"]
    assert pools["parts"] == ["torch", "driver"]
    assert memory["peak"] == (100, 52)
    columns, by_pool = memory_columns(index, None, 100)
    assert columns["t"].tolist() == columns["at"].tolist() == [0, 100, 300, 600]
    assert columns["low"].tolist() == [45, 52, 14, 5]
    assert [columns[f"part.{part}"].tolist() for part in range(3)] == [
        [40, 40, 0, 0], [5, 5, 5, 5], [0, 7, 9, 0]
    ]  # fmt: skip
    assert by_pool["part.1"].tolist() == [0, 0, 9, 0]


@pytest.mark.parametrize("window", [None, (100_000, 300_000), (450_000, 450_900)])
@pytest.mark.parametrize("points", [50, 5_000])
def test_each_point_has_the_extremes_until_the_next(busy, window, points):
    prof, index = busy
    curve = index.cached(MemoryCurve, 0, "pool")
    columns = curve.columns(window, points)
    t, at, low = (columns[name] for name in ("t", "at", "low"))
    parts = np.stack([columns[f"part.{part}"] for part in range(3)])
    assert len(t) <= points + 1
    low_end, high_end = window or (int(curve.time[0]), int(curve.time[-1]))
    assert t[0] <= low_end or t[0] == curve.time[0]
    for point, begin in enumerate(t):
        end = t[point + 1] if point + 1 < len(t) else min(high_end, int(curve.time[-1])) + 1
        changes = curve.time[(curve.time > begin) & (curve.time < end)]
        sums = [int(curve.total[np.searchsorted(curve.time, when, "right") - 1])
                for when in [begin, *changes]]  # fmt: skip
        assert parts[:, point].sum() == max(sums)
        assert low[point] == min(sums)
        assert begin <= at[point] < max(end, begin + 1)
    for point in np.unique(np.linspace(0, len(t) - 1, 20).astype(int)):
        told = dict(zip(curve.parts, parts[:, point].tolist(), strict=True))
        assert {name: size for name, size in told.items() if size} == held(
            prof, at[point]
        ).to_dict()


def test_the_peak_is_never_hidden(busy):
    prof, index = busy
    curve = index.cached(MemoryCurve, 1, "category")
    at, nbytes = curve.peak
    for points in (10, 333, 10_000):
        columns = curve.columns(None, points)
        sums = sum(columns[f"part.{part}"] for part in range(len(curve.parts)))
        assert sums.max() == nbytes
        assert columns["at"][sums.argmax()] == at
    assert held(prof, at, 1).sum() == nbytes


def test_many_pools_are_summed_up():
    index = ProfileIndex(profile_of([block(100 - n, 10, 20, pool=f"graph {n}") for n in range(30)]))
    (_, pools) = memory_tracks(index)
    assert len(pools["parts"]) == 9
    assert pools["parts"][-1] == "other pools"
    _, columns = memory_columns(index, None, 100)
    assert columns["part.8"][0] == sum(100 - n for n in range(8, 30))
