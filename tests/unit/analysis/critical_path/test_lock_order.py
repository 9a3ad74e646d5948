"""Orders in which threads that come to a lock at once may get it."""

import pytest

from epprof_nb.data.schema import THREAD_WAITS
from tests.helpers import tiny
from tests.helpers.planted import info
from tests.helpers.tiny import op, profile

US = 1_000
LATE = 150


def saving(name, late=0, factor=0.0, function="Lock.acquire"):
    """Bounds of the saving, us: two threads work, meet, and work within a lock and after it.

    The second one works longer before they meet, at 1000. It gets the lock first, for 300, and
    works for 200 more. The other one comes to the lock `late`, and works for 600 after it.
    """
    ops = [
        op(1, "In[1]", 0, 2_200 * US, op_type="cell", thread_id=1),
        *(op(1 + thread, f"thread {thread}", 0, end * US, thread_id=thread)
          for thread, end in ((2, 2_200), (3, 1_500))),
        op(12, "short", 0, 400 * US, 3, thread_id=2), op(13, "long", 0, 1_000 * US, 4, thread_id=3),
        op(23, "locked", 1_000 * US, 1_300 * US, 4, thread_id=3),
        op(22, "locked", 1_300 * US, 1_600 * US, 3, thread_id=2),
        op(33, "rest 3", 1_300 * US, 1_500 * US, 4, thread_id=3),
        op(32, "rest 2", 1_600 * US, 2_200 * US, 3, thread_id=2),
    ]  # fmt: skip
    prof = profile(ops, info=info(2_200 * US, cell="In[1]"))
    rows = [
        (2, 3, 400, 1_000, "Condition.wait"), (2, 3, 1_000 + late, 1_300, function),
        (1, 2, 0, 2_200, "Thread.join"), (1, 3, 2_200, 2_200, "Thread.join"),
    ]  # fmt: skip
    columns = ("thread_id", "other_thread_id", "start_ns", "end_ns", "function")
    scaled = [(*row[:2], row[2] * US, row[3] * US, row[4]) for row in rows]
    prof.tables["thread_waits"] = tiny.table(
        THREAD_WAITS, [dict(zip(columns, row, strict=True)) for row in scaled]
    )
    row = prof.what_if({name: factor}).iloc[0]
    return tuple(round(row[f"saving_{part}ns"] / US) for part in ("low_", "", "high_"))


def test_any_of_the_threads_that_come_at_once_may_get_the_lock_last():
    # Without it, both end at once, at 1600, or the other one, which still waits, at 2200.
    low, value, high = saving("rest 2")
    assert (value, high) == (600, 600)
    assert low == 400  # the other thread got the lock last, and has 200 to do


@pytest.mark.parametrize("kind", [{"late": LATE}, {"function": "Condition.wait"}])
def test_a_thread_that_comes_later_waits_for_the_first_one(kind):
    low, value, high = saving("rest 2", **kind)
    assert low == value == high


def test_what_is_in_the_lock_takes_as_long_for_each_thread():
    assert saving("locked")[0] == 600
    assert saving("locked", factor=0.5)[0] == 300
