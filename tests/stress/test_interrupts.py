"""Ctrl-C at random moments, and sessions without references."""

import _thread
import collections
import ctypes
import functools
import gc
import operator
import signal
import sys
import threading
import time

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
    assert not interrupts.run(100 * FACTOR)


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
        in_use.set()
        done.wait()

    other = threading.Thread(target=service._exclusively, args=(use,))
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


def interrupted(number, function, *args):
    """Call a function that is interrupted where Python handles signals for the `number`-th time.

    Python does so where a function begins and where a call has returned.

    Returns
    -------
    tuple
        The exception, None if the function has ended, and the places of all times if `number`
        is 0.
    """
    places = []
    left = number

    def note_place(frame, event, _):
        if event != "c_call" and frame.f_code.co_filename != __file__:
            places.append((event, frame.f_code.co_filename, frame.f_lineno))

    def raise_at(frame, event, _):
        nonlocal left
        if event != "c_call" and frame.f_code.co_filename != __file__:
            left -= 1
            if not left:
                raise KeyboardInterrupt(event, frame.f_code.co_filename, frame.f_lineno)

    sys.setprofile(raise_at if number else note_place)
    try:
        function(*args)
    except KeyboardInterrupt as error:
        return error, places
    finally:
        sys.setprofile(None)
    return None, places


# From a handler of another signal, or from another thread; neither is delayed.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # in finalizers
@pytest.mark.parametrize("part", ["begin", "end"])
def test_an_exception_at_any_place_of_a_profile_leaves_nothing_behind(part):
    kept = []

    def interrupted_profile(number):
        profiler = epprof_nb.profile()
        if part == "begin":
            error, places = interrupted(number, profiler.__enter__)
            if error is None:
                profiler.__exit__(None, None, None)
        else:
            profiler.__enter__()
            error, places = interrupted(number, profiler.__exit__, None, None, None)
        return error, places

    interrupted_profile(0)  # imports what the next ones need
    error, places = interrupted_profile(0)
    assert error is None
    first = {place: number for number, place in reversed(list(enumerate(places, 1)))}
    for number in [first[place] for place in first if "/recording/session/" in place[1]]:
        error, _ = interrupted_profile(number)
        if error is None:  # it was shorter this time
            continue
        kept.append(error)  # with its traceback, as IPython keeps it
        assert not interrupts.leaks(signal.getsignal(signal.SIGINT)), str(error)
        used_by_another = threading.Thread(target=service._exclusively, args=(int,), daemon=True)
        used_by_another.start()
        used_by_another.join(60)
        assert not used_by_another.is_alive(), f"{error}: the service is locked"
        assert service._depth == 0, str(error)
    assert len(kept) > 50
    assert not interrupts.leaks(signal.getsignal(signal.SIGINT))


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


OTHERS = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM)


class OtherSignalError(Exception):
    """Exception that handlers of other signals raise."""


@pytest.fixture
def others_raise():
    def on_signal(number, _):
        raise OtherSignalError(signal.Signals(number).name)

    before = [signal.signal(number, on_signal) for number in OTHERS]
    yield
    for number, handler in zip(OTHERS, before, strict=True):
        signal.signal(number, handler)


def sending(*numbers):
    """Return a function that leaves signals pending: neither it nor the C library handles them."""
    return functools.partial(collections.deque, map(ctypes.CDLL(None)["raise"], numbers), 0)


def handled():
    """Let Python handle the signals that are pending; return the names of those that raised."""
    names = []
    while True:
        try:
            for _ in range(3):
                time.sleep(0)
        except OtherSignalError as error:
            names.append(str(error))
        else:
            return names


@in_main_thread
@pytest.mark.usefixtures("others_raise")
@pytest.mark.parametrize("call", [_native.uninterrupted, lambda end: _native.call_then(end, int)])
def test_handlers_of_other_signals_that_raise_do_not_keep_ctrl_c_held(call):
    handler = signal.getsignal(signal.SIGINT)
    for count in range(1, len(OTHERS) + 1):
        with pytest.raises(OtherSignalError, match=OTHERS[0].name):
            call(sending(*OTHERS[:count]))
        assert signal.getsignal(signal.SIGINT) is handler
        assert handled() == []
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


@in_main_thread
@pytest.mark.usefixtures("others_raise")
def test_ctrl_c_is_handled_after_the_handler_of_another_signal_that_raised():
    def call():
        try:
            _native.uninterrupted(sending(signal.SIGINT, signal.SIGALRM))
        except OtherSignalError:
            handled()

    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt) as raised:
        call()
    assert isinstance(raised.value.__context__, OtherSignalError)
    assert signal.getsignal(signal.SIGINT) is handler


@in_main_thread
@pytest.mark.usefixtures("others_raise")
@pytest.mark.parametrize("moment", ["before", "inside"])
def test_the_handler_of_another_signal_in_a_finalizer_is_no_ctrl_c(monkeypatch, moment):
    reported = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: reported.append(args.exc_type))
    send = sending(signal.SIGALRM)
    kept = [_native.Finalizer(send if moment == "inside" else int)]
    # In C, so that nothing else handles the signal before the finalizer runs.
    steps = [send if moment == "before" else int, kept.clear]
    collections.deque(map(operator.call, steps), maxlen=0)
    assert handled() == []
    assert reported == [OtherSignalError]


@in_main_thread
def test_ctrl_c_before_a_finalizer_is_raised_after_it():
    ended = []
    kept = [_native.Finalizer(ended.append, 1)]
    steps = [sending(signal.SIGINT), kept.clear]
    with pytest.raises(KeyboardInterrupt):
        collections.deque(map(operator.call, steps), maxlen=0)
    assert ended == [1]
