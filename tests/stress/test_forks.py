"""Forks of a process whose threads record at that moment."""

import os
import threading
import time

import epprof_nb
from epprof_nb import host
from epprof_nb.recording.session.service import service
from tests.stress import FACTOR


def child_works() -> bool:
    """Profile something, as a worker process would."""
    assert service.open_subscriptions == 0
    array = host.empty((4,))
    with epprof_nb.profile() as prof, epprof_nb.op("child"):
        host.launch(lambda a: a.fill(1), array, name="child")
    return prof.ops["name"].tolist() == ["child"] and len(prof.by_op()) == 1


def test_children_work_whatever_the_threads_of_the_parent_do():
    # Python does not unlock a module in the child that another thread was importing.
    assert child_works()
    ended = threading.Event()

    def record(number: int) -> None:
        array = host.empty((4,))
        while not ended.is_set():
            with epprof_nb.profile(), epprof_nb.op(f"op {number} {time.monotonic_ns()}"):
                host.launch(lambda a: a.fill(1), array, name="parent")

    threads = [threading.Thread(target=record, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    codes = []
    try:
        for _ in range(15 * FACTOR):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    code = 0 if child_works() else 2
                finally:
                    os._exit(code)
            codes.append(status_of(child))
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert set(codes) == {0}


def status_of(child: int) -> str | int:
    """Wait for a child, which hangs if it waits for a lock of a thread of its parent."""
    for _ in range(3000):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return "hangs"
