"""Event loops that are idle until an op goes on that was suspended."""

from epprof_nb.data.schema import HOST_SAMPLES
from tests.helpers import tiny
from tests.helpers.planted import info
from tests.helpers.tiny import op, profile

MS = 1_000_000


def slept(*more):
    """A coroutine in `sleep` for 50 ms, and another one that executes `work` for 20."""
    busy = [(0, 11 * MS), (30 * MS, 50 * MS), (70 * MS, 100 * MS)]
    ops = [
        op(1, "In[1]", 0, 100 * MS, op_type="cell"),
        {**op(2, "sleep", 20 * MS, 70 * MS, 1, suspended_ns=49 * MS), "duration_ns": MS},
        op(3, "work", 30 * MS, 50 * MS, 1),
    ]
    found = profile([*ops, *more], info=info(100 * MS, cell="In[1]"))
    found.tables["host_samples"] = tiny.table(HOST_SAMPLES, [
        {"start_ns": time, "thread_id": 1, "stack_id": None, "interval_ns": 2 * MS,
         "processor_ns": sum(max(min(time, end) - start, 0) for start, end in busy)}
        for time in range(MS // 2, 100 * MS, 2 * MS)
    ])  # fmt: skip
    return found


def saving(prof, name, factor=0.0):
    row = prof.what_if({name: factor}).iloc[0]
    return tuple(row[f"saving_{part}ns"] // MS for part in ("low_", "", "high_"))


def test_a_timer_that_started_earlier_does_not_depend_on_what_runs_meanwhile():
    low, expected, high = saving(slept(), "work")
    assert (low, expected) == (0, 0)
    assert high == 20  # if the op was suspended for something else than a time


def test_work_that_lasts_longer_than_the_timer_delays_the_loop():
    assert saving(slept(), "work", 2.5)[1] == -10


def test_the_path_without_the_timer_is_shorter():
    low, _, high = saving(slept(), "sleep")
    assert low == 0
    assert 30 <= high <= 50


def test_work_of_another_thread_may_have_ended_the_idle_time():
    """As in an op that awaits ``asyncio.to_thread``: the op is as long as this work."""
    prof = slept(op(4, "job", 21 * MS, 70 * MS - MS // 5, thread_id=2))
    assert saving(prof, "work")[1] == 20


def test_a_timer_that_was_due_before_is_not_waited_for():
    """The loop was busy until 69.8 ms, and goes on with the other coroutine then."""
    prof = slept(op(4, "late", 52 * MS, 69_800_000, 1))
    assert saving(prof, "late") == (17, 17, 17)


def test_code_without_an_op_is_no_idle_time():
    """Another coroutine computes while the first one sleeps, as samples show."""
    prof = slept()
    samples = prof.tables["host_samples"]
    assert saving(prof, "work")[1] == 0
    busy = samples.replace(processor_ns=samples["start_ns"])
    prof.tables["host_samples"] = busy
    prof = type(prof)(prof.tables, prof.info)
    assert saving(prof, "work")[1] == 20


def test_timers_that_were_due_while_the_loop_worked_delay_what_follows():
    """A second coroutine sleeps from 29 on, as long as the first one: until 79, within `late`."""
    second = {**op(4, "sleep", 29 * MS, 98 * MS, 1, suspended_ns=68 * MS), "duration_ns": MS}
    late = op(5, "late", 71 * MS, 97 * MS, 1)
    assert saving(slept(second, late), "late") == (18, 18, 26)
    # Nothing tells how long an op of another name would have been suspended.
    assert saving(slept({**second, "name": "read"}, late), "late") == (26, 26, 26)
