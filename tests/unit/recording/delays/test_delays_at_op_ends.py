"""Delays at the ends of ops: where they are, how long, and that nothing stays behind."""

import os
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

import epprof_nb
from epprof_nb import _native, host
from epprof_nb.analysis.experiments.ops_to_delay import Factor
from epprof_nb.host._queue import Queue
from epprof_nb.recording.delays import spins
from epprof_nb.recording.delays.delays_at_op_ends import OpEnds
from epprof_nb.recording.delays.device import HostDelays
from epprof_nb.recording.delays.spins import spin_on_host

US = 1_000
FACTORS = (Factor("work", "device"), Factor("work", "host"), Factor("other", "host"))


@pytest.fixture
def ends(monkeypatch):
    monkeypatch.setattr(spins, "_KNOWS_WAITS", False)  # so that delays are as long as ordered
    ends = OpEnds(FACTORS, HostDelays(), spin_on_host, {})
    ends.install()
    yield ends
    ends.remove()


def work(stream, name="work"):
    with epprof_nb.op(name):
        host.launch(np.sqrt, 4.0, stream=stream)


def test_a_spin_measures_its_length_and_its_use_of_the_processor():
    for keeps_gil in (True, False):
        for length_ns in (200 * US, 0, -5):
            begun = time.thread_time_ns()
            elapsed, on_processor = _native.spin(length_ns, keeps_gil)
            assert max(length_ns, 0) <= elapsed < 10**9
            assert 0 <= on_processor <= time.thread_time_ns() - begun


@pytest.mark.parametrize("knows_waits", [True, False])
def test_waits_for_a_core_count_as_delay_only_where_they_are_not_known(monkeypatch, knows_waits):
    monkeypatch.setattr(spins, "_KNOWS_WAITS", knows_waits)
    monkeypatch.setattr(spins, "_native", SimpleNamespace(spin=lambda *_: (5 * US, 3 * US)))
    assert spins.spin_on_host(3 * US, keeps_gil=True) == (3 * US if knows_waits else 5 * US)


def test_delays_are_at_the_chosen_executions_and_measured(ends):
    stream = host.Stream()
    ends.begin_repeat([{0: 300 * US, 2: 300 * US}, {1: 500 * US}, {}])
    for _ in range(3):
        work(stream)
    device, on_host, none = ends.end_repeat()
    assert device >= 600 * US
    assert on_host >= 500 * US
    assert none == 0
    assert ends.executions() == {"work": 3, "other": 0}
    ends.begin_repeat([{}, {}, {}])
    work(stream)
    assert ends.end_repeat() == [0, 0, 0]
    assert ends.executions()["work"] == 1


def test_delays_of_length_zero_are_launched_too(ends):
    stream = host.Stream()
    ends.begin_repeat([{0: 0}, {0: 0}, {}])
    work(stream)
    device, on_host, _ = ends.end_repeat()
    assert device > 0  # it measured itself
    assert on_host > 0


def test_a_delay_is_in_the_stream_of_the_last_launch(ends, monkeypatch):
    submitted, streams, submit = [], [host.Stream() for _ in range(3)], Queue.submit

    def spy(queue, command):
        submitted.append((queue.stream_id, getattr(command, "label", "")))
        submit(queue, command)

    monkeypatch.setattr(Queue, "submit", spy)
    ends.begin_repeat([{0: 100 * US}, {}, {}])
    with epprof_nb.op("work"):
        for stream in streams[:2]:
            host.launch(lambda: None, stream=stream)
        event = host.Event()
        event.record(streams[0])
        streams[2].wait_event(event)  # a wait is no launch
    assert ends.end_repeat()[0] >= 100 * US
    delayed = [stream_id for stream_id, label in submitted if label == "a delay of an experiment"]
    assert delayed == [streams[1].stream_id]


def test_an_op_that_has_not_launched_is_not_delayed_on_the_device(ends):
    ends.begin_repeat([{0: 100 * US}, {}, {}])
    thread = threading.Thread(target=lambda: epprof_nb.op("work").__enter__().__exit__())
    thread.start()
    thread.join()
    assert ends.end_repeat() == [0, 0, 0]
    assert ends.executions()["work"] == 1


def test_an_op_that_launches_nothing_is_not_delayed_after_the_work_of_others(ends):
    stream = host.Stream()
    ends.begin_repeat([dict.fromkeys(range(3), 100 * US), {}, {}])
    host.launch(np.sqrt, 4.0, stream=stream)
    with epprof_nb.op("work"):
        pass
    assert ends.end_repeat() == [0, 0, 0]
    ends.begin_repeat([{1: 100 * US}, {}, {}])
    with epprof_nb.op("work"):  # it launches in the inner one
        work(stream)
    assert ends.end_repeat()[0] >= 100 * US


def test_code_that_sleeps_uses_no_processor(ends):
    ends.install(measures=True)
    ends.begin_repeat([{}, {}, {}])
    with epprof_nb.op("work"), epprof_nb.op("other"):
        time.sleep(0.02)
    sleeping = ends.processor_ns()
    ends.begin_repeat([{}, {}, {}])
    with epprof_nb.op("work"), epprof_nb.op("work"):
        begun = time.thread_time_ns()
        while time.thread_time_ns() - begun < 20_000 * US:
            pass
    # The time of the inner op is part of that of the outer one.
    assert sleeping["work"] < 20_000 * US <= ends.processor_ns()["work"] < 40_000 * US


def test_executions_that_end_at_once_on_two_threads_are_all_counted(ends):
    """Another one ends after the first has taken its number, and before it goes on."""
    ends.begin_repeat([{}, {}, {}])
    of_op = ends._ops["work"]
    numbers = of_op._next

    class Numbers:
        def __next__(self):
            number = next(numbers)
            if number == 0:
                other = threading.Thread(target=lambda: epprof_nb.op("work").__enter__().__exit__())
                other.start()
                other.join()
            return number

    of_op._next = Numbers()
    with epprof_nb.op("work"):
        pass
    assert ends.executions()["work"] == 2
    assert ends.executions()["work"] == 2


@pytest.mark.parametrize("launches", [None, 0])
def test_nothing_is_called_at_a_begin_of_which_nothing_has_to_be_known(monkeypatch, launches):
    hooks = []
    monkeypatch.setattr(_native, "set_hooks", lambda *both: hooks.append(both))
    device = HostDelays()
    monkeypatch.setattr(device, "launches", lambda: launches)
    ends = OpEnds(FACTORS, device, spin_on_host, {})
    ends.install(measures=True)
    ends.measure_no_more()
    ends.remove()
    (measured, _), (begins, at_end), _ = hooks
    assert set(measured) == set(at_end) == {"work", "other"}
    assert set(begins or ()) == (set() if launches is None else {"work"})


def test_ops_with_an_empty_name_are_delayed():
    ends = OpEnds([Factor("(unnamed)", "host")], HostDelays(), lambda ns, _: ns, {})
    ends.install()
    try:
        ends.begin_repeat([{0: US}])
        with epprof_nb.op(""):
            pass
        assert ends.end_repeat() == [US]
    finally:
        ends.remove()


@pytest.mark.parametrize("keeps_gil", [True, False])
def test_delays_keep_the_gil_where_the_op_computes(keeps_gil):
    kept = []

    def spin(length_ns, keeps):
        kept.append(keeps)
        return length_ns

    ends = OpEnds(FACTORS, HostDelays(), spin, {})
    ends.install()
    try:
        ends.keep_gil({"work"} if keeps_gil else ())
        ends.begin_repeat([{}, {0: US}, {}])
        work(host.Stream())
    finally:
        ends.remove()
    assert kept == [keeps_gil]


def test_a_stream_that_is_closed_before_its_delay(ends):
    stream = host.Stream()
    ends.begin_repeat([{0: 100 * US}, {0: 0}, {}])
    with epprof_nb.op("work"):
        host.launch(np.sqrt, 4.0, stream=stream)
        stream.close()
    assert ends.end_repeat()[0] == 0


def test_a_stream_that_is_gone_before_its_delay(ends):
    ends.begin_repeat([{0: 100 * US}, {}, {}])
    with epprof_nb.op("work"):
        host.launch(np.sqrt, 4.0, stream=host.Stream())
    assert ends.end_repeat()[0] >= 0
    host.synchronize()


def test_ops_open_on_two_threads_at_once(ends):
    ends.begin_repeat([dict.fromkeys(range(20), US), dict.fromkeys(range(20), US), {}])
    both = threading.Barrier(2)

    def run():
        stream = host.Stream()
        for _ in range(10):
            with epprof_nb.op("work"):
                both.wait(60)
                host.launch(np.sqrt, 4.0, stream=stream)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    device, on_host, _ = ends.end_repeat()
    assert device >= 20 * US
    assert on_host >= 20 * US
    assert ends.executions()["work"] == 20


def test_an_op_that_fails_is_delayed_and_its_error_remains(ends):
    ends.begin_repeat([{}, {0: 200 * US}, {}])
    with pytest.raises(KeyError, match="mine"), epprof_nb.op("work"):
        raise KeyError("mine")
    assert ends.end_repeat()[1] >= 200 * US


def test_a_failed_kernel_ends_no_experiment(ends):
    stream = host.Stream()
    ends.begin_repeat([{0: 100 * US}, {}, {}])
    with epprof_nb.op("work"):
        host.launch(lambda: 1 / 0, stream=stream)
    assert ends.end_repeat()[0] == 0  # the stream skips what follows
    with pytest.raises(host.DeviceError, match="ZeroDivisionError"):
        stream.synchronize()


def test_decorated_functions_are_delayed(ends):
    @epprof_nb.op("other")
    def other():
        return 3

    ends.begin_repeat([{}, {}, {0: 200 * US}])
    assert other() == 3
    assert ends.end_repeat()[2] >= 200 * US


def test_nothing_stays_behind(ends):
    ends.begin_repeat([{0: 100 * US}, {0: 100 * US}, {}])
    ends.remove()
    work(host.Stream())
    assert ends.end_repeat() == [0, 0, 0]
    assert ends.executions()["work"] == 0


def test_a_forked_child_is_not_delayed(ends):
    ends.begin_repeat([{}, {0: 100 * US}, {}])
    child = os.fork()
    if not child:
        work(host.Stream())
        os._exit(ends.executions()["work"])
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_delays_are_no_part_of_a_recording(ends):
    stream = host.Stream()
    ends.begin_repeat([{0: 100 * US}, {0: 100 * US}, {}])
    with epprof_nb.profile() as prof:
        work(stream)
    assert prof.activities["name"].tolist() == ["sqrt"]
    assert prof.ops["name"].tolist() == ["work"]


def test_hooks_may_change_while_they_run():
    def remove():
        _native.set_hooks(None, None)

    _native.set_hooks({"work": remove}, {"work": lambda: 1 / 0})
    with epprof_nb.op("work"):
        pass
    with pytest.raises(TypeError, match="dict or None"):
        _native.set_hooks([], None)


def test_the_error_of_a_hook_ends_the_op():
    _native.set_hooks(None, {"work": lambda: 1 / 0})
    try:
        with epprof_nb.profile() as prof:
            with pytest.raises(ZeroDivisionError), epprof_nb.op("work"):
                pass
            with epprof_nb.op("next"):
                pass
    finally:
        _native.set_hooks(None, None)
    assert prof.ops["parent_op_id"].isna().all()
