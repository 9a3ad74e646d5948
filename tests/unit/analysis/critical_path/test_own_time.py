"""Time of threads between their ops."""

from epprof_nb.data.schema import THREAD_WAITS
from tests.helpers import tiny
from tests.helpers.planted import info
from tests.helpers.tiny import op, profile


def saving(name, waits, tasks=(100, 300, 500, 700)):
    """The saving without an op, of 1000, beside a worker with a task of 190 at each time."""
    ops = [
        op(1, "In[1]", 0, 1_000, op_type="cell", thread_id=1), op(2, "submit", 50, 450, 1),
        *(op(10 + i, "task", start, start + 190, thread_id=2) for i, start in enumerate(tasks)),
    ]  # fmt: skip
    prof = profile(ops, info=info(1_000, cell="In[1]"))
    columns = ("thread_id", "other_thread_id", "start_ns", "end_ns")
    rows = [dict(zip(columns, wait, strict=True)) for wait in waits]
    prof.tables["thread_waits"] = tiny.table(THREAD_WAITS, rows)
    row = prof.what_if({name: 0}).iloc[0]
    return row["saving_low_ns"], row["saving_ns"], row["saving_high_ns"]


JOINED = (1, 2, 450, 890)


def test_a_worker_that_never_waited_had_its_tasks_before():
    # It waits for its first task only. What it does between tasks remains.
    assert saving("submit", [(2, 1, 20, 100), JOINED]) == (50, 50, 50)
    assert saving("task", [(2, 1, 20, 100), JOINED]) == (890 - 450,) * 3


def test_a_worker_of_which_no_wait_is_known_may_wait_for_the_cell():
    low, _, high = saving("task", [JOINED])
    assert low < high


def test_a_worker_with_unknown_time_may_wait_for_the_cell():
    tasks, joined = (100, 290, 580, 770), (1, 2, 450, 960)
    low, _, high = saving("task", [(2, 1, 20, 100), joined], tasks)
    assert low < high


def test_a_wait_between_tasks_ends_with_the_other_thread():
    """The cell hands the last task over at 450, at the end of its op."""
    waits = [(2, 1, 20, 100), (2, 1, 290, 450), (1, 2, 450, 640)]
    low, value, high = saving("submit", waits, (100, 450))
    assert low == value == high == 50 + (450 - 290)
