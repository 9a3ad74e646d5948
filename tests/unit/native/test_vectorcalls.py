"""Calls of all objects of a type as ops; tests/frameworks/test_jax*.py have those of JAX."""

from __future__ import annotations

import functools

import pytest

from epprof_nb import _native
from tests.helpers.recorded_ops import drained, recording


class Function(functools.partial):
    """A function whose type is written in C, and can be changed."""


def describe(function):
    return _native.intern(function.func.__name__), 7


@pytest.fixture
def recorded():
    with recording():
        _native.vectorcalls_record(Function, describe)
        yield
        _native.vectorcalls_stop()


def test_each_call_is_an_op_with_its_name_and_kind(recorded):
    length, largest = Function(len), Function(max, key=abs)
    assert length("abc") == 3
    assert largest([1, -2, 1]) == -2
    assert largest([1, -2], default=4, key=str) == 1
    assert [op.name for op in drained()] == ["len", "max", "max"]


def test_a_call_inside_another_is_part_of_it(recorded):
    assert Function(map)(Function(len), ["a", "bc"]) is not None
    assert Function(sum)(map(Function(len), ["a", "bc"])) == 3
    assert [op.name for op in drained()] == ["map", "sum"]


def test_exceptions_end_the_op(recorded):
    with pytest.raises(ValueError, match="invalid literal"):
        Function(int)("a")
    assert Function(len)("") == 0
    assert [op.name for op in drained()] == ["int", "len"]


def test_pauses_add_up(recorded):
    length = Function(len)
    _native.vectorcalls_pause(True)
    _native.vectorcalls_pause(True)
    length("")
    _native.vectorcalls_pause(False)
    length("")
    _native.vectorcalls_pause(False)
    length("")
    assert [op.name for op in drained()] == ["len"]


def test_a_pause_ends_with_its_recording():
    with recording():
        _native.vectorcalls_record(Function, describe)
        _native.vectorcalls_pause(True)
        _native.vectorcalls_stop()
        _native.vectorcalls_record(Function, describe)
        Function(len)("")
        _native.vectorcalls_pause(False)  # its end comes late
        Function(max)([1])
        _native.vectorcalls_pause(True)
        Function(min)([1])
        _native.vectorcalls_pause(False)
        _native.vectorcalls_stop()
        assert [op.name for op in drained()] == ["len", "max"]


def test_a_pause_ends_with_the_call_that_it_began_in(recorded):
    Function(_native.vectorcalls_pause)(True)
    Function(len)("")
    assert [op.name for op in drained()] == ["vectorcalls_pause", "len"]


def test_a_description_that_fails_costs_the_op_and_not_the_call(recorded, monkeypatch):
    failures = []
    monkeypatch.setattr("sys.unraisablehook", failures.append)

    class Unnamed:
        def __call__(self):
            return 5

    assert Function(Unnamed())() == 5
    assert [failure.exc_type for failure in failures] == [AttributeError]
    assert drained() == []


def test_an_interrupt_during_the_description_is_raised():
    interrupts = [KeyboardInterrupt]

    def interrupted(function):
        if interrupts:
            raise interrupts.pop()
        return describe(function)

    with recording():
        _native.vectorcalls_record(Function, interrupted)
        with pytest.raises(KeyboardInterrupt):
            Function(len)("abc")
        assert Function(len)("abc") == 3
        _native.vectorcalls_stop()
        assert [op.name for op in drained()] == ["len"]


def test_a_recording_that_ends_while_a_call_is_described():
    def describe_and_stop(function):
        _native.vectorcalls_stop()
        return describe(function)

    with recording():
        _native.vectorcalls_record(Function, describe_and_stop)
        assert [Function(len)("abc") for _ in range(3)] == [3, 3, 3]
        assert [op.name for op in drained()] == ["len"]


def test_the_call_is_put_back():
    call = Function.__call__
    with recording():
        for _ in range(2):
            _native.vectorcalls_record(Function, describe)
            assert Function.__call__ is not call
            _native.vectorcalls_stop()
            _native.vectorcalls_stop()
            assert Function.__call__ is call


@pytest.mark.parametrize(
    ("kind", "message"), [(int, "cannot be changed"), (type("Own", (), {"__call__": id}), "other")]
)
def test_types_that_cannot_be_recorded(kind, message):
    with pytest.raises(RuntimeError, match=message):
        _native.vectorcalls_record(kind, describe)


def test_one_type_is_recorded_at_a_time(recorded):
    with pytest.raises(RuntimeError, match="recorded already"):
        _native.vectorcalls_record(Function, describe)
