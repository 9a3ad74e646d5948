"""Idle time of tasks, also of coroutines that wait."""

import pytest

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.ranks.task_totals import task_table
from tests.helpers.tiny import kernel, op, profile


@pytest.mark.parametrize(
    ("work", "suspended_ns", "idle_ns"),
    [
        ((5, 75), 0, 130),
        ((5, 75), 100, 30),  # it works 70 of the 100 that the coroutine runs
        ((5, 195), 100, 0),
        ((250, 300), 100, 100),
    ],
)
def test_time_that_a_coroutine_waits_is_not_idle(work, suspended_ns, idle_ns):
    task = op(
        1, "co", 0, 200, op_type="task",
        suspended_ns=suspended_ns, duration_ns=200 - suspended_ns,
    )  # fmt: skip
    table = task_table(ProfileIndex(profile([task], [kernel(*work, 1)])))
    assert table.values("host_ns") == [200 - suspended_ns]
    assert table.values("idle_ns") == [idle_ns]
