"""Waits of threads for each other and for the clock, as they are recorded."""

import _thread
import concurrent.futures
import copy
import multiprocessing
import queue
import threading
import time
from collections import deque
from time import sleep as imported_sleep

import pytest

import epprof_nb
from epprof_nb import _native, host
from epprof_nb.data.schema import THREAD_WAITS
from epprof_nb.recording.session import thread_waits
from tests.helpers import tiny


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


def hand_over_lock():
    there, back = threading.Lock(), threading.Lock()
    there.acquire()
    back.acquire()
    return there.release, there.acquire, back.release, back.acquire


def hand_over_by_with():
    there, back = threading.Lock(), threading.Lock()
    there.acquire()
    back.acquire()
    return (
        lambda: there.__exit__(None, None, None), there.__enter__,
        lambda: back.__exit__(None, None, None), back.__enter__,
    )  # fmt: skip


def hand_over_with_limit():
    release_there, take_there, release_back, take_back = hand_over_lock()
    return (
        release_there, lambda: take_there(timeout=60), release_back, lambda: take_back(True, 60)
    )  # fmt: skip


def hand_over_queue():
    there, back = queue.SimpleQueue(), queue.SimpleQueue()
    return lambda: there.put(1), there.get, lambda: back.put_nowait(1), lambda: back.get(timeout=60)


@pytest.mark.parametrize(
    ("how", "function"),
    [
        (hand_over_lock, "Lock.acquire"), (hand_over_by_with, "Lock.acquire"),
        (hand_over_with_limit, "Lock.acquire"), (hand_over_queue, "SimpleQueue.get"),
    ],
)  # fmt: skip
def test_a_wait_in_c_ends_when_the_other_thread_hands_over(how, function):
    put_there, take_there, put_back, take_back = how()

    def answer():
        for _ in range(50):
            take_there()
            with epprof_nb.op("answer"):
                put_back()

    with epprof_nb.profile() as prof:
        worker = run(answer)
        for _ in range(50):
            put_there()
            take_back()
        worker.join()
    waits = waits_of(prof, threading.main_thread())
    waits = waits[waits["function"] == function]
    assert set(waits["other_thread_id"]) == {worker.native_id}
    assert (waits["start_ns"] <= waits["end_ns"]).all()
    answers = prof.ops[prof.ops["name"] == "answer"]
    assert (
        waits["end_ns"]
        .map(lambda end: ((answers["start_ns"] <= end) & (end <= answers["end_ns"])).any())
        .all()
    )


def test_a_wait_for_a_recursive_lock_ends_when_it_is_released_for_good():
    lock = threading.RLock()

    def take(asks):
        asks.set()
        with lock:
            pass

    with epprof_nb.profile() as prof:
        for _ in range(50):
            asks = threading.Event()
            with lock, epprof_nb.op("held"):
                worker = run(take, asks)
                asks.wait()
                with lock:
                    pass
            worker.join()
    waits = prof.thread_waits[prof.thread_waits["function"] == "RLock.acquire"]
    assert set(waits["other_thread_id"]) == {threading.main_thread().native_id}
    held = prof.ops[prof.ops["name"] == "held"]
    assert (
        not waits["end_ns"]
        .map(lambda end: ((held["start_ns"] <= end) & (end < held["end_ns"])).any())
        .any()
    )


class SlowlyNegative:
    """A timeout that is refused after longer than a call may take that does not wait."""

    def __index__(self):
        deque(range(100_000), maxlen=0)
        return -5


def test_a_free_lock_is_no_wait_and_behaves_as_before():
    lock, again, items = threading.Lock(), threading.RLock(), queue.SimpleQueue()
    with epprof_nb.profile() as prof:
        with lock:
            assert lock.locked()
            assert not lock.acquire(False)
            assert not lock.acquire(blocking=False)
        assert lock.acquire(timeout=1)
        lock.release()
        with pytest.raises(RuntimeError):
            lock.release()
        with pytest.raises(ValueError, match="timeout"):
            lock.acquire(True, SlowlyNegative())
        with pytest.raises(TypeError):
            lock.acquire(wrong=1)
        with again, again:
            pass
        with pytest.raises(RuntimeError):
            again.release()
        items.put(1)
        assert items.get() == 1
        with pytest.raises(queue.Empty):
            items.get(False)
        with pytest.raises(queue.Empty):
            items.get(block=False)
        with pytest.raises(TypeError):
            items.put()
    # Other threads of this process, those of a worker of pytest-xdist say, may wait meanwhile.
    assert waits_of(prof, threading.current_thread()).empty


def test_the_own_lock_of_a_condition_is_no_wait_of_its_own():
    with epprof_nb.profile() as prof:
        ended = threading.Event()
        worker = run(ended.wait)
        until_one_waits(ended._cond)
        ended.set()
        worker.join()
    waits = waits_of(prof, worker)
    assert waits["function"].tolist()[0] == "Condition.wait"
    assert (waits["start_ns"].iloc[1:] >= waits["end_ns"].iloc[0]).all()


@pytest.mark.parametrize(
    ("outer", "kept"),
    [((100, 200), [True, False, True]), ((100, 100), [True, True, True]),
     ((50, 99), [True, True, True]), ((150, 300), [True, True, False])],
)  # fmt: skip
def test_waits_within_others_are_left_out(monkeypatch, outer, kept):
    """Also beside a join that did not have to wait."""

    def rows(spans, thread):
        columns = ("start_ns", "end_ns", "thread_id")
        return [dict(zip(columns, (*span, thread), strict=True)) for span in spans]

    inner = rows([(20, 150), (100, 150), (200, 300)], 1) + rows([(120, 130)], 2)
    monkeypatch.setattr(thread_waits.lock_waits, "drain", lambda: tiny.table(THREAD_WAITS, inner))
    monkeypatch.setattr(thread_waits, "_waits", deque([(*outer, 1, 3, "Thread.join")]))
    found = thread_waits.drain()
    wanted = [outer[0], *(row["start_ns"] for row, keep in zip(inner, [*kept, True], strict=True)
                          if keep)]  # fmt: skip
    assert found["start_ns"].tolist() == wanted


def test_a_lock_that_a_time_limit_ends_names_no_thread():
    lock = threading.Lock()
    with lock, epprof_nb.profile() as prof:
        assert not lock.acquire(timeout=1e-3)
    (row,) = prof.thread_waits.itertuples()
    assert row.function == "Lock.acquire"
    assert prof.thread_waits["other_thread_id"].isna().all()


def test_types_that_other_code_put_in_place_are_left_as_they_are(monkeypatch):
    """As gevent does."""
    types = []
    monkeypatch.setattr(_native, "start_lock_waits", lambda *kinds: types.append(kinds))
    with epprof_nb.profile():
        assert len(types) == 1
    monkeypatch.setattr(_thread, "LockType", type("LockType", (), {}))
    with epprof_nb.profile():
        assert len(types) == 1


def test_waits_for_the_host_device_are_no_waits_for_threads():
    with epprof_nb.profile() as prof:
        stream = host.Stream()
        for _ in range(20):
            host.launch(copy.copy, 1, stream=stream)
            stream.synchronize()
    functions = set(prof.thread_waits["function"])
    assert functions <= {"Condition.wait", "Event.wait"}  # as the thread of the stream begins


def test_a_forked_child_waits_for_locks_of_its_own():
    def child(answers):
        lock = threading.Lock()
        lock.acquire()
        run(lock.release).join()
        answers.put(lock.acquire(timeout=60))

    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    with epprof_nb.profile():
        held = threading.Lock()
        with held:
            worker = run(held.acquire)
            process = context.Process(target=child, args=(answers,))
            process.start()
            assert answers.get()
            process.join()
        worker.join()


def test_a_wait_that_times_out_names_no_thread():
    never = threading.Event()
    with epprof_nb.profile() as prof:
        never.wait(1e-6)
    (row,) = waits_of(prof, threading.main_thread()).itertuples()
    assert row.function == "Condition.wait"
    assert row.other_thread_id is not row.thread_id
    assert prof.thread_waits["other_thread_id"].isna().all()


@pytest.mark.parametrize("sleep", [time.sleep, imported_sleep])
def test_sleep_waits_for_the_clock(sleep):
    with epprof_nb.profile() as prof:
        worker = run(sleep, 0.003)
        sleep(0.002)
        worker.join()
        with pytest.raises(ValueError, match="non-negative"):
            sleep(-1)
        with pytest.raises(TypeError):
            sleep("1")
    sleeps = prof.thread_waits[prof.thread_waits["function"] == "time.sleep"]
    lengths = sleeps.set_index("thread_id")["duration_ns"]
    assert lengths[threading.main_thread().native_id] >= 2_000_000
    assert lengths[worker.native_id] >= 3_000_000
    assert len(sleeps) == 2
    assert sleeps["other_thread_id"].isna().all()
    with epprof_nb.profile() as later:
        pass
    sleep(0.001)
    assert later.thread_waits.empty


def test_a_sleep_that_other_code_put_in_place_is_left_as_it_is(monkeypatch):
    slept = []
    monkeypatch.setattr(time, "sleep", slept.append)
    with epprof_nb.profile() as prof:
        time.sleep(1)
    assert slept == [1]
    assert prof.thread_waits.empty


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
    # The event's lock may still be held when the thread wakes, which is a second wait.
    row, *_ = waits_of(prof, worker).itertuples()
    assert row.start_ns == 0
    assert row.other_thread_id == threading.main_thread().native_id


def test_a_profile_with_waits_is_saved(tmp_path):
    with epprof_nb.profile() as prof:
        run(copy.copy, 1).join()
    prof.save(tmp_path / "waits.epprof")
    loaded = epprof_nb.load(tmp_path / "waits.epprof")
    assert loaded.thread_waits.equals(prof.thread_waits)
