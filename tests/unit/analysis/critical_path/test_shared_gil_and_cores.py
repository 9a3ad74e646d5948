"""Threads that wait for the processor, or the GIL, which others use."""

from epprof_nb.data.schema import HOST_SAMPLES, THREAD_WAITS
from tests.helpers import tiny
from tests.helpers.planted import info
from tests.helpers.tiny import op, profile


def bounds(name, used, factor=0.0, wait=None, **more):
    """The bounds of the saving without an op, of 1000, that is open beside that of another thread.

    `used` is the processor time until 0, 500 and 1000, of the thread of the cell and of the others.
    """
    ops = [op(1, "In[1]", 0, 1_000, op_type="cell", thread_id=1)]
    ops += [
        op(1 + thread, f"work {thread}", 0, 1_000, 1 if thread == 1 else -1, thread_id=thread)
        for thread in range(1, len(used) + 1)
    ]
    prof = profile(ops, info=info(1_000, cell="In[1]", **more))
    prof.tables["host_samples"] = tiny.table(HOST_SAMPLES, [
        {"thread_id": thread, "start_ns": 500 * i, "processor_ns": 10_000 + ns, "stack_id": -1}
        for thread, of_thread in enumerate(used, 1) for i, ns in enumerate(of_thread)
    ])  # fmt: skip
    if wait:
        columns = ("thread_id", "other_thread_id", "start_ns", "end_ns")
        prof.tables["thread_waits"] = tiny.table(
            THREAD_WAITS, [dict(zip(columns, wait, strict=True))]
        )
    row = prof.what_if({name: factor}).iloc[0]
    assert row["saving_low_ns"] <= row["saving_ns"] <= row["saving_high_ns"]
    return row["saving_low_ns"], row["saving_ns"], row["saving_high_ns"]


HALF = (0, 250, 500)
PYTHON = {"versions": {"python": "3.11.7"}}


def test_threads_that_take_turns_would_each_be_faster_alone():
    assert bounds("work 2", [HALF, HALF]) == (0, 0, 500)


def test_less_work_frees_a_part_of_it():
    assert bounds("work 2", [HALF, HALF], 0.5) == (0, 0, 250)


def test_threads_that_compute_at_once_do_not_wait_for_each_other():
    assert bounds("work 2", [(0, 500, 1_000), (0, 500, 1_000)]) == (0, 0, 0)


def test_an_op_that_sleeps_keeps_nobody_from_the_processor():
    *_, high = bounds("work 2", [HALF, (0, 20, 40)])
    assert high == 0


def test_a_thread_that_waits_for_something_known_does_not_wait_for_the_processor():
    *_, high = bounds("work 2", [HALF, HALF], wait=(1, 3, 0, 700))
    assert high == 50


def test_several_threads_share_what_another_one_waits_for():
    """The thread of the cell computes for 100, and waits for the two others for 900."""
    used = [(0, 50, 100), (0, 300, 600), (0, 150, 300)]
    assert bounds("work 2", used)[2] == 600
    assert bounds("work 3", used)[2] == 300


def test_threads_without_samples_may_have_taken_turns():
    assert bounds("work 2", [(), ()], **PYTHON) == (0, 0, 500)
    assert bounds("work 2", [(), ()], 0.5, **PYTHON) == (0, 0, 250)
    assert bounds("work 2", [(), (), ()], **PYTHON)[2] == 333


def test_threads_of_a_program_without_python_take_no_turns():
    assert bounds("work 2", [(), ()]) == (0, 0, 0)


def test_one_sample_does_not_tell_who_computed():
    assert bounds("work 2", [(0,), (0,)], **PYTHON) == (0, 0, 500)


def test_samples_tell_who_computed_as_long_as_there_are_some():
    """In the first half, both threads use a core. Nothing says what they do in the second."""
    assert bounds("work 2", [(0, 500), (0, 500)], **PYTHON) == (0, 0, 250)
    assert bounds("work 2", [(0, 500, 1_000), (0, 500, 1_000)], **PYTHON) == (0, 0, 0)


def test_a_thread_without_samples_gets_what_the_others_leave():
    assert bounds("work 2", [(), (0, 100, 200)], **PYTHON) == (0, 0, 200)
    assert bounds("work 2", [(), (0, 500, 1_000)], **PYTHON) == (0, 0, 500)


def test_recorded_waits_tell_when_threads_take_no_turns():
    """The other thread sleeps, or the one of the cell waits for a third one."""
    assert bounds("work 2", [(), ()], wait=(2, -1, 0, 800), **PYTHON) == (0, 0, 100)
    assert bounds("work 2", [(), ()], wait=(2, -1, 0, 1_000), **PYTHON) == (0, 0, 0)
    assert bounds("work 2", [(), ()], wait=(1, 3, 0, 1_000), **PYTHON) == (0, 0, 0)
