"""One pass over pieces of activities gives what the whole table gives."""

from __future__ import annotations

import numpy as np
import pytest

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.base.index_in_pieces import NotInOnePassError
from epprof_nb.analysis.breakdowns.by_device import device_table
from epprof_nb.analysis.breakdowns.devices_in_pieces import DevicePass
from epprof_nb.analysis.ranks.communication import communication
from epprof_nb.profiles import Profile
from epprof_nb.testing import synthetic_profile
from tests.helpers.tiny import activity, profile


def pieces(prof, sizes):
    activities = prof.tables["activities"]
    bounds = np.cumsum([0, *sizes])
    return [
        activities.take(np.arange(low, min(high, len(activities))))
        for low, high in zip(bounds, [*bounds[1:], len(activities)], strict=True)
    ]


def random_profile(numbers, *, talks):
    """Overlapping work of two devices and of none, with copies between the devices."""
    start, rows = 0, []
    for _ in range(int(numbers.integers(1, 60))):
        start += int(numbers.integers(0, 40))
        kind = str(numbers.choice(["kernel", "memcpy", "memset", "synchronization"]))
        names = ["ncclDevKernel_AllReduce", "gemm"] if talks else ["gemm"]
        rows.append(
            activity(
                kind, start, start + int(numbers.integers(0, 200)),
                name=str(numbers.choice(names)), device_id=int(numbers.choice([-1, 0, 5])),
                stream_id=int(numbers.integers(3)), bytes=int(numbers.integers(-1, 9)),
                src_device_id=int(numbers.choice([-1, 0, 5])),
                dst_device_id=int(numbers.choice([-1, 0, 5])),
            )
        )  # fmt: skip
    return profile(activities=rows, info={"wall_ns": start + 300})


@pytest.mark.parametrize("seed", range(40))
def test_pieces_of_any_size_have_the_sums_of_the_whole(seed):
    numbers = np.random.default_rng(seed)
    prof = random_profile(numbers, talks=seed % 2)
    found = DevicePass(pieces(prof, numbers.integers(0, 9, 8)), prof.info)
    index = ProfileIndex(prof)
    whole = device_table(index)
    for name in whole.columns:
        assert found.table().values(name) == whole.values(name), name
    assert found.communication == communication(index)


def test_a_large_profile_has_the_sums_of_the_whole():
    prof = synthetic_profile(activities=10_000)
    activities = prof.tables["activities"]  # in the order of their launches
    in_order = activities.take(np.argsort(activities["start_ns"], kind="stable"))
    prof = Profile({**prof.tables, "activities": in_order}, prof.info)
    table = DevicePass(pieces(prof, [3_000, 3_000, 1, 2_000]), prof.info).table()
    whole = device_table(ProfileIndex(prof))
    assert {n: table.values(n) for n in table.columns} == {
        n: whole.values(n) for n in whole.columns
    }


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([activity("kernel", 10, 20), activity("kernel", 0, 5)], "order of their starts"),
        ([activity("graph_launch", 0, 5)], "graph launch"),
    ],
)
def test_activities_that_need_the_whole_table_are_refused(rows, reason):
    prof = profile(activities=rows, info={"wall_ns": 100})
    with pytest.raises(NotInOnePassError, match=reason):
        DevicePass([prof.tables["activities"]], prof.info)


def test_a_profile_without_a_wall_time_is_refused():
    with pytest.raises(NotInOnePassError, match="wall time"):
        DevicePass([], {})
