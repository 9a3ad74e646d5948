"""The walk over Python frames: equal to what sys._getframe shows."""

import sys
import threading

import pytest

from epprof_nb import _native
from epprof_nb.recording.stacks import availability, self_test

pytestmark = pytest.mark.skipif(
    availability.why_unavailable() is not None, reason="stacks cannot be read here"
)


def check():
    walked, shown = self_test.read_both()
    assert walked == shown
    return walked


@pytest.mark.parametrize("name", self_test.SHAPES)
def test_the_walk_shows_the_frames_of_each_shape(name):
    seen = []
    self_test.SHAPES[name](lambda: seen.append(check()))
    assert seen


def test_a_difference_is_found(monkeypatch):
    assert self_test.differing() == []
    # A frame less, at the outer end, in calls that are deep enough.
    read = self_test.read_both

    def one_less():
        walked, shown = read()
        return walked[: len(shown) - 1], shown

    monkeypatch.setattr(self_test, "read_both", one_less)
    assert self_test.differing() == list(self_test.SHAPES)


def test_the_innermost_frame_comes_first():
    frame = check()[2]
    assert frame[2:4] == (__file__, "test_the_innermost_frame_comes_first")
    assert frame[5] == sys._getframe().f_lineno - 2


def test_deep_recursion_keeps_every_frame():
    def descend(depth):
        return descend(depth - 1) if depth else check()

    depth = sys.getrecursionlimit() - 100 - len(check())
    assert len(descend(depth)) > depth


def test_a_thread_of_python_has_its_own_frames():
    found = []
    thread = threading.Thread(target=lambda: found.append(check()))
    thread.start()
    thread.join()
    assert found[0][-1][3] == "Thread._bootstrap"


def test_a_trace_function_changes_nothing():
    previous = sys.gettrace()
    try:
        sys.settrace(lambda *_: None)
        check()
    finally:
        sys.settrace(previous)


def test_an_unknown_version_has_no_stacks():
    # The layout that is in use stays.
    assert _native.prepare_stacks(99) == "this version of Python is not known"
    check()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda m: m.setattr(sys.implementation, "name", "pypy"), "pypy"),
        (lambda m: m.setattr(sys, "gettotalrefcount", int, raising=False), "debug build"),
        (lambda m: m.setattr("sys.abiflags", "t"), "free-threaded"),
    ],
)
def test_other_interpreters_have_no_stacks(monkeypatch, change, reason):
    change(monkeypatch)
    assert reason in availability._unsupported()
