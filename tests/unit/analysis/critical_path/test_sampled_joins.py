"""Waits for threads that no op connects, found by samples."""

import numpy as np
import pytest

from epprof_nb.data.schema import HOST_SAMPLES
from tests.helpers import tiny
from tests.helpers.planted import info
from tests.helpers.tiny import line, op, profile
from tests.helpers.walked_stacks import stack_rows, with_stacks

MS = 1_000_000
JOIN, OTHER = "In[1]:2 threading.py:Thread.join:1119", "In[1]:2 train.py:prepare:9"


def joined(*, samples=((150, JOIN), (500, JOIN)), ends=(830, 600), own=()):
    """A cell whose second line waits for two threads, with some more ops of the cell's thread."""
    rows, ids = stack_rows(JOIN, OTHER)
    of_text = dict(zip((JOIN, OTHER), ids, strict=True))
    ops = [
        op(1, "In[1]", 0, 1_000, op_type="cell", thread_id=1),
        line(2, 2, 100, 900, 1, thread_id=1),
        *(op(3 + i, f"worker {i}", 110, end, thread_id=2 + i) for i, end in enumerate(ends)),
        *(op(9 + i, "own", *times, 2, thread_id=1) for i, times in enumerate(own)),
    ]
    found = with_stacks(profile(ops, info=info(1_000, cell="In[1]")), rows)
    found.tables["host_samples"] = tiny.table(
        HOST_SAMPLES,
        [
            {"start_ns": time, "stack_id": of_text[text], "interval_ns": 10, "thread_id": 1}
            for time, text in samples
        ],
    )
    return found


def saving(prof, *names):
    return prof.what_if(dict.fromkeys(names, 0.0))["saving_ns"].iloc[-1]


def test_the_longest_of_the_joined_threads_is_the_limit():
    prof = joined()
    path = prof.critical_path()
    assert "worker 0" in path["name"].tolist()
    assert path["duration_ns"].sum() == 1_000
    assert saving(prof, "worker 0") == 230  # until the other one ends
    assert saving(prof, "worker 1") == 0
    assert saving(prof, "worker *") == 720
    assert prof.what_if({"worker 0": 0.5})["saving_ns"].item() == 230


def test_a_thread_that_works_does_not_wait():
    assert saving(joined(samples=[(150, OTHER), (500, OTHER)]), "worker 0") == 0
    # It works from its op on, until the worker has ended.
    assert saving(joined(samples=[(150, JOIN)], own=[(200, 850)]), "worker *") == 90


def test_a_thread_whose_work_goes_on_is_not_what_was_waited_for():
    assert saving(joined(ends=(600, 910)), "worker 1") == 0
    assert saving(joined(ends=(600, 910)), "worker 0") == 490


def woken_loop(*jobs):
    """An event loop that waits from 1 ms to 9 ms, and the work of another thread."""
    ops = [
        op(1, "In[1]", 0, 10 * MS, op_type="cell", thread_id=1),
        line(2, 2, 0, MS, 1, thread_id=1),
        line(3, 3, 9 * MS, 10 * MS, 1, thread_id=1),
        *(op(4 + i, "job", *times, thread_id=2) for i, times in enumerate(jobs)),
    ]
    rows, (select,) = stack_rows("In[1]:2 selectors.py:EpollSelector.select:468")
    found = with_stacks(profile(ops, info=info(10 * MS, cell="In[1]")), rows)
    samples = [
        {"start_ns": time, "stack_id": select, "interval_ns": MS, "thread_id": 1}
        for time in range(2 * MS, 9 * MS, MS)
    ]
    found.tables["host_samples"] = tiny.table(HOST_SAMPLES, samples)
    return found


def test_an_event_loop_waits_for_work_that_ends_just_before_it_goes_on():
    assert saving(woken_loop((MS, 8_900_000)), "job") == 7_900_000
    assert saving(woken_loop((MS, 4 * MS), (5 * MS, 8_900_000)), "job") == 6_900_000
    # It waits for a timer or a file.
    assert saving(woken_loop((MS, 7 * MS)), "job") == 0
    assert saving(woken_loop((MS, 9_500_000)), "job") == 0


def test_an_event_loop_waits_as_well_where_samples_miss_it():
    """It goes on three times after a job, and samples see it wait before the last one."""
    ops = [op(1, "In[1]", 0, 10 * MS, op_type="cell", thread_id=1)]
    for i, begin in enumerate((0, 3 * MS, 6 * MS, 9 * MS)):
        ops.append(op(2 + i, "own", begin, begin + MS, 1, thread_id=1))
        ops.append(op(10 + i, "job", begin + MS, begin + 2_900_000, thread_id=2))
    sampled = woken_loop()
    prof = profile(ops[:-1], info=info(10 * MS, cell="In[1]"))
    samples = sampled.tables["host_samples"]
    prof.tables["stacks"] = sampled.tables["stacks"]
    prof.tables["host_samples"] = samples.take(samples["start_ns"] > 7 * MS)
    assert saving(prof, "job") == 3 * 1_900_000


def test_an_event_loop_does_not_wait_for_work_that_always_just_ends():
    jobs = [(start, start + 90_000) for start in range(0, 10 * MS, 100_000)]
    assert saving(woken_loop(*jobs), "job") == 0


def test_the_cell_ends_without_a_thread_that_goes_on():
    ops = [
        op(1, "In[1]", 0, 1_000, op_type="cell", thread_id=1),
        line(2, 2, 100, 900, 1, thread_id=1),
        op(3, "background", 110, 1_000, thread_id=2),
    ]
    prof = profile(ops, info=info(1_000, cell="In[1]"))
    assert saving(prof, "In[1] line 2") == 800
    # The same without a cell, if it is known on which thread the profile started and ended.
    assert saving(profile(ops[1:], info=info(1_000, thread_id=1)), "In[1] line 2") == 800
    assert saving(profile(ops[1:], info=info(1_000)), "In[1] line 2") < 200


def test_a_thread_that_goes_on_is_waited_for_if_none_has_ended():
    """It hands over a result within its op."""
    assert saving(joined(ends=(980, 990)), "worker *") > 700


@pytest.mark.parametrize("samples", [[], [(150, JOIN)] * 5])
def test_few_or_equal_samples(samples):
    path = joined(samples=samples).critical_path()
    assert np.diff(path["start_ns"]).min() >= 0
    assert path["duration_ns"].sum() == 1_000
