"""Names of threads: Python's, and the system's for threads of native libraries."""

import _thread
import ctypes
import gc
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import epprof_nb
from epprof_nb import host
from epprof_nb.analysis.base.thread_labels import thread_names
from epprof_nb.recording.session import thread_names as names_of_threads
from epprof_nb.views.view_model import ViewModel

PR_SET_NAME = 15


def work(_=None):
    array = host.empty((16,))
    host.launch(lambda a: a.fill(1), array, name="fill")


def native_thread(name):
    """Run `work` on a thread that Python does not know, named by prctl as in libraries."""
    done = _thread.allocate_lock()
    done.acquire()

    def run():
        ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode(), 0, 0, 0)
        work()
        done.release()

    _thread.start_new_thread(run, ())
    done.acquire()


@pytest.fixture(scope="module")
def prof():
    with epprof_nb.profile() as prof:
        work()
        with ThreadPoolExecutor(2, thread_name_prefix="loader") as pool:
            list(pool.map(work, range(8)))
        writer = threading.Thread(target=work, name="writer")
        writer.start()
        writer.join()
        native_thread("pt_autograd_0")
    return prof


def test_threads_that_ended_before_the_profile_keep_their_names(prof):
    names = set(thread_names(prof.info).values())
    assert {"loader_0", "writer", "pt_autograd_0"} <= names


def run_threads():
    with ThreadPoolExecutor(2, thread_name_prefix="loader") as pool:
        list(pool.map(work, range(8)))
    writer = threading.Thread(target=work, name="writer")
    writer.start()
    writer.join()
    return weakref.ref(writer)


def test_threads_that_python_has_forgotten_keep_their_names():
    with epprof_nb.profile() as prof:
        for _ in range(3):
            writer = run_threads()
        gc.collect()
    names = list(thread_names(prof.info).values())
    assert names.count("writer") == 3
    assert {"loader_0", "loader_1"} >= set(names) - {"writer", "main thread"}
    gc.collect()
    assert writer() is None  # the profile does not keep the thread


def test_a_thread_that_ends_while_names_are_read_keeps_its_name(monkeypatch):
    goes_on = threading.Event()
    started = []

    def run():
        ctypes.CDLL(None).prctl(PR_SET_NAME, b"short-lived", 0, 0, 0)
        work()
        started.append(threading.get_native_id())
        goes_on.wait(60)

    def read(path):
        if path == f"task/{started[0]}/comm":
            goes_on.set()
            while Path("/proc/self", path).exists():
                time.sleep(0.001)
        return system_name(path)

    system_name = names_of_threads._comm
    monkeypatch.setattr(names_of_threads, "_comm", read)
    with epprof_nb.profile() as prof:
        _thread.start_new_thread(run, ())
        while not started:
            time.sleep(0.001)
    assert thread_names(prof.info)[started[0]] == "short-lived"


def test_the_names_belong_to_the_threads_of_the_tables(prof):
    names = thread_names(prof.info)
    known = set(prof.api_calls["thread_id"]) | set(prof.ops["thread_id"])
    assert names.keys() <= known | set(prof.thread_waits["other_thread_id"].dropna())
    assert names[threading.get_native_id()] == "main thread"


def test_lanes_have_the_names_of_their_threads(prof):
    lanes = {lane.label: lane for lane in ViewModel(prof).layout.lanes}
    thread = {name: number for number, name in thread_names(prof.info).items()}["pt_autograd_0"]
    assert lanes["pt_autograd_0"].thread == thread
    assert str(thread) in lanes["pt_autograd_0"].title
    assert not any(label.startswith("thread ") for label in lanes)


def test_a_damaged_list_of_threads_names_nothing():
    assert thread_names({"threads": 3}) == {}
    assert thread_names({"threads": [1, {"thread_id": "x", "name": "y"}, {"thread_id": 4}]}) == {}
