"""Event loops that are idle until an op goes on that was suspended."""

from epprof_nb.data.schema import HOST_SAMPLES
from tests.helpers import tiny
from tests.helpers.planted import info
from tests.helpers.tiny import op, profile


def slept(*more):
    """A coroutine in `sleep` for 500 ms, and another one that executes `work` meanwhile."""
    busy = [(0, 110), (300, 500), (700, 1_000)]
    ops = [
        op(1, "In[1]", 0, 1_000, op_type="cell"),
        {**op(2, "sleep", 200, 700, 1, suspended_ns=490), "duration_ns": 10},
        op(3, "work", 300, 500, 1),
    ]
    found = profile([*ops, *more], info=info(1_000, cell="In[1]"))
    found.tables["host_samples"] = tiny.table(HOST_SAMPLES, [
        {"start_ns": time, "thread_id": 1, "stack_id": None, "interval_ns": 20,
         "processor_ns": sum(max(min(time, end) - start, 0) for start, end in busy)}
        for time in range(5, 1_000, 20)
    ])  # fmt: skip
    return found


def saving(prof, name, factor=0.0):
    row = prof.what_if({name: factor}).iloc[0]
    return tuple(row[f"saving_{part}ns"] for part in ("low_", "", "high_"))


def test_a_timer_that_started_earlier_does_not_depend_on_what_runs_meanwhile():
    low, expected, high = saving(slept(), "work")
    assert (low, expected) == (0, 0)
    assert high == 200  # if the op was suspended for something else than a time


def test_work_that_lasts_longer_than_the_timer_delays_the_loop():
    assert saving(slept(), "work", 2.5)[1] == -100


def test_the_path_without_the_timer_is_shorter():
    low, _, high = saving(slept(), "sleep")
    assert low == 0
    assert 300 <= high <= 500


def test_work_of_another_thread_may_have_ended_the_idle_time():
    """As in an op that awaits ``asyncio.to_thread``: the op is as long as this work."""
    prof = slept(op(4, "job", 210, 695, thread_id=2))
    assert saving(prof, "work")[1] == 200
