"""Samples of the host: the Python stacks of threads between their API calls."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import epprof_nb
from epprof_nb import _native, host
from epprof_nb.commands.info import describe
from epprof_nb.core.own_thread import OwnThread
from epprof_nb.recording.samples import native_sampler
from epprof_nb.recording.samples.availability import why_no_samples
from epprof_nb.recording.samples.host_samples import sample_counts, sample_table
from tests.helpers.sampled import Sampled

pytestmark = pytest.mark.skipif(why_no_samples() is not None, reason="the host cannot be sampled")


def frames_of(thread):
    """The frames of a thread as Python shows them, innermost first."""
    frame, found = sys._current_frames()[thread], []
    while frame is not None:
        if frame.f_lineno is not None:
            found.append((frame.f_code.co_filename, frame.f_code.co_qualname, frame.f_lineno))
        frame = frame.f_back
    return found


def descend(depth, then):
    return descend(depth - 1, then) if depth else then()


def in_generator(then):
    def numbers():
        yield then()

    return [sorted(numbers()) for _ in range(1)]


@pytest.mark.parametrize("around", [descend, in_generator])
def test_a_thread_that_waits_is_sampled_where_it_waits(around):
    shown = {}

    def work(done, waits):
        with epprof_nb.op("work"):
            waits.set()
            call = done.wait
            around(*([30] if around is descend else []), call)

    def program(done):
        waits = threading.Event()
        thread = threading.Thread(target=work, args=(done, waits))
        thread.start()
        waits.wait()
        until_it_waits(thread)
        shown[thread.native_id] = frames_of(thread.ident)
        done.wait()
        thread.join()

    def until_it_waits(thread):
        before = None
        while (now := frames_of(thread.ident)) != before or now[0][1] != "Condition.wait":
            before = now
            os.sched_yield()

    found = Sampled(program, threads=2)
    [(thread, expected)] = shown.items()
    stacks = found.of(thread)
    assert len(stacks) >= 20
    assert (np.diff(found.processor[found.thread == thread]) >= 0).all()
    assert (np.diff(found.core_wait[found.thread == thread]) >= 0).all()
    # Samples from before and after the wait have other frames.
    assert stacks.count(expected) >= len(stacks) // 2
    assert found.counts["inconsistent"] == 0


def spin(done):
    while not done.is_set():
        pass


def test_a_thread_that_runs_is_sampled_in_its_functions():
    found = Sampled(spin)
    first = spin.__code__.co_firstlineno
    stacks = found.of(threading.get_native_id())
    assert len(stacks) >= 20
    spins = [stack for stack in stacks if (__file__, "spin") in {frame[:2] for frame in stack}]
    assert len(spins) >= 15
    for stack in spins:
        at = [frame[:2] for frame in stack].index((__file__, "spin"))
        assert stack[at][2] in (first + 1, first + 2)
        assert at <= 1  # in Event.is_set
    assert (found.interval > 0).all()


def test_threads_without_ops_and_launches_are_not_sampled():
    def program(done):
        ids.append(threading.get_native_id())
        thread = threading.Thread(target=spin, args=(done,))
        thread.start()
        ids.append(thread.native_id)
        done.wait()
        thread.join()

    ids = []
    found = Sampled(program)
    assert set(found.thread.tolist()) == {ids[0]}


def test_a_thread_that_ends_waits_of_others_is_sampled():
    def serve(done):
        while not done.is_set():
            wanted.wait()
            wanted.clear()
            sum(range(20_000))
            served.set()

    def program(done):
        thread = threading.Thread(target=serve, args=(done,))
        thread.start()
        ids.append(thread.native_id)
        while not done.is_set():
            wanted.set()
            served.wait()
            served.clear()
        wanted.set()
        thread.join()

    wanted, served, ids = threading.Event(), threading.Event(), []
    found = Sampled(program, threads=2)
    functions = {frame[1].rpartition(".")[2] for stack in found.of(ids[0]) for frame in stack}
    assert "serve" in functions


def test_threads_of_the_profiler_are_not_sampled():
    def own(done):
        with epprof_nb.op("work"):
            spin(done)

    def program(done):
        ids.append(threading.get_native_id())
        thread = OwnThread(target=own, args=(done,))
        thread.start()
        done.wait()
        thread.join()

    ids = []
    found = Sampled(program)
    assert set(found.thread.tolist()) == {ids[0]}


def test_a_freed_function_is_not_taken_for_another():
    def program(done):
        number = 0
        while not done.is_set():
            number = (number + 1) % 7
            text = "\n" * number + "def f():\n    for i in range(9000): pass\nf()"
            exec(compile(text, f"<number {number}>", "exec"), {})

    found = Sampled(program, needed=60)
    seen = 0
    for stack in found.of(threading.get_native_id()):
        for file, function, line in stack:
            if file.startswith("<number"):
                number = int(file.split()[1][:-1])
                seen += 1
                assert line == number + (3 if function == "<module>" else 2) or (
                    # A module begins at line 1, before its first statement.
                    function == "<module>" and line in (1, number + 1)
                )
    assert seen > 20


def test_samples_can_be_switched_off():
    with epprof_nb.profile(samples=False) as prof, epprof_nb.op("sum"):
        sum(range(1_000_000))
    assert len(prof.host_samples) == 0
    assert not prof.info["recording"]["samples"]
    assert "no_samples" not in prof.info
    assert "`samples=False`" in prof.host_samples.attrs["note"]


def test_samples_need_no_stacks_of_launches():
    def program(done):
        host.launch(int)
        spin(done)

    found = Sampled(program, stacks=False)
    assert any("spin" in {frame[1] for frame in stack} for stack in found.of(
        threading.get_native_id()
    ))  # fmt: skip
    assert _native.current_stack() == -1


def test_a_nested_profile_may_switch_them_on():
    with epprof_nb.profile(samples=False):
        assert Sampled(spin).counts["exact"] > 0


def test_a_nested_profile_may_switch_them_off():
    made = []

    def program(done):
        with epprof_nb.profile(samples=False) as prof:
            spin(done)
        made.append(prof)

    assert Sampled(program).counts["exact"] > 0
    assert len(made[0].host_samples) == 0
    assert not made[0].info["recording"]["samples"]


def test_a_profile_tells_why_it_has_no_samples(monkeypatch):
    monkeypatch.setattr(native_sampler, "why_no_samples", lambda: "the system refuses it")
    with epprof_nb.profile() as prof:
        sum(range(100_000))
    assert len(prof.host_samples) == 0
    assert prof.info["no_samples"] == "the system refuses it"
    assert "not taken: the system refuses it" in describe(prof)


def test_samples_in_calls_are_left_out():
    def drained(*times):
        columns = {
            "time": np.array(times, np.int64),
            "interval": np.full(len(times), 7, np.int64),
            "processor": np.full(len(times), 5, np.int64),
            "core_wait": np.full(len(times), 3, np.int64),
            "thread_id": np.full(len(times), 5, np.uint64),
            "stack_id": np.arange(len(times), dtype=np.int32),
        }
        return {name: column.tobytes() for name, column in columns.items()}

    calls = tuple(np.array(column) for column in ([5, 5, 6], [10, 12, 0], [20, 30, 100]))
    found = sample_table([drained(4, 5, 9), {}, drained(10, 25, 30, 41)], 5, 40, calls)
    assert found["start_ns"].tolist() == [5, 9, 30]
    assert found["stack_id"].tolist() == [1, 2, 2]


SAMPLED_TO_THE_END = """
import atexit, os, time
def threads():
    return len(os.listdir("/proc/self/task"))
def at_exit():  # after the callbacks that were registered later
    until = time.monotonic() + 60
    while threads() > before and time.monotonic() < until:  # a thread that has ended leaves soon
        time.sleep(0.01)
    print(during > before, threads() > before)
before = threads()
atexit.register(at_exit)
from epprof_nb import _native
from epprof_nb.recording.samples.availability import why_no_samples
assert why_no_samples() is None and _native.start_samples() is None
during = threads()
"""


def test_sampling_ends_before_the_interpreter_frees_its_threads():
    program = [sys.executable, "-c", SAMPLED_TO_THE_END]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    assert done.stdout == "True False\n"


def test_counts_are_those_of_the_recording():
    before = {"exact": 5, "outer": 1, "inconsistent": 0, "dropped": 0}
    after = {"exact": 9, "outer": 1, "inconsistent": 2, "dropped": 0}
    expected = {"exact": 4, "outer": 0, "inconsistent": 2, "dropped": 0}
    assert sample_counts([before, after], [before]) == expected
    assert sample_counts([], []) is None
    assert sample_counts([{}], []) is None
