"""Waits for threads that were recorded."""

import pytest

from epprof_nb.data.schema import THREAD_WAITS
from tests.helpers import tiny
from tests.helpers.planted import info
from tests.helpers.tiny import line, op, profile


def waited(*waits, ops=()):
    """A cell whose second line waits until 850 while two threads work, with its waits."""
    ops = [
        op(1, "In[1]", 0, 1_000, op_type="cell", thread_id=1),
        line(2, 2, 100, 900, 1, thread_id=1),
        op(3, "long", 110, 830, thread_id=2),
        op(4, "short", 110, 600, thread_id=3),
        *ops,
    ]
    return with_waits(ops, *waits)


def with_waits(ops, *waits):
    found = profile(ops, info=info(1_000, cell="In[1]"))
    columns = ("thread_id", "other_thread_id", "start_ns", "end_ns")
    rows = [dict(zip(columns, wait, strict=True)) for wait in waits]
    found.tables["thread_waits"] = tiny.table(THREAD_WAITS, rows)
    return found


def saving(prof, *names):
    return prof.what_if(dict.fromkeys(names, 0.0))["saving_ns"].iloc[-1]


def test_the_longest_of_the_joined_threads_is_the_limit():
    prof = waited((1, 2, 105, 840), (1, 3, 840, 850))
    assert prof.critical_path()["duration_ns"].sum() == 1_000
    assert "long" in prof.critical_path()["name"].tolist()
    # It waits for the other one then, which had ended before.
    assert saving(prof, "long") == 250
    assert saving(waited((1, 3, 105, 610), (1, 2, 610, 840)), "long") == 220
    assert saving(prof, "short") == 0
    assert saving(prof, "long", "short") == 720


def test_a_thread_waits_for_the_one_that_notified_it_only():
    prof = waited((1, 3, 105, 610))
    assert saving(prof, "long") == 0
    assert saving(prof, "short") == 490  # the other thread may go on after the cell
    assert saving(prof, "short", "long") == 490


def test_the_thread_goes_on_after_a_result_within_an_op():
    prof = waited((1, 2, 105, 500))
    assert saving(prof, "long") == 390
    assert saving(prof, "short") == 0


def test_a_chain_of_threads_is_followed_through_one_without_ops():
    prof = waited((9, 2, 20, 830), (1, 9, 105, 850))
    # What the thread with the op did from 105 to 110 is not known.
    assert prof.critical_path()["duration_ns"].sum() == 995
    assert saving(prof, "long") == 720  # nobody waits for the other thread


@pytest.mark.parametrize(("waits", "low"), [([(1, 9)], 0), ([(8, 9)], 100), ([], 100)])
def test_a_thread_without_ops_may_make_the_next_wait_longer(waits, low):
    ops = [
        op(1, "In[1]", 0, 1_000, op_type="cell", thread_id=1),
        line(2, 2, 100, 200, 1, thread_id=1),
        op(3, "work", 110, 830, thread_id=2),
    ]
    prof = with_waits(ops, *((*threads, 850, 900) for threads in waits))
    saved = prof.what_if({"line 2": 0.0}).iloc[0]
    assert saved["saving_low_ns"] == low
    assert saved["wall_high_ns"] == 1_000 - low


def test_a_wait_in_several_tries_is_one():
    tries = [(1, None, start, start + 100) for start in range(105, 705, 100)]
    assert saving(waited(*tries, (1, 2, 705, 840)), "long", "short") == 720
    # With work of its own in between, only the last one waits for the other thread.
    own = [op(9, "own", 500, 501, 2, thread_id=1)]
    assert saving(waited(*tries, (1, 2, 705, 840), ops=own), "long", "short") == 325


def test_workers_may_have_had_their_next_op_in_a_queue():
    """One thread fetches, another one parses, and that of the cell merges."""
    ops = [
        op(1, "In[1]", 0, 250, op_type="cell", thread_id=1),
        *(op(10 + i, "fetch", i * 100, i * 100 + 100, thread_id=3) for i in range(2)),
        *(op(20 + i, "parse", i * 100 + 100, i * 100 + 130, thread_id=2) for i in range(2)),
        *(op(30 + i, "merge", i * 100 + 130, i * 100 + 150, 1, thread_id=1) for i in range(2)),
    ]
    prof = profile(ops, info=info(250, cell="In[1]"))
    waits = [(2, 3, 0, 100), (1, 2, 0, 130), (2, 3, 130, 200), (1, 2, 150, 230)]
    columns = ("thread_id", "other_thread_id", "start_ns", "end_ns")
    rows = [dict(zip(columns, wait, strict=True)) for wait in waits]
    prof.tables["thread_waits"] = tiny.table(THREAD_WAITS, rows)
    row = prof.what_if({"fetch": 0}).iloc[0]
    # The cell may hand out the second part only after it has merged the first, or at once.
    assert (row["saving_ns"], row["saving_high_ns"]) == (150, 170)
    assert row["saving_low_ns"] == 150


def test_code_that_is_removed_does_not_wait():
    prof = waited((1, 2, 105, 840), ops=[op(9, "result", 102, 845, 2)])
    # What follows does not wait for the other thread, which may go on after the cell.
    assert saving(prof, "result") == 743
    assert prof.what_if({"result": 0.5})["saving_ns"].item() == 11  # half of its own time


def test_a_wait_that_timed_out_takes_its_time():
    assert saving(waited((1, None, 105, 850)), "long", "short") == 0


def beating(stopped_by, *more):
    """A thread that beats every 100 until the cell, which works until 900, stops it."""
    ops = [
        op(1, "In[1]", 0, 1_000, op_type="cell", thread_id=1),
        op(2, "main", 50, 900, 1, thread_id=1),
        *(op(10 + i, "beat", i * 100, i * 100 + 10, thread_id=2) for i in range(1, 10)),
    ]
    beats = [(2, None, i * 100 + 10, i * 100 + 100) for i in range(1, 9)]
    return with_waits(ops, *beats, (2, stopped_by, 910, 950), (1, 2, 951, 960), *more)


def test_a_thread_that_beats_until_it_is_stopped_waits_for_the_other_one():
    assert saving(beating(1), "main") == 820  # 50 before it, 9 beats, and 40 after the join
    assert saving(beating(1), "beat") == 0


def test_waits_that_time_out_take_their_time_if_nobody_stops_them():
    # It begins when the cell is at 100, and has ended at 950.
    assert saving(beating(None), "main") == 60


def test_a_thread_that_beats_does_not_wait_for_one_that_waits_for_it():
    assert saving(beating(1, (1, 2, 60, 890)), "main") == 100


@pytest.mark.parametrize("rows", [[], [(7, 8, 100, 200)], [(1, 1, 100, 200)], [(1, 2, 900, 100)]])
def test_no_waits_or_strange_ones(rows):
    prof = waited(*rows)
    assert prof.critical_path()["duration_ns"].sum() == 1_000
    assert saving(prof, "long", "short") == 0


def test_the_begin_of_a_thread_does_not_depend_on_the_cell():
    """A worker starts a thread without ops, as that of a stream, while the cell does its own."""
    ops = [
        op(1, "In[1]", 0, 1_000, op_type="cell", thread_id=1),
        op(2, "own", 0, 500, 1, thread_id=1),
        op(3, "job", 10, 400, thread_id=2),
        op(4, "starts", 400, 990, thread_id=2),
    ]
    prof = with_waits(ops, (2, 3, 410, 510), (1, 2, 500, 990))
    assert saving(prof, "own") == 10  # until the worker begins
    assert saving(prof, "job") == 390


def test_a_recorded_wait_tells_which_of_the_workers_of_an_op_ended_it():
    ops = [
        op(1, "In[1]", 0, 1_000, op_type="cell", thread_id=1),
        op(2, "first", 0, 300, 1, thread_id=2),
        op(3, "second", 0, 305, 1, thread_id=3),
        op(4, "merge", 310, 1_000, 1, thread_id=1),
    ]
    assert saving(with_waits(ops, (1, 2, 5, 301)), "first") == 295
    assert saving(with_waits(ops), "first") == 0  # the cell may need both
