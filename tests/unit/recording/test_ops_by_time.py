"""Ops of events of which only the time is known."""

import random

import numpy as np

from epprof_nb.data.schema import MISSING, OPS
from epprof_nb.recording.ops_by_time import UNKNOWN_THREAD, UNMARKED, OpsByTime
from tests.helpers import tiny


def ops_at(ops, *times, width=0):
    at = np.array(times)
    return OpsByTime(tiny.table(OPS, ops)).ids(at, at + width).tolist()


NESTED = [
    tiny.op(1, "cell", 0, 100),
    tiny.op(2, "a", 10, 40, 1),
    tiny.op(3, "inner", 20, 30, 2),
    tiny.op(4, "b", 40, 90, 1),
]


def test_the_innermost_op_is_found():
    assert ops_at(NESTED, -1, 5, 15, 25, 35, 40, 95, 100) == [MISSING, 1, 2, 3, 2, 4, 1, MISSING]


def test_an_event_on_a_boundary_belongs_to_the_common_parent():
    assert ops_at(NESTED, 18, 28, 38, 41, width=3) == [2, 2, 1, 4]
    assert ops_at(NESTED, 15, width=40) == [1]  # two ops began and ended
    assert ops_at(NESTED, 99, width=3) == [MISSING]


def test_ops_of_the_backward_pass_are_inside_of_the_one_that_waits():
    backward = tiny.op(5, "layer", 50, 60, 4, thread_id=2)
    assert ops_at([*NESTED, backward], 45, 55, 65) == [4, 5, 4]
    assert ops_at([*NESTED, backward], 59, width=3) == [4]


def test_two_independent_threads_leave_the_op_unknown():
    other = [tiny.op(6, "other", 22, 60, thread_id=2), tiny.op(7, "below", 26, 28, 6, thread_id=2)]
    assert ops_at([*NESTED, *other], 15, 25, 27, 50, 70) == [2, MISSING, MISSING, MISSING, 4]


def test_a_third_thread_does_not_make_it_certain():
    other = [tiny.op(6, "x", 50, 60, thread_id=2), tiny.op(7, "layer", 50, 60, 4, thread_id=3)]
    assert ops_at([*NESTED, *other], 55) == [MISSING]
    assert ops_at([*NESTED, *reversed(other)], 55) == [MISSING]


def test_rows_of_several_executions_say_nothing():
    often = tiny.op(8, "line", 41, 89, 4, count=50)
    suspended = tiny.op(9, "task", 41, 89, 4, suspended_ns=7)
    below = tiny.op(10, "call", 60, 62, 8)
    assert ops_at([*NESTED, often, suspended, below], 50, 61) == [4, 10]


TRAINING = [
    tiny.op(1, "cell", 0, 100),
    tiny.op(2, "model", 10, 40, 1),
    tiny.op(3, "backward", 40, 90, 1, op_type="autograd"),
    tiny.op(4, "layer", 50, 60, 3, thread_id=2),
]


def of_threads(*events, others_allocate=False):
    """Ops of events, each a time and its thread, if thread 1 is marked."""
    time, thread = (np.array(values) for values in zip(*events, strict=True))
    by_time = OpsByTime(tiny.table(OPS, TRAINING), 1)
    found = by_time.ids(time, time, thread, others_allocate=others_allocate).tolist()
    return found, by_time.others_allocate(time, time, thread)


def test_a_thread_without_ops_has_no_op_of_another_one():
    (marked, free), others = of_threads((20, 1), (20, UNMARKED))
    assert (marked, free, others) == (2, MISSING, True)


def test_unmarked_threads_of_a_backward_pass_have_its_ops():
    events = [(45, UNMARKED), (55, UNMARKED), (55, 1), (70, UNMARKED)]
    assert of_threads(*events) == ([3, 4, 3, 3], False)


def test_other_threads_that_allocate_make_a_backward_pass_uncertain():
    events = [(45, UNMARKED), (55, UNMARKED), (45, 1)]
    assert of_threads(*events, others_allocate=True)[0] == [MISSING, 4, 3]


def test_events_with_a_text_of_the_program_may_be_of_any_thread():
    assert of_threads((20, UNKNOWN_THREAD), (55, UNKNOWN_THREAD)) == ([2, 4], False)


def test_random_nesting_equals_a_search_through_all_ops():
    choose, rows = random.Random(1), [tiny.op(1, "root", 0, 10_000)]

    def fill(parent, begin, end, depth):
        while end - begin > 4 and depth < 6:
            start = choose.randrange(begin, end - 2)
            stop = choose.randrange(start + 1, end)
            rows.append(tiny.op(len(rows) + 1, "op", start, stop, parent))
            fill(len(rows), start, stop, depth + 1)
            begin = stop + choose.randrange(3)

    fill(1, 0, 10_000, 0)
    times = [choose.randrange(10_000) for _ in range(500)]
    expected = [
        max((r["start_ns"], r["op_id"]) for r in rows if r["start_ns"] <= t < r["end_ns"])[1]
        for t in times
    ]
    assert ops_at(rows, *times) == expected
