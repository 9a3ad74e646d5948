"""Waits of threads for each other, as they are recorded."""

import concurrent.futures
import copy
import queue
import threading

import pytest

import epprof_nb


def waits_of(prof, thread):
    rows = prof.thread_waits
    return rows[rows["thread_id"] == thread.native_id]


def until_one_waits(condition):
    while not condition._waiters:
        pass


def run(target, *args):
    thread = threading.Thread(target=target, args=args)
    thread.start()
    return thread


def by_event():
    event = threading.Event()
    return event._cond, lambda: event.wait(60), lambda: event.set()  # noqa: PLW0108


def by_queue():
    handed = queue.Queue()
    return handed.not_empty, handed.get, lambda: handed.put(1)


def by_future():
    future = concurrent.futures.Future()
    return future._condition, lambda: future.result(60), lambda: future.set_result(1)


def by_semaphore():
    semaphore = threading.Semaphore(0)
    return semaphore._cond, semaphore.acquire, semaphore.release


@pytest.mark.parametrize("how", [by_event, by_queue, by_future, by_semaphore])
def test_a_wait_ends_when_the_other_thread_notifies(how):
    condition, wait, notify = how()

    def work():
        until_one_waits(condition)
        with epprof_nb.op("work"):
            notify()

    with epprof_nb.profile() as prof:
        worker = run(work)
        wait()
        worker.join()
    waits = waits_of(prof, threading.main_thread())
    (row,) = waits[waits["other_thread_id"] == worker.native_id].tail(1).itertuples()
    op = prof.ops.set_index("name").loc["work"]
    last = waits[waits["end_ns"].between(op["start_ns"], op["end_ns"])]
    assert last["function"].tolist() == ["Condition.wait"]
    assert row.start_ns <= row.end_ns


def test_a_join_ends_with_the_thread():
    may_end = threading.Event()
    with epprof_nb.profile() as prof:
        worker = run(may_end.wait)
        until_one_waits(may_end._cond)
        waiting = run(worker.join)
        may_end.set()
        waiting.join()
        worker.join()
    joins = prof.thread_waits[prof.thread_waits["function"] == "Thread.join"]
    others = joins["other_thread_id"].tolist()
    assert sorted(others) == sorted([worker.native_id] * 2 + [waiting.native_id])
    without_wait = waits_of(prof, threading.main_thread()).iloc[-1]
    assert without_wait["other_thread_id"] == worker.native_id
    assert without_wait["start_ns"] == without_wait["end_ns"]


@pytest.mark.parametrize("how", [by_event, by_future])
def test_what_is_set_depends_on_the_thread_that_set_it(how):
    _, wait, sets = how()
    with epprof_nb.profile() as prof:
        worker = run(sets)
        worker.join()
        wait()
    last = waits_of(prof, threading.main_thread()).iloc[-1]
    assert last["function"] in ("Event.wait", "Future.result")
    assert last["other_thread_id"] == worker.native_id
    assert last["start_ns"] == last["end_ns"]


def test_a_wait_that_times_out_names_no_thread():
    never = threading.Event()
    with epprof_nb.profile() as prof:
        never.wait(1e-6)
    (row,) = waits_of(prof, threading.main_thread()).itertuples()
    assert row.function == "Condition.wait"
    assert row.other_thread_id is not row.thread_id
    assert prof.thread_waits["other_thread_id"].isna().all()


def test_nothing_is_replaced_after_the_profile():
    functions = [threading.Thread.join, threading.Condition.wait, threading.Condition.notify]
    with epprof_nb.profile():
        assert threading.Thread.join is not functions[0]
    assert functions == [
        threading.Thread.join, threading.Condition.wait, threading.Condition.notify
    ]  # fmt: skip


def test_a_wait_from_before_the_profile_begins_with_it():
    ended = threading.Event()
    with epprof_nb.profile():
        worker = run(ended.wait)
        until_one_waits(ended._cond)
    with epprof_nb.profile() as prof:
        ended.set()
        worker.join()
    (row,) = waits_of(prof, worker).itertuples()
    assert row.start_ns == 0
    assert row.other_thread_id == threading.main_thread().native_id


def test_a_profile_with_waits_is_saved(tmp_path):
    with epprof_nb.profile() as prof:
        run(copy.copy, 1).join()
    prof.save(tmp_path / "waits.epprof")
    loaded = epprof_nb.load(tmp_path / "waits.epprof")
    assert loaded.thread_waits.equals(prof.thread_waits)
