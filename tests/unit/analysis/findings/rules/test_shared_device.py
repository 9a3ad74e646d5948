"""Findings on other processes that use the GPU."""

import pytest

from tests.helpers.planted import MS, info, of_kind
from tests.helpers.tiny import call, kernel, line, profile


def beside(others, busy=80, **more):
    """A profile of 100 ms, 80 of them busy, with the state of its GPU at the end."""
    state = {"after": {"gpus": [{"name": "GPU", "other_processes": others}]}}
    return profile(
        [line(1, 1, 0, 100 * MS)],
        [kernel(10 * MS, (10 + busy) * MS, 1, correlation_id=1, thread_id=1)],
        [call(0, MS, correlation_id=1, op_id=1)],
        info=info(100 * MS, gpu=state, **more),
    )


def test_a_process_that_runs_kernels_is_named():
    prof = beside([{"pid": 4321, "memory_bytes": 12 * 10**9, "sm_percent": 40.0}])
    (found,) = of_kind(prof, "shared device")
    assert found.text == (
        "Another program uses the GPU: process 4321 ran kernels for 40 % of the time, and holds "
        "12.0 GB of its memory."
    )
    assert (found.low_ns, found.gain_ns) == (0, 32 * MS)
    assert "CUDA_VISIBLE_DEVICES" in found.remedy


def test_several_processes_add_up():
    others = [{"pid": 1, "memory_bytes": None, "sm_percent": 70},
              {"pid": 2, "memory_bytes": 5, "sm_percent": 60}]  # fmt: skip
    (found,) = of_kind(beside(others), "shared device")
    assert "process 1 and 1 more ran kernels for 100 % of the time." in found.text
    assert found.gain_ns == 80 * MS


@pytest.mark.parametrize("others", [
    [],
    None,
    "x",
    [{"pid": 1, "memory_bytes": 10**9}],  # memory costs no time
    [{"pid": 1, "memory_bytes": 10**9, "sm_percent": 0.0}],
    [{"pid": 1, "memory_bytes": 10**9, "sm_percent": 1.0}],  # less than 2 %
    [{"pid": "x", "sm_percent": 50.0}, 3],
])  # fmt: skip
def test_processes_that_do_not_compute_are_no_finding(others):
    assert not of_kind(beside(others), "shared device")


def test_no_finding_where_the_gpu_is_not_known():
    prof = beside([{"pid": 1, "sm_percent": 50.0}])
    prof.info["gpu"]["after"]["gpus"].append({"name": "GPU"})
    assert not of_kind(prof, "shared device")
