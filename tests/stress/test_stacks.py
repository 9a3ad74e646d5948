"""Python stacks of threads, tasks, generators and greenlets against those of sys._getframe."""

import asyncio
import gc
import os
import random
import subprocess
import sys
import threading

import pytest

from epprof_nb import _native
from epprof_nb.core.options import Options
from epprof_nb.recording.session.recording import Subscription
from epprof_nb.recording.session.service import service
from epprof_nb.recording.stacks import availability, self_test
from epprof_nb.recording.stacks.resolution import resolve
from tests.helpers import cupti_stub
from tests.helpers.threads import run_all
from tests.stress import FACTOR
from tests.stress.test_forks import status_of

pytestmark = pytest.mark.skipif(
    availability.why_unavailable() is not None, reason="stacks cannot be read here"
)
THREADS = 32


class Seen:
    """Stacks read as at a launch, with the frames that Python showed at that moment."""

    def __init__(self):
        self._seen = []

    def check(self):
        frames, frame = [], sys._getframe(1)
        while frame is not None:
            frames.append((frame.f_code.co_filename, frame.f_code.co_qualname, frame.f_lineno))
            frame = frame.f_back
        self._seen.append((_native.current_stack(), frames))

    def differing(self, drained):
        """Return the stacks that differ from the frames; those of the caller's line are equal."""
        ids = [stack for stack, _ in self._seen]
        resolved = resolve(drained, [ids])
        rows = resolved.rows(ids)
        trees = {row: resolved.stacks.frames(row) for row in set(rows.tolist())}
        found = []
        for row, (_, frames) in zip(rows.tolist(), self._seen, strict=True):
            walked = [(frame.file, frame.function, frame.line) for frame in trees[row]]
            shown = [frame for frame in frames if frame[2] is not None and frame[2] >= 0]
            # The first frame is that of `check`.
            if walked[1:] != shown:
                found.append((walked, shown))
        return len(self._seen), found


def recorded(program):
    """Run a program that calls `check`; return the numbers of stacks, and what differs."""
    seen = Seen()
    subscription = Subscription(Options())
    service.open(subscription)
    try:
        program(seen.check)
    finally:
        recording = service.close(subscription)
    return seen.differing(recording.stacks)


def execute_in_a_loop(check, times=40):
    for i in range(times):
        namespace = {"check": check}
        exec("\n" * (i % 5) + "def function():\n    check()\nfunction()", namespace)


def all_shapes(check, random_source, times):
    programs = [*self_test.SHAPES.values(), execute_in_a_loop, run_tasks]
    for _ in range(times):
        random_source.choice(programs)(check)
        if random_source.random() < 0.02:
            gc.collect()


def run_tasks(check):
    async def leaf(depth):
        check()
        await asyncio.sleep(0)
        if depth:
            await asyncio.gather(leaf(depth - 1), leaf(depth - 1))
        check()

    asyncio.run(leaf(3))


def test_threads_with_all_shapes_of_calls():
    times = 20 * FACTOR

    def program(check):
        run_all(
            threading.Thread(target=all_shapes, args=(check, random.Random(number), times))
            for number in range(THREADS)
        )

    count, found = recorded(program)
    assert count > THREADS * times
    assert found == []


def test_walks_while_another_thread_looks_at_all_frames():
    ended = threading.Event()

    def look():
        while not ended.is_set():
            for innermost in sys._current_frames().values():
                frame = innermost
                while frame is not None:
                    frame = frame.f_back
            gc.collect()

    def trace(frame, event, argument):
        return trace

    def work(results, traced):
        if traced:
            sys.settrace(trace)
        for _ in range(10 * FACTOR):
            for shape in ("recursion", "generator", "methods", "callback of C"):
                self_test.SHAPES[shape](lambda: results.append(differ(*self_test.read_both())))

    def differ(walked, shown):
        return walked != shown

    results = [[] for _ in range(8)]
    threads = [
        threading.Thread(target=work, args=(of_thread, number % 2))
        for number, of_thread in enumerate(results)
    ]
    looking = threading.Thread(target=look)
    looking.start()
    run_all(threads)
    ended.set()
    looking.join()
    assert all(results)
    assert not any(map(any, results))


GREENLETS = """
from gevent import monkey
monkey.patch_all()
import gevent, json
from tests.stress.test_stacks import recorded, execute_in_a_loop
from epprof_nb.recording.stacks import self_test

def work(check, depth):
    check()
    gevent.sleep(0)
    if depth:
        gevent.joinall([gevent.spawn(work, check, depth - 1) for _ in range(2)])
    self_test.SHAPES["generator"](check)
    gevent.sleep(0.001)
    execute_in_a_loop(check, 5)

count, found = recorded(lambda check: gevent.joinall([gevent.spawn(work, check, 4)]))
print(json.dumps([count > 200, found]))
"""


def run_python(program, **given):
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, **given
    )


def test_greenlets():
    pytest.importorskip("gevent")
    done = run_python(GREENLETS)
    assert done.stdout.split("\n")[-2] == "[true, []]", done.stderr


LAUNCHES_AT_THE_END = """
assert _native.prepare_stacks(sys.version_info.minor) is None
import atexit
atexit.register(_native.end_stacks)
_native.start_stacks()
start()
def recurse(depth):
    if depth: recurse(depth - 1)
    else:
        while True: stub.stub_call(50)
for number in range(8):
    threading.Thread(target=recurse, args=(number * 10,), daemon=True).start()
while len(_native.drain_launches()["stack_id"]) < 4000: pass
"""


def test_threads_launch_when_the_interpreter_ends(tmp_path):
    # They are inside a call, without the GIL, while the interpreter frees their states.
    library = cupti_stub.build(tmp_path)
    for _ in range(5 * FACTOR):
        cupti_stub.run(library, LAUNCHES_AT_THE_END)


THREADS_THAT_END_IN_A_CALL = """
assert _native.prepare_stacks(sys.version_info.minor) is None
_native.start_stacks()
start()
def end_in_a_call(number):
    stub.stub_report_call(1, 307, number, 0)
for number in range(1, 200):
    thread = threading.Thread(target=end_in_a_call, args=(number,))
    thread.start()
    thread.join()
    if number % 20 == 0:
        _native.drain_launches(), _native.drain_ops(0, open_too=False), _native.drain_stacks()
stub.stub_call(1)
print(len(_native.drain_launches()["stack_id"]) >= 4)
"""


def test_threads_end_inside_a_call(tmp_path):
    assert cupti_stub.run(cupti_stub.build(tmp_path), THREADS_THAT_END_IN_A_CALL) == "True\n"


def test_children_of_a_fork_read_their_own_stacks():
    ended = threading.Event()

    def work(check):
        while not ended.is_set():
            self_test.SHAPES["recursion"](check)

    def program(check):
        threads = [threading.Thread(target=work, args=(check,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(10 * FACTOR):
                child = os.fork()
                if child == 0:
                    code = 1
                    try:
                        _, found = recorded(lambda check: all_shapes(check, random.Random(1), 5))
                        code = 2 if found else 0
                    finally:
                        os._exit(code)
                codes.append(status_of(child))
        finally:
            ended.set()
            for thread in threads:
                thread.join()

    codes = []
    _, found = recorded(program)
    assert found == []
    assert set(codes) == {0}


SUBINTERPRETERS = """
import sys
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    import _interpreters as interpreters
from epprof_nb import _native
from epprof_nb.recording.stacks.availability import why_unavailable
assert why_unavailable() is None
_native.start_stacks()
before = _native.current_stack()
other = interpreters.create()
during = _native.current_stack()
interpreters.run_string(other, "x = 1")
interpreters.destroy(other)
print(before >= 0, during, _native.current_stack() >= 0)
"""


def test_beside_other_interpreters_there_are_no_stacks():
    done = run_python(SUBINTERPRETERS)
    assert done.stdout == "True -1 True\n", done.stderr
