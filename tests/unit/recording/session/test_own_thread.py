"""Threads of the profiler are not in recordings."""

import gc
import os
import threading

import pytest

import epprof_nb
from epprof_nb.core.own_thread import OwnThread


def collect_often(ids):
    ids.append(threading.get_native_id())
    for _ in range(5):
        gc.collect()


def test_pauses_and_names_of_other_threads_only_are_recorded():
    for kind, recorded in ((OwnThread, False), (threading.Thread, True)):
        ids = []
        with epprof_nb.profile() as prof:
            thread = kind(target=collect_often, args=(ids,))
            thread.start()
            thread.join()
        ops = prof.ops
        pauses = ops[(ops["op_type"] == "gc") & (ops["thread_id"] == ids[0])]
        assert len(pauses) == (5 if recorded else 0)
        listed = [thread["thread_id"] for thread in prof.info["threads"]]
        assert (ids[0] in listed) == recorded


def test_programs_see_no_thread_of_the_profiler():
    seen = threading.enumerate()
    may_end = threading.Event()
    thread = OwnThread(target=may_end.wait, daemon=True)
    assert thread.ident is None
    assert not thread.is_alive()
    thread.start()
    assert threading.enumerate() == seen
    assert threading.active_count() == len(seen)
    thread.join(0)
    assert thread.is_alive()
    may_end.set()
    thread.join()
    assert not thread.is_alive()
    assert thread.ident is not None


def test_a_thread_that_asks_for_itself_is_listed_until_it_ends():
    seen, found = threading.enumerate(), []
    thread = OwnThread(target=lambda: found.append(threading.current_thread()), daemon=True)
    thread.start()
    thread.join()
    assert len(found) == 1
    assert threading.enumerate() == seen


def test_misuse_is_an_error_as_for_other_threads():
    thread = OwnThread(target=lambda: None, daemon=True)
    with pytest.raises(RuntimeError, match="before it is started"):
        thread.join()
    thread.start()
    thread.join()
    with pytest.raises(RuntimeError, match="only be started once"):
        thread.start()


def test_a_forked_child_does_not_wait_for_a_thread_that_it_lacks():
    may_end = threading.Event()
    thread = OwnThread(target=may_end.wait, daemon=True)
    thread.start()
    pid = os.fork()
    if not pid:
        thread.join()
        os._exit(thread.is_alive())
    may_end.set()
    assert os.waitpid(pid, 0)[1] == 0
