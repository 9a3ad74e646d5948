"""Ops that threads execute one after the other, as within a lock."""

import pytest

from epprof_nb.data.schema import THREAD_WAITS
from tests.helpers import tiny
from tests.helpers.planted import info
from tests.helpers.tiny import op, profile


def saving(executions, name="critical"):
    """The saving without an op that two threads execute, and its upper bound, of 400."""
    ops = [op(1, "In[1]", 0, 400, op_type="cell", thread_id=1)]
    ops += [op(thread, "outer", 0, 400, thread_id=thread) for thread in (2, 3)]
    ops += [
        op(10 + i, name, start, end, thread, thread_id=thread)
        for i, (name, thread, start, end) in enumerate(executions)
    ]
    prof = profile(ops, info=info(400, cell="In[1]"))
    prof.tables["thread_waits"] = tiny.table(THREAD_WAITS, [
        {"thread_id": 1, "other_thread_id": other, "start_ns": start, "end_ns": 400}
        for other, start in ((2, 0), (3, 400))
    ])  # fmt: skip
    row = prof.what_if({name: 0}).iloc[0]
    assert row["saving_low_ns"] <= row["saving_ns"]
    return row["saving_ns"], row["saving_high_ns"]


ALTERNATING = [("critical", 2 + i % 2, 100 * i, 100 * i + 100) for i in range(4)]


def test_threads_that_hand_over_a_lock_may_have_waited_for_it():
    # The first thread works for 100 after its last one.
    assert saving(ALTERNATING) == (200, 300)


@pytest.mark.parametrize(
    "executions",
    [
        [*ALTERNATING[:3], ("critical", 3, 290, 390)],  # two at once need no lock
        ALTERNATING[:3],  # by chance
        [(f"critical {i}", *times) for i, (_, *times) in enumerate(ALTERNATING)],
        [("critical", 2, 100 * i, 100 * i + 100) for i in range(4)],
    ],
)
def test_other_ops_are_not_within_a_lock(executions):
    name = executions[0][0]
    least, most = saving(executions, name)
    assert least == most


def test_a_late_begin_is_no_hand_over():
    ms = 1_000_000
    late = [(name, thread, 10 * ms * i, 10 * ms * i + 5 * ms) for i, (name, thread, *_) in
            enumerate(ALTERNATING)]  # fmt: skip
    ops = [op(1, "outer", 0, 40 * ms), op(2, "outer", 0, 40 * ms, thread_id=2)]
    ops += [
        op(10 + i, name, *times, thread - 1, thread_id=thread - 1)
        for i, (name, thread, *times) in enumerate(late)
    ]
    row = profile(ops, info=info(40 * ms)).what_if({"critical": 0}).iloc[0]
    assert row["saving_ns"] == row["saving_high_ns"] == 10 * ms
