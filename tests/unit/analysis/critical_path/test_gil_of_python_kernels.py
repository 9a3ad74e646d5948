"""Kernels of the host device, which need the GIL, beside code of the cell."""

from tests.helpers.planted import info
from tests.helpers.tiny import call, kernel, op, profile

HOST = {"devices": [{"device_id": 0, "kind": "host"}], "versions": {"python": "3.11.7"}}


def bounds(name, reads_at, more=HOST):
    """The bounds of a saving, of 300: a kernel of 100, and code of 100 until 220.

    The cell waits for the kernel from `reads_at` on.
    """
    until = 110 if reads_at < 110 else reads_at + 10
    ops = [
        op(1, "In[1]", 0, 300, op_type="cell", thread_id=1),
        op(2, "launch", 0, 10, 1, thread_id=1),
        op(3, "read", reads_at, until, 1, thread_id=1),
        op(4, "code", *((120, 220) if reads_at < 110 else (10, 110)), 1, thread_id=1),
    ]
    calls = [
        call(0, 5, correlation_id=1, op_id=2),
        call(reads_at, until, correlation_id=2, op_id=3, name="cudaStreamSynchronize"),
    ]
    kernels = [kernel(10, 110, 2, correlation_id=1, thread_id=1)]
    prof = profile(ops, kernels, calls, info=info(300, cell="In[1]", **more))
    row = prof.what_if({name: 0}).iloc[0]
    return row["saving_low_ns"], row["saving_ns"], row["saving_high_ns"]


def test_code_that_does_not_wait_for_a_kernel_may_take_turns_with_it():
    assert bounds("read", 15) == (0, 95, 95)
    assert bounds("waits", 15) == (0, 95, 95)


def test_kernels_of_a_gpu_run_beside_code():
    assert bounds("read", 15, {}) == (95, 95, 95)
    assert bounds("launch", 200, {})[1:] == (10, 10)


def test_code_that_ran_beside_a_kernel_may_have_waited_for_it():
    low, point, high = bounds("launch", 200)
    assert (low, point) == (10, 10)
    assert high == 60


def test_code_that_ran_beside_a_kernel_may_do_so_again():
    assert bounds("read", 200) == (10, 10, 10)
