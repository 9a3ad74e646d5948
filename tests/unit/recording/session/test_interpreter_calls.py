"""Time of the interpreter to call markers, measured outside of recordings."""

import sys
from array import array

import pytest

import epprof_nb
from epprof_nb import _native
from epprof_nb.core.recording_costs import (
    FUNCTIONS,
    INNER_STATEMENTS,
    OPS,
    STATEMENTS,
    SUSPENSIONS,
)
from epprof_nb.recording.session import interpreter_calls
from epprof_nb.recording.session.interpreter_calls import ns_per_event
from epprof_nb.recording.statements.statement_registry import IN_FUNCTION, NO_PARENT

KINDS = (STATEMENTS, INNER_STATEMENTS, FUNCTIONS, SUSPENSIONS)


@pytest.mark.parametrize("kind", KINDS)
def test_the_interpreter_takes_time_to_call_markers(kind):
    interpreter_calls._measured_ns.cache_clear()
    assert 0 < ns_per_event(kind) < 100_000
    assert sys.getprofile() is None


@pytest.mark.parametrize("set_function", [sys.settrace, sys.setprofile])
def test_nothing_is_measured_while_a_debugger_or_profiler_is_in_use(set_function):
    interpreter_calls._measured_ns.cache_clear()
    set_function(lambda *_: None)
    try:
        times = [ns_per_event(kind) for kind in KINDS]
    finally:
        set_function(None)
    assert times == [interpreter_calls._USUAL_NS[kind] for kind in KINDS]
    assert interpreter_calls._measured_ns.cache_info().currsize == 0


def test_nothing_is_measured_while_another_profile_records():
    interpreter_calls._measured_ns.cache_clear()
    with epprof_nb.profile():
        assert ns_per_event(STATEMENTS) == interpreter_calls._USUAL_NS[STATEMENTS]
    assert interpreter_calls._measured_ns.cache_info().currsize == 0


def test_other_events_have_no_markers():
    assert ns_per_event(OPS) == 0


def test_they_record_nothing_in_a_recording():
    interpreter_calls._measured_ns.cache_clear()
    with epprof_nb.profile() as prof:
        for kind in KINDS:
            interpreter_calls._measured_ns(kind)
    interpreter_calls._measured_ns.cache_clear()
    assert not len(prof.tables["ops"])


def test_markers_count_by_where_they_are():
    outside, inside, nested = NO_PARENT, IN_FUNCTION, 1
    parents, names = array("i", [outside, inside, nested]), array("I", [_native.intern("s")] * 3)
    first = _native.add_statements(parents.tobytes(), names.tobytes())
    with epprof_nb.profile():
        _native.take_costs(True)
        _native.line(first)
        with _native.body(first):
            for key in (first + 1, first + 2, first + 2):
                _native.line(key)
            _native.back(first + 1)
        events = [count for _, count in _native.take_costs(False)]
    kinds = STATEMENTS, INNER_STATEMENTS, FUNCTIONS
    assert [events[kind] for kind in kinds] == [1, 4, 2]
