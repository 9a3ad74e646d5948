"""Counts of launched, shown and lost records by kind."""

from __future__ import annotations

from types import SimpleNamespace

from epprof_nb.data.schema import ACTIVITIES, API_CALLS
from epprof_nb.recording.session.profile_info import _recorded
from tests.helpers.tiny import call, kernel, table


def counted(names, kernels):
    """The counts for calls with correlation ids from 0 on, of which some have a kernel."""
    calls = [
        call(10 * i, 10 * i + 1, name=name, correlation_id=i, domain="driver", return_value=0)
        for i, name in enumerate(names)
    ]
    activities = [kernel(10 * i, 10 * i + 5, correlation_id=i) for i in kernels]
    tables = {"activities": table(ACTIVITIES, activities), "api_calls": table(API_CALLS, calls),
              "memory": (), "overhead": ()}  # fmt: skip
    correlated = SimpleNamespace(
        tables=tables, activities_dropped=0, ops_dropped=0, calls_dropped=0, statements_unmarked=0
    )
    return _recorded(correlated, 1_000)


def test_a_launch_without_its_kernel_is_lost():
    found = counted(["cuLaunchKernel", "cuLaunchKernelEx"], [0])
    assert (found["launched"], found["shown"], found["lost"]) == (
        {"kernel": 2}, {"kernel": 1}, {"kernel": 1},
    )  # fmt: skip


def test_launches_of_graphs_and_of_host_functions_have_no_kernel_to_lose():
    found = counted(["cuLaunchKernel", "cuGraphLaunch", "cuLaunchHostFunc"], [0])
    assert (found["launched"], found["lost"]) == ({"kernel": 1}, {})
