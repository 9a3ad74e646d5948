"""Samples of threads that do everything: each frame is one that the program can have."""

import gc
import linecache
import os
import random
import sys
import threading
import time
import types

import pytest

from epprof_nb import op
from epprof_nb.recording.samples.availability import why_no_samples
from epprof_nb.recording.stacks import self_test
from tests.helpers.sampled import Sampled
from tests.stress import FACTOR
from tests.stress.test_forks import status_of
from tests.stress.test_stacks import execute_in_a_loop, run_python, run_tasks

pytestmark = pytest.mark.skipif(why_no_samples() is not None, reason="the host cannot be sampled")
THREADS = 32


def lines_of(code):
    """Line numbers of a code object by its qualified name, with those of functions in it."""
    found = {code.co_qualname: {line for _, _, line in code.co_lines() if line}}
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            for name, lines in lines_of(inner).items():
                found.setdefault(name, set()).update(lines)
    return found


def impossible(frames):
    """Return those frames whose line is not one of their function."""
    known, found = {}, []
    for file, function, line in frames:
        if file not in known:
            # Of code that was executed as text, there are several.
            text = "" if file.startswith("<") else "".join(linecache.getlines(file))
            known[file] = lines_of(compile(text, file, "exec")) if text else None
        if known[file] is not None and line not in known[file].get(function, ()):
            found.append((file, function, line))
    return found


def check(found, inconsistent=0.02):
    frames = {(f.file, f.function, f.line) for stack in found.stacks for f in stack}
    assert frames
    assert impossible(frames) == []
    assert found.counts["dropped"] == 0
    taken = found.counts["exact"] + found.counts["outer"]
    assert found.counts["inconsistent"] <= inconsistent * taken
    return frames


def nothing():
    pass


def everything(done, seed):
    programs = [
        *self_test.SHAPES.values(),
        execute_in_a_loop,
        run_tasks,
        lambda then: time.sleep(1e-3),
    ]
    choose = random.Random(seed).choice
    while not done.is_set():
        with op("work"):
            choose(programs)(nothing)


def run_threads(targets):
    threads = [threading.Thread(target=target) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_threads_with_all_shapes_of_calls():
    def program(done):
        run_threads([lambda n=n: everything(done, n) for n in range(THREADS)])

    found = Sampled(program, needed=20 * FACTOR, threads=THREADS)
    frames = check(found)
    assert len(set(found.thread.tolist())) >= THREADS
    assert len(frames) > 50


def test_threads_that_come_and_go():
    def briefly():
        with op("brief"):
            for _ in range(random.randrange(2000)):
                nothing()

    def program(done):
        while not done.is_set():
            run_threads([briefly] * 8)

    check(Sampled(program, needed=100 * FACTOR))


def test_samples_while_a_debugger_traces():
    def trace(frame, event, argument):
        return trace

    def program(done):
        sys.settrace(trace)
        try:
            while not done.is_set():
                self_test.SHAPES["recursion"](nothing)
                self_test.SHAPES["generator"](nothing)
        finally:
            sys.settrace(None)

    check(Sampled(program, needed=50 * FACTOR))


def test_a_stack_of_many_frames():
    def descend(depth, done):
        if depth:
            return descend(depth - 1, done)
        while not done.is_set():
            nothing()
        return None

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(5000)
    try:
        found = Sampled(lambda done: descend(2000, done), needed=20)
    finally:
        sys.setrecursionlimit(limit)
    check(found)
    assert max(map(len, found.stacks)) > 1000


def test_hundreds_of_threads():
    """Most wait for the GIL; each is sampled where it waits."""
    count = 200

    def program(done):
        run_threads([lambda: briefly_until(done)] * count)

    found = Sampled(program, needed=5, threads=count)
    check(found)
    assert len(set(found.thread.tolist())) >= count


def briefly_until(done):
    with op("work"):
        while not done.wait(0.01):
            nothing()


def test_without_garbage_collections_and_with_a_profile_function():
    def program(done):
        sys.setprofile(lambda *_: None)
        gc.disable()
        try:
            while not done.is_set():
                self_test.SHAPES["recursion"](nothing)
                self_test.SHAPES["generator"](nothing)
        finally:
            gc.enable()
            sys.setprofile(None)

    check(Sampled(program, needed=50 * FACTOR))


def test_chains_of_generators():
    def numbers(depth):
        if depth:
            yield from numbers(depth - 1)
        else:
            for number in range(100):
                nothing()
                yield number

    def program(done):
        while not done.is_set():
            sum(numbers(30))

    found = Sampled(program, needed=50 * FACTOR)
    check(found, inconsistent=0.05)
    inner = [stack for stack in found.stacks if "numbers" in stack[0].function]
    assert len(inner) > 10
    # The chain changes with each number: on a busy machine, Python 3.13 let 7 of 31 be read.
    assert max(sum("numbers" in frame.function for frame in stack) for stack in inner) > 3


def spin(done):
    while not done.is_set():
        nothing()


def child_samples_itself():
    """Fork a child that samples itself; return its exit status."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            check(Sampled(spin, needed=3))
            code = 0
        finally:
            os._exit(code)
    return status_of(child)


def test_children_of_a_fork_take_their_own_samples():
    def program(done):
        codes.extend(child_samples_itself() for _ in range(5 * FACTOR))
        spin(done)

    codes = []
    check(Sampled(program))
    assert set(codes) == {0}


def test_a_fork_beside_threads_that_come_and_go():
    """The parent's map of its threads may be half changed in the child."""

    def briefly():
        with op("brief"):
            for _ in range(random.randrange(2000)):
                nothing()

    def program(done):
        ended = threading.Event()

        def come_and_go():
            while not ended.is_set():
                run_threads([briefly] * 8)

        thread = threading.Thread(target=come_and_go)
        thread.start()
        codes.extend(child_samples_itself() for _ in range(5 * FACTOR))
        ended.set()
        thread.join()
        spin(done)

    codes = []
    check(Sampled(program))
    assert set(codes) == {0}


_EIGHT_THREADS = """
import threading
from epprof_nb import op
from epprof_nb.core.options import Options
from epprof_nb.recording.session.recording import Subscription
from epprof_nb.recording.session.service import service
from tests.helpers.sampled import numbers
subscription = Subscription(Options())
service.open(subscription)
def work():
    with op("work"):
        while True:
            sum(range(100))
for _ in range(8):
    threading.Thread(target=work, daemon=True).start()
"""


ENDS_AT_ONCE = """
import os
while len(numbers(service.batches_since(subscription, 0))["time"]) < 5:
    pass
if os.fork() == 0:  # a child in which the profile goes on, and that ends without a word
    sum(range(100_000))
    os._exit(0)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
before = len(numbers(service.batches_since(subscription, 0))["time"])
while len(numbers(service.batches_since(subscription, 0))["time"]) < before + 5:
    pass
os.write(1, b"sampled")
os._exit(3)
"""


def test_processes_that_end_without_a_word_while_threads_are_sampled():
    for _ in range(FACTOR):
        done = run_python(_EIGHT_THREADS + ENDS_AT_ONCE)
        assert (done.returncode, done.stdout) == (3, "sampled"), done.stderr


INTERRUPTED = """
import os, signal, threading
import epprof_nb
def step(number):
    if number == 100:
        os.kill(os.getpid(), signal.SIGINT)
    return sum(range(100_000))
for _ in range(3):
    try:
        with epprof_nb.profile() as prof:
            number = 0
            while True:
                number += 1
                step(number)
    except KeyboardInterrupt:
        pass
    assert number >= 100
    assert set(prof.host_samples["function"]) <= {"step", "<module>", None}, prof.host_samples
    assert len(prof.host_samples) > 5
assert "epprof-sampler" not in [
    open(f"/proc/self/task/{task}/comm").read().strip() for task in os.listdir("/proc/self/task")
]
print("done")
"""


def test_an_interrupted_program_keeps_its_samples():
    done = run_python(INTERRUPTED)
    assert done.stdout == "done\n", done.stderr


GREENLETS = """
from gevent import monkey
monkey.patch_all()
import gevent, threading, time
from epprof_nb import op
from epprof_nb.core.options import Options
from epprof_nb.recording.session.recording import Subscription
from epprof_nb.recording.session.service import service
from epprof_nb.recording.stacks.resolution import resolve
from epprof_nb.recording.stacks import self_test
from tests.helpers.sampled import numbers
from tests.stress.test_host_samples import impossible, nothing
from tests.stress.test_stacks import execute_in_a_loop

def work(depth):
    with op("work"):
        gevent.sleep(0)
        if depth:
            gevent.joinall([gevent.spawn(work, depth - 1) for _ in range(2)])
        self_test.SHAPES["generator"](nothing)
        execute_in_a_loop(nothing, 5)

subscription = Subscription(Options())
service.open(subscription)
while len(numbers(service.batches_since(subscription, 0))["time"]) < 100:
    gevent.joinall([gevent.spawn(work, 4)])
recording = service.close(subscription)
ids = numbers(recording.batches)["stack_id"]
resolved = resolve(recording.stacks, [ids])
frames = {(f.file, f.function, f.line) for row in set(resolved.rows(ids).tolist())
          for f in resolved.stacks.frames(row)}
print(len(frames) > 10, impossible(frames))
"""


def test_greenlets():
    pytest.importorskip("gevent")
    done = run_python(GREENLETS)
    assert done.stdout == "True []\n", done.stderr


ENDS = """
while len(numbers(service.batches_since(subscription, 0))["time"]) < 20:
    pass
print("done")
"""


def test_the_interpreter_ends_while_threads_are_sampled():
    for _ in range(FACTOR):
        done = run_python(_EIGHT_THREADS + ENDS)
        assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


REFUSED = """
import ctypes, platform, struct
# A filter of system calls: process_vm_readv fails with EPERM, all others are allowed.
number = {"x86_64": 310, "aarch64": 270}[platform.machine()]
rows = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
program = struct.pack("HxxxxxxP", len(rows), ctypes.addressof(code))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, program, 0, 0) == 0
"""


def test_where_the_system_call_is_refused_the_file_of_memory_is_read():
    program = REFUSED + "\nfrom tests.stress import test_host_samples\n"
    program += "test_host_samples.test_threads_that_come_and_go()\nprint('done')"
    done = run_python(program)
    assert done.stdout == "done\n", done.stderr


REFUSED_BOTH = """
import resource
import epprof_nb
from epprof_nb.recording.samples import availability
from epprof_nb.recording.stacks.availability import why_unavailable
assert why_unavailable() is None
limits = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))  # no further file can be opened
assert "refuses" in availability.why_no_samples()
resource.setrlimit(resource.RLIMIT_NOFILE, limits)
with epprof_nb.profile() as prof:
    sum(range(1000))
print(prof.info["no_samples"])
"""


def test_without_a_way_to_read_there_are_no_samples():
    done = run_python(REFUSED + REFUSED_BOTH)
    assert "refuses process_vm_readv and /proc/self/mem" in done.stdout, done.stderr


REFUSED_LATER = """
import resource
import epprof_nb

def count():
    with epprof_nb.profile() as prof:
        sum(range(20_000_000))
    return prof.info.get("no_samples") or len(prof.host_samples)

assert count() > 3
"""


def test_a_sandbox_that_begins_between_two_profiles():
    """The second one reads the file of memory; the third one cannot open it, and says so."""
    program = REFUSED_LATER + REFUSED + "assert count() > 3\n"
    program += "resource.setrlimit(resource.RLIMIT_NOFILE, (3, 1000))\nprint(count())"
    done = run_python(program)
    assert "refuses process_vm_readv and /proc/self/mem" in done.stdout, done.stderr
