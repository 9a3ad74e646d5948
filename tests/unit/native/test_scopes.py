"""Function bodies as context managers: scopes on the op stack."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest

import epprof_nb
from epprof_nb import _native
from epprof_nb.recording.ranges import suspension
from epprof_nb.recording.statements.statement_registry import IN_GENERATOR, NO_PARENT
from tests.helpers import op_rows
from tests.helpers.recorded_ops import drained, recording
from tests.helpers.threads import run_all


def statements(*names):
    ids = np.array([_native.intern(n) for n in names], np.uint32)
    return _native.add_statements(np.full(len(ids), -1, np.int32).tobytes(), ids.tobytes())


@pytest.fixture
def key():
    return statements("def", "body")


@pytest.mark.parametrize("make", [_native.body, _native.frame_body])
def test_one_object_serves_a_key(make, key):
    assert make(key) is make(key)
    assert make(key) is not make(key + 1)


def test_the_two_kinds_are_apart_and_unknown_keys_refused(key):
    assert _native.body(key) is not _native.frame_body(key)
    with pytest.raises(ValueError, match="no statement has the key 4294967295"):
        _native.body(2**32 - 1)
    with pytest.raises(TypeError):
        _native.body("x")


def test_a_body_opens_and_closes_a_scope_under_recursion(key):
    def recurse(n):
        with _native.body(key):
            _native.line(key + 1)
            return n if n == 0 else recurse(n - 1)

    recurse(2)  # outside a session it does nothing
    with recording():
        recurse(2)
        assert _native.depth() == 0
        rows = drained()
    assert [(r.name, r.parent) for r in rows] == [("body", None)] + [("body", "body")] * 2


def test_an_exception_passes_and_ends_statements_and_keeps_its_line(key):
    def fails():
        with _native.body(key):
            _native.line(key + 1)
            raise KeyError("k")

    with recording():
        with pytest.raises(KeyError) as caught:
            fails()
        assert _native.depth() == 0
        assert [r.flags for r in drained()] == [0]
    assert caught.traceback[-1].lineno + 1 == fails.__code__.co_firstlineno + 3


def test_a_session_may_begin_or_end_inside(key):
    with _native.body(key), recording():
        pass
    guard = _native.body(key)
    with recording():
        guard.__enter__()
    guard.__exit__(None, None, None)
    with recording():
        assert guard.__exit__(None, None, None) is False
        assert _native.depth() == 0


def test_a_frame_body_is_suspended_with_its_generator(key):
    def numbers():
        with _native.frame_body(key):
            _native.line(key + 1)
            yield 1
            yield 2

    with recording():
        it = numbers()
        next(it)
        assert _native.depth() == 0
        with epprof_nb.op("caller"):
            assert list(it) == [2]
        assert _native.depth() == 0
        rows = drained()
    assert sorted(r.name for r in rows) == ["body", "caller"]
    assert all(r.flags == 0 for r in rows)


def test_a_repeated_statement_may_end_in_another_thread():
    """The row that sums up its executions belongs to the thread where it began."""
    key = statements("def", "body", "other")

    def numbers(statement=key + 1):
        with _native.frame_body(key):
            _native.line(statement)
            yield 1

    def end(generator):
        # In Python 3.11, a thread follows the frames that began in it.
        suspension.track_frame(generator.gi_frame)
        own = numbers(key + 2)
        next(own)
        list(generator)
        list(own)

    _native.set_limits(statement_repeats=1)
    try:
        with recording():
            generators = [numbers() for _ in range(5)]
            for generator in generators:
                next(generator)
                thread = threading.Thread(target=end, args=[generator])
                thread.start()
                thread.join()
            rows = drained()
    finally:
        _native.set_limits()
    counts = [sum(r.count for r in rows if r.name == name) for name in ("body", "other")]
    assert counts == [5, 5]


@pytest.mark.parametrize("case", ["other thread", "function unset", "ends elsewhere"])
def test_a_statement_of_a_generator_resumes_it(case):
    """A profile function, on Python 3.11, misses the resumption."""
    first = op_rows.statements((NO_PARENT, "def"), (IN_GENERATOR, "for"), (1, "body"))
    depths = []

    def numbers():
        with _native.frame_body(first):
            _native.line(first + 1)
            for i in range(4):
                _native.line(first + 2)
                yield i
                _native.back(first + 1)

    def take():
        with epprof_nb.op("caller"):
            next(it)
            depths.append(_native.depth())

    def on_thread(function):
        thread = threading.Thread(target=function)
        thread.start()
        thread.join()

    with recording():
        it = numbers()
        take()
        for _ in range(3):
            if case == "function unset":
                sys.setprofile(None)
                take()
            elif case == "other thread":
                on_thread(take)
            else:
                take()
        if case == "function unset":
            assert list(it) == []
        else:
            on_thread(it.close)
        # The address of a frame that has ended may be in use again.
        assert list(numbers()) == [0, 1, 2, 3]
        rows = drained()
        assert _native.depth() == 0
    assert depths == [1, 1, 1, 1]
    assert all(row.flags == 0 for row in rows)
    parents = [(row.name, row.parent) for row in rows if row.name != "caller"]
    assert parents.count(("body", "for")) == 8
    assert parents.count(("for", "caller")) == 1
    assert parents.count(("for", None)) == 1
    assert len(parents) == 10


def test_threads_share_a_body(key):
    def work():
        for _ in range(200):
            with _native.body(key):
                _native.line(key + 1)

    with recording():
        run_all(threading.Thread(target=work) for _ in range(4))
        assert len(drained()) == 800
