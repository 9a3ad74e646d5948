"""Time of a rank's devices between two moments, by the op that launched the work."""

import pytest

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.ranks.device_time import DeviceTime
from tests.helpers.tiny import kernel, op, profile


@pytest.mark.parametrize(
    ("begin", "end", "expected"),
    [
        (0, 100, {"a": 30, "b": 15, "c": 10}),
        (15, 30, {"a": 15}),
        (45, 60, {"b": 10}),
        (90, 100, {}),
    ],
)
def test_overlapping_work_counts_once(begin, end, expected):
    """The work of b starts within that of a, and c's after all of them."""
    work = [
        kernel(10, 40, 1),
        kernel(20, 55, 2, stream_id=8),
        kernel(25, 30, 2, stream_id=9),
        kernel(70, 80, 3),
        kernel(12, 90, 3, stream_id=8, name="ncclDevKernel_AllReduce_Sum_f32_RING_LL"),
    ]
    ops = [op(1, "a", 0, 9), op(2, "b", 9, 20), op(3, "c", 20, 90)]
    found = DeviceTime(ProfileIndex(profile(ops, work))).times(begin, end)
    assert {place.name: ns for place, ns in found.items()} == expected
