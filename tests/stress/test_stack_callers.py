"""Python stacks in code that the interpreter or a library of C calls, against sys._getframe."""

import bdb
import ctypes
import signal
import sys
import time

import pytest

from epprof_nb.recording.stacks import availability, self_test
from tests.stress import FACTOR
from tests.stress.test_stacks import recorded

pytestmark = pytest.mark.skipif(
    availability.why_unavailable() is not None, reason="stacks cannot be read here"
)


def work(check, depth=3):
    try:
        if not depth:
            int("no number")
        check()
        return work(check, depth - 1)
    except ValueError:
        return check()


def test_signal_handlers_that_launch():
    hits = []

    def program(check):
        def handle(number, frame):
            check()
            hits.append(number)

        previous = signal.signal(signal.SIGALRM, handle)
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        try:
            end = time.monotonic() + 60
            while len(hits) < 50 * FACTOR and time.monotonic() < end:
                work(check, 10)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, previous)

    count, found = recorded(program)
    assert len(hits) >= 50 * FACTOR
    assert count > len(hits)
    assert found == []


def test_a_debugger_that_launches():
    class Debugger(bdb.Bdb):
        def user_line(self, frame):
            check_of[0]()
            self.set_step()

        def user_return(self, frame, value):
            check_of[0]()

        def user_exception(self, frame, error):
            check_of[0]()

    check_of = []

    def program(check):
        check_of.append(check)
        for _ in range(10 * FACTOR):
            Debugger().runcall(work, check)

    previous = sys.gettrace()
    try:
        count, found = recorded(program)
    finally:
        sys.settrace(previous)
    assert count > 100
    assert found == []


if sys.version_info >= (3, 12):  # 3.11 has no sys.monitoring

    def test_callbacks_of_monitoring_that_launch():
        tool = 4

        def program(check):
            monitoring, events = sys.monitoring, sys.monitoring.events
            runs = False

            def observe(*_):
                nonlocal runs
                if not runs:
                    runs = True
                    check()
                    runs = False

            observed = (
                events.LINE,
                events.PY_START,
                events.PY_RETURN,
                events.INSTRUCTION,
                events.CALL,
            )
            monitoring.use_tool_id(tool, "test")
            try:
                for event in observed:
                    monitoring.register_callback(tool, event, observe)
                monitoring.set_events(tool, sum(observed))
                for _ in range(10 * FACTOR):
                    work(check)
            finally:
                monitoring.set_events(tool, events.NO_EVENTS)
                monitoring.free_tool_id(tool)

        count, found = recorded(program)
        assert count > 1000
        assert found == []


def test_callbacks_of_c_on_threads_of_python_and_of_c():
    callback = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    c = ctypes.CDLL(None)

    def program(check):
        def observed(*_):
            self_test.SHAPES["generator"](check)
            check()
            return 0

        numbers = (ctypes.c_int * 8)(*range(8, 0, -1))
        run, order = callback(observed), compare(observed)
        for _ in range(10 * FACTOR):
            c.qsort(numbers, 8, ctypes.sizeof(ctypes.c_int), order)
            threads = [ctypes.c_ulong() for _ in range(4)]
            for thread in threads:
                assert c.pthread_create(ctypes.byref(thread), None, run, None) == 0
            for thread in threads:
                assert c.pthread_join(thread, None) == 0

    count, found = recorded(program)
    assert count > 400 * FACTOR
    assert found == []
