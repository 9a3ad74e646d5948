"""Ctrl-C at random moments, and sessions that nobody holds."""

import _thread
import gc
import signal
import threading

import pytest

import epprof_nb
from epprof_nb import _native
from epprof_nb.core.options import Options
from epprof_nb.recording.session import session
from epprof_nb.recording.session.service import service
from tests.stress import FACTOR, interrupts

in_main_thread = pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(),
    reason="signals are handled on the main thread",
)


@in_main_thread
def test_interrupts_at_random_moments_leave_nothing_behind():
    assert not interrupts.run(300 * FACTOR)


def test_a_session_that_nobody_holds_ends_itself():
    kept = session.start(Options(time_limit_s=60.0))
    assert service.open_subscriptions == 1
    del kept
    assert not interrupts.leaks(signal.getsignal(signal.SIGINT))


def test_a_profile_left_in_a_reference_cycle_ends_with_it():
    profiler = epprof_nb.profile()
    profiler.__enter__()
    cycle = [profiler]
    cycle.append(cycle)
    del profiler, cycle
    gc.collect()
    assert service.open_subscriptions == 0


def test_a_session_abandoned_while_the_service_is_in_use_ends_after_it():
    kept = [session.start()]
    in_use, done = threading.Event(), threading.Event()

    def use():
        with service._exclusive():
            in_use.set()
            done.wait()

    other = threading.Thread(target=use)
    other.start()
    in_use.wait()
    kept.clear()  # returns at once
    assert service.open_subscriptions == 1
    done.set()
    other.join()
    assert service.open_subscriptions == 0


def test_opening_that_fails_half_way_is_undone(monkeypatch):
    def fail(*_):
        raise MemoryError

    monkeypatch.setattr("epprof_nb.recording.session.session.TimeLimit", fail)
    with pytest.raises(MemoryError):
        session.start(Options(time_limit_s=60.0))
    assert service.open_subscriptions == 0
    assert not service._recording


@in_main_thread
def test_an_interrupt_is_held_back_until_the_call_ends():
    steps = []

    def critical():
        signal.raise_signal(signal.SIGINT)
        _thread.interrupt_main()
        steps.append("after the signals")

    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        _native.uninterrupted(critical)
    assert steps == ["after the signals"]
    assert signal.getsignal(signal.SIGINT) is handler


@in_main_thread
def test_the_end_is_repeated_until_no_handler_of_another_signal_raises():
    calls = []

    def end():
        calls.append(1)
        if len(calls) < 3:
            raise TimeoutError  # as a handler of SIGALRM may

    with pytest.raises(ZeroDivisionError):
        _native.call_then(end, divmod, 1, 0)
    assert len(calls) == 3
