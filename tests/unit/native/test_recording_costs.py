"""Time that recording takes of the program's threads: a sample of events is timed in place."""

import threading
import time

import pytest

import epprof_nb
from epprof_nb import _native
from epprof_nb.core.recording_costs import BACKWARD, NAME_OF_KIND, STATEMENTS

_NOTHING = [(0, 0)] * len(NAME_OF_KIND)


def timed(count):
    """Return which of `count` events of a new thread are timed."""
    found = []
    thread = threading.Thread(
        target=lambda: found.extend(bool(_native.cost_begin(STATEMENTS)) for _ in range(count))
    )
    thread.start()
    thread.join()
    return found


def test_the_first_events_of_each_thread_are_timed_then_a_sample():
    _native.take_costs(True)
    for events in timed(10_000), timed(10_000):
        assert all(events[:64])
        assert 100 < sum(events[64:]) < 1_000


def test_a_sum_is_taken_once():
    _native.take_costs(True)
    begin = _native.cost_begin(STATEMENTS)
    time.sleep(2e-3)
    assert _native.cost_resume(begin) >= begin + 2_000_000
    _native.cost_end(STATEMENTS, begin)
    (statements, events), *others = _native.take_costs(False)
    assert 0 < statements <= 300_000  # in more, the thread would have had no core
    assert events == 1
    assert others == _NOTHING[1:]
    assert _native.take_costs(False) == _NOTHING


def test_statements_are_timed_by_the_op_that_is_open_after_them():
    with epprof_nb.profile() as prof:
        _native.take_op_costs()
        with epprof_nb.op("a"):
            begin = _native.cost_begin(STATEMENTS)
            _native.cost_end(STATEMENTS, begin - 100_000)
            _native.cost_end(BACKWARD, _native.cost_begin(BACKWARD))  # has ops of its own
        (op_id, kind, ns, events), *others = _native.take_op_costs()
    assert (kind, others) == (STATEMENTS, [])
    assert (ns > 90_000, events) == (True, 1)
    assert prof.ops["name"].to_dict()[op_id] == "a"


def test_an_event_that_is_not_timed_adds_nothing():
    _native.take_costs(True)
    assert _native.cost_resume(0) == 0
    _native.cost_end(STATEMENTS, 0)
    assert _native.take_costs(False) == _NOTHING


def test_timed_events_stand_for_the_others():
    _native.take_costs(True)
    for _ in range(20_000):
        _native.cost_end(STATEMENTS, _native.cost_begin(STATEMENTS))
    events = _native.take_costs(False)[STATEMENTS][1]
    assert events == pytest.approx(20_000, rel=0.2)


def test_an_event_in_which_the_thread_had_no_core_took_as_long_as_others():
    _native.take_costs(True)
    for _ in range(3):
        _native.cost_end(STATEMENTS, _native.cost_begin(STATEMENTS))
    _native.cost_end(STATEMENTS, _native.cost_begin(STATEMENTS) - 10**9)
    ns, events = _native.take_costs(False)[STATEMENTS]
    assert events == 4
    assert ns <= 300_000 * 3  # as those before, if each of them had been delayed


def test_the_processor_time_of_a_long_event_counts():
    _native.take_costs(True)
    begin = time.thread_time_ns()
    while time.thread_time_ns() < begin + 2_000_000:
        pass
    time.sleep(1e-3)
    _native.cost_add(BACKWARD, begin)
    ns, events = _native.take_costs(False)[BACKWARD]
    assert events == 1
    assert 2_000_000 <= ns <= time.thread_time_ns() - begin


@pytest.mark.parametrize("kind", [len(NAME_OF_KIND), -1])
def test_other_kinds_are_refused(kind):
    with pytest.raises(ValueError, match="no such kind"):
        _native.cost_begin(kind)
    with pytest.raises(ValueError, match="no such kind"):
        _native.cost_end(kind, 1)
    with pytest.raises(TypeError, match="a kind and a begin"):
        _native.cost_add(kind)


def test_a_profile_has_the_sums():
    with epprof_nb.profile() as prof:
        for _ in range(1000):
            with epprof_nb.op("a"):
                pass
    assert prof.info["recording_costs"].keys() == {"ops"}
    assert 0 < prof.info["recording_costs"]["ops"] < prof.wall_ns
