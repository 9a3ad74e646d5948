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
from epprof_nb.recording.session.interpreter_calls import ns_per_event
from epprof_nb.recording.statements.statement_registry import IN_FUNCTION, NO_PARENT


@pytest.mark.parametrize("kind", [STATEMENTS, INNER_STATEMENTS, FUNCTIONS, SUSPENSIONS])
def test_the_interpreter_takes_time_to_call_markers(kind):
    ns_per_event.cache_clear()
    assert 0 < ns_per_event(kind) < 100_000
    assert sys.getprofile() is None


def test_other_events_have_no_markers():
    assert ns_per_event(OPS) == 0


def test_they_record_nothing_in_a_recording():
    ns_per_event.cache_clear()
    with epprof_nb.profile() as prof:
        for kind in STATEMENTS, INNER_STATEMENTS, FUNCTIONS, SUSPENSIONS:
            ns_per_event(kind)
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
