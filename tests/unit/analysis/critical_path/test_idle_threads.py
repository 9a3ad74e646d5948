"""Time in which a thread does nothing, and nothing says what it waits for."""

import numpy as np
import pytest

from epprof_nb.data.schema import HOST_SAMPLES, MISSING, THREAD_WAITS
from tests.helpers import tiny
from tests.helpers.planted import info
from tests.helpers.tiny import op, profile

CELL = op(1, "In[1]", 0, 1_000, op_type="cell")


def sampled(ops, busy, *, thread=1, every=20, waits=()):
    """A profile with samples of a thread, which uses the processor in some intervals only."""
    found = profile([CELL, *ops], info=info(1_000, cell="In[1]"))
    found.tables["host_samples"] = tiny.table(HOST_SAMPLES, [
        {"start_ns": time, "thread_id": thread, "stack_id": None, "interval_ns": every,
         "processor_ns": sum(max(min(time, end) - start, 0) for start, end in busy)}
        for time in range(5, 1_000, every)
    ])  # fmt: skip
    columns = ("thread_id", "other_thread_id", "start_ns", "end_ns", "function")
    rows = [dict(zip(columns, wait, strict=False)) for wait in waits]
    found.tables["thread_waits"] = tiny.table(THREAD_WAITS, rows)
    return found


def saving(prof, name, factor=0.0):
    row = prof.what_if({name: factor}).iloc[0]
    return tuple(row[f"saving_{part}ns"] for part in ("low_", "", "high_"))


def rate_limited(works=((0, 150), (300, 450), (600, 750)), **more):
    """Work, and after each a wait until a time of the clock."""
    ops = [op(10 + i, "work", *times, 1) for i, times in enumerate(works)]
    ops += [op(20 + i, "limit", end, 300 * (i + 1), 1) for i, (_, end) in enumerate(works)]
    return sampled(ops, [*works, (900, 1_000)], **more)


def test_a_limiter_may_take_up_what_is_saved_before_it():
    assert saving(rate_limited(), "work") == (0, 450, 450)
    assert saving(rate_limited(), "work", 2.0) == (-450, -450, 0)
    prof = rate_limited()
    row = prof.what_if({"work": 0}).iloc[0]
    assert row["wall_low_ns"] == row["wall_ns"] == 550
    assert row["wall_high_ns"] == 1_000


def test_the_limiter_itself_can_be_shortened():
    assert saving(rate_limited(), "limit") == (450, 450, 450)


def test_executions_without_samples_are_like_those_with_some():
    """Two of three executions of the limiter are shorter than the time between samples."""
    prof = rate_limited(works=((0, 150), (300, 590), (600, 890)), every=60)
    assert saving(prof, "work")[0] == 0


def test_a_thread_that_asks_for_work_may_end_with_it():
    ops = [op(2, "poll", 100, 800, 1), op(3, "job", 110, 790, thread_id=2)]
    # It uses the processor for a 20th of the time.
    prof = sampled(ops, [(0, 100), *((i, i + 1) for i in range(100, 800, 20)), (800, 1_000)])
    low, expected, high = saving(prof, "job")
    assert (low, expected) == (0, 0)
    assert 660 <= high <= 680


def test_time_between_the_same_ops_is_alike():
    """A loop that asks twice whether a job is done; samples see it only the first time."""
    jobs = ((0, 400), (400, 490))
    ops = [op(10 + i, "job", start, end, thread_id=2 + i) for i, (start, end) in enumerate(jobs)]
    ops += [
        op(20 + i, "own", start, start + 60, 1) for i, (start, _) in enumerate((*jobs, (490,) * 2))
    ]
    prof = sampled(ops, [(0, 60), (400, 460), (490, 1_000)], every=60)
    assert saving(prof, "job", 0.5)[2] == 200 + 30


def test_idle_time_in_which_work_ends_by_chance_does_not_wait_for_it():
    """A thread that sleeps in an op, and jobs that end at other times."""
    ops = [op(10 + i, "sleep", 200 * i, 200 * i + 180, 1) for i in range(5)]
    ops += [
        op(20 + i, "job", start, start + 150, thread_id=2) for i, start in enumerate((0, 300, 555))
    ]
    assert saving(sampled(ops, []), "job") == (0, 0, 0)


def test_a_thread_may_be_idle_beside_a_short_known_wait():
    """Such as the wait for the begin of a thread, before which the loop asked for another one."""
    ops = [op(2, "poll", 100, 800, 1), op(3, "job", 110, 790, thread_id=2)]
    prof = sampled(ops, [(0, 100), (800, 1_000)], every=200, waits=[(1, 3, 400, 410)])
    assert 650 <= saving(prof, "job")[2] <= 680


def test_a_thread_that_works_waits_for_nothing():
    ops = [op(2, "own", 100, 800, 1), op(3, "job", 110, 790, thread_id=2)]
    prof = sampled(ops, [(0, 1_000)])
    assert saving(prof, "job") == (0, 0, 0)
    assert saving(prof, "own") == (700, 700, 700)  # the other thread may go on after it


@pytest.mark.parametrize("other", [2, None])
def test_a_wait_whose_end_is_known_is_not_idle(other):
    ops = [
        op(2, "before", 0, 100, 1),
        op(3, "join", 100, 800, 1),
        op(4, "job", 1, 800, thread_id=2),
    ]
    prof = sampled(ops, [(0, 100), (800, 1_000)], waits=[(1, other, 100, 800)])
    low, expected, _ = saving(prof, "before")
    # What timed out may have ended at a time, or after one.
    assert (low, expected) == ((0, 100) if other is None else (1, 1))


def test_sleeps_need_no_samples():
    """A loop that keeps a rate, and one that asks every 20 ns whether a job is done."""
    sleeps = [(1, None, 300 * i + 150, 300 * (i + 1), "time.sleep") for i in range(3)]
    prof = rate_limited(waits=sleeps, every=1_000)
    assert len(prof.host_samples) == 1
    assert saving(prof, "work") == (0, 450, 450)
    asks = [(1, None, at, at + 19, "time.sleep") for at in range(100, 800, 20)]
    ops = [op(2, "poll", 100, 800, 1), op(3, "job", 110, 790, thread_id=2)]
    low, expected, high = saving(sampled(ops, [], waits=asks, every=1_000), "job")
    assert (low, expected) == (0, 0)
    assert 660 <= high <= 680


def test_a_loop_may_ask_for_work_in_an_op_of_its_own():
    sleeps = [(1, None, at, at + 48, "time.sleep") for at in range(100, 800, 50)]
    polls = [op(10 + i, "poll", wait[2] - 1, wait[3] + 1, 1) for i, wait in enumerate(sleeps)]
    prof = sampled([*polls, op(3, "job", 110, 790, thread_id=2)], [], waits=sleeps, every=1_000)
    low, expected, high = saving(prof, "job")
    assert (low, expected) == (0, 0)
    assert 640 <= high <= 680


def test_a_sleep_is_no_try_of_a_later_wait():
    """Only the wait depends on the other thread, not the sleep before it."""
    ops = [op(2, "job", 1, 800, thread_id=2)]
    waits = [(1, None, 100, 500, "time.sleep"), (1, 2, 501, 800, "Thread.join")]
    prof = sampled(ops, [], waits=waits, every=1_000)
    assert saving(prof, "job")[1] == 299


def test_time_beside_a_known_wait_is_not_idle():
    """The line of a join, of which all samples are in the wait but those before and after it."""
    ops = [op(2, "before", 0, 90, 1), op(3, "join", 90, 810, 1), op(4, "job", 1, 800, thread_id=2)]
    prof = sampled(ops, [(0, 95), (805, 1_000)], waits=[(1, 2, 95, 805)])
    assert saving(prof, "job") == (705, 705, 705)
    assert saving(prof, "before") == (1, 1, 1)


def test_threads_do_not_wait_for_each_other_at_once():
    """A worker that sleeps does not wait for the thread that joins it."""
    ops = [op(2, "join", 90, 810, 1), op(3, "job", 100, 800, thread_id=2)]
    prof = sampled(ops, [(0, 1)], thread=2, waits=[(1, 2, 95, 805)])
    low, _, high = saving(prof, "job")
    assert 695 <= low <= high == 700


def test_an_idle_thread_without_an_op_is_no_part_of_the_path():
    ops = [op(2, "work", 0, 600, 1), op(3, "job", 900, 950, thread_id=2)]
    prof = sampled(ops, [(900, 950)], thread=2)
    assert saving(prof, "work") == (600, 600, 600)


@pytest.mark.parametrize("is_known", [True, False])
def test_a_thread_that_waits_for_a_core_is_not_idle(is_known):
    """Of 100 ns each, the thread waits for 90, which shows when it gets the core."""
    ops = [op(2, "own", 100, 800, 1), op(3, "job", 110, 790, thread_id=2)]
    prof = sampled(ops, [(at + 90, at + 100) for at in range(0, 1_000, 100)])
    samples = prof.tables["host_samples"]
    waited = 90 * ((samples["start_ns"] + 10) // 100)
    prof.tables["host_samples"] = samples.replace(
        core_wait_ns=waited if is_known else np.full(len(waited), MISSING)
    )
    assert saving(prof, "job") == ((0, 0, 0) if is_known else (0, 0, 680))


def test_samples_of_older_versions_have_no_processor_time():
    prof = rate_limited()
    samples = prof.tables["host_samples"]
    known = {name: samples[name] for name in ("start_ns", "thread_id", "interval_ns")}
    prof.tables["host_samples"] = type(samples)(HOST_SAMPLES, known)
    assert saving(prof, "work") == (450, 450, 450)
