"""What is particular to the host device: errors, memory, threads, forks, its log's bound."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
import traceback
import weakref

import numpy as np
import pytest

from epprof_nb import host
from epprof_nb.host import _queue, memory
from epprof_nb.host._log import Activity, Log
from epprof_nb.options import Options
from epprof_nb.recorders.host import HostRecorder


@pytest.fixture(autouse=True)
def _quiet_device():
    yield
    host.synchronize()


@pytest.fixture
def stream():
    made = host.Stream()
    yield made
    made.close()


@pytest.fixture
def recorder():
    made = HostRecorder()
    made.start(Options())
    yield made
    made.stop()


def fail(*_):
    raise ValueError("this kernel fails")


def wait_until(condition, seconds=5.0):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)
    return condition()


# -- errors


def test_a_failing_kernel_surfaces_at_the_synchronisation_with_its_cause(stream):
    array = host.to_device(np.zeros(4), stream)
    host.launch(fail, array, stream=stream, name="scale")
    host.memset(array, 255, stream)
    host.memset(array, 255, stream)
    with pytest.raises(host.DeviceError) as caught:
        stream.synchronize()
    assert isinstance(caught.value.__cause__, ValueError)
    message = str(caught.value)
    assert "kernel 'scale'" in message
    assert f"{__file__}:" in message
    assert "this kernel fails" in message
    assert "2 commands after it were not run" in message
    stream.synchronize()
    assert host.to_host(array, stream).tolist() == [0.0] * 4, "what followed must not run"


@pytest.mark.parametrize("wait", ["stream", "event", "device", "to_host"])
def test_every_synchronisation_surfaces_the_error_once(stream, wait):
    array, event = host.empty(1), host.Event()
    host.launch(fail, array, stream=stream)
    event.record(stream)
    call = {
        "stream": stream.synchronize,
        "event": event.synchronize,
        "device": host.synchronize,
        "to_host": lambda: host.to_host(array, stream),
    }[wait]
    with pytest.raises(host.DeviceError, match="fail"):
        call()
    call()


def test_an_error_stays_with_its_stream(stream):
    other = host.Stream()
    host.launch(fail, stream=stream)
    out = host.empty(3)
    host.memset(out, 0, other)
    other.synchronize()
    with pytest.raises(host.DeviceError):
        stream.synchronize()


def test_an_error_outlives_its_stream():
    host.launch(fail, stream=host.Stream(), name="orphan")
    gc.collect()
    with pytest.raises(host.DeviceError, match="orphan"):
        host.synchronize()
    host.synchronize()
    assert all(queue.stream_id == 0 or not queue.failed for queue in _queue.live_queues())


def test_an_event_behind_a_failure_still_fires(stream):
    other, event, out = host.Stream(), host.Event(), host.empty(1)
    host.launch(fail, stream=stream)
    event.record(stream)
    other.wait_event(event)
    host.memset(out, 0, other)
    other.synchronize()
    with pytest.raises(host.DeviceError):
        stream.synchronize()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: host.launch(np.negative, np.zeros(3)), TypeError, "to_device"),
        (lambda: np.asarray(host.empty(3)), TypeError, "to_host"),
        (lambda: host.empty(3, object), TypeError, "numeric"),
        (lambda: host.memset(host.empty(3), 256), ValueError, "0 to 255"),
        (lambda: host.launch(np.negative, grid=(1, 2, 3, 4)), ValueError, "grid"),
        (lambda: host.launch(np.negative, block=0), ValueError, "block"),
        (lambda: host.memcpy(host.empty(3), host.empty(4)), ValueError, "same size"),
        (lambda: host.memcpy(host.empty(2), np.zeros(4, "f4")[::2]), ValueError, "contiguous"),
        (lambda: host.Event().elapsed_ns(host.Event()), RuntimeError, "never recorded"),
        (lambda: host.set_memory_limit(-1), ValueError, "0 or more"),
    ],
)
def test_misuse_is_refused_at_the_call_with_what_to_do(call, error, text):
    with pytest.raises(error, match=text):
        call()
    host.synchronize()


def test_a_read_only_destination_is_refused():
    target = np.zeros(3, np.float32)
    target.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        host.memcpy(target, host.empty(3))


@pytest.mark.parametrize("wait", [host.synchronize, host.default_stream().synchronize])
def test_a_kernel_that_waits_for_the_device_fails_instead_of_hanging(stream, wait):
    host.launch(wait, stream=stream)
    with pytest.raises(host.DeviceError, match="inside a kernel"):
        stream.synchronize()


def test_a_kernel_may_launch_work_even_on_its_own_full_stream(stream):
    ran = []

    def launches():
        for _ in range(_queue.DEPTH + 10):
            host.launch(lambda: ran.append(1), stream=stream)

    host.launch(launches, stream=stream)
    stream.synchronize()
    stream.synchronize()
    assert len(ran) == _queue.DEPTH + 10


def test_a_full_stream_holds_the_launching_thread_up(stream):
    gate = threading.Event()
    host.launch(gate.wait, stream=stream)
    launched = []

    def launch_many():
        for i in range(_queue.DEPTH + 5):
            host.launch(int, stream=stream)
            launched.append(i)

    thread = threading.Thread(target=launch_many)
    thread.start()
    assert wait_until(lambda: len(launched) == _queue.DEPTH - 1)
    time.sleep(0.05)
    assert len(launched) == _queue.DEPTH - 1
    gate.set()
    thread.join()
    stream.synchronize()
    assert stream.query()


# -- copies and memory


def test_to_device_lets_go_of_its_source_at_once(stream):
    gate, source = threading.Event(), np.ones(1000)
    host.launch(gate.wait, stream=stream)
    array = host.to_device(source, stream)
    source[:] = 2
    gate.set()
    assert host.to_host(array, stream).tolist() == [1.0] * 1000


@pytest.mark.parametrize("value", [np.float32(3), np.zeros((0, 4)), np.arange(6).reshape(2, 3).T])
def test_any_shape_survives_the_round_trip(value):
    found = host.to_host(host.to_device(value))
    assert found.dtype == value.dtype
    assert np.array_equal(found, value)


def test_memory_is_counted_and_released_with_the_last_use(stream):
    before = host.memory_info().used
    array = host.empty((1000, 10), np.float64)
    assert host.memory_info().used == before + 80_000
    assert host.memory_info().peak >= before + 80_000
    gate = threading.Event()
    host.launch(lambda view: gate.wait(), array, stream=stream)
    reference = weakref.ref(array)
    del array
    assert reference() is not None, "work in flight keeps its arrays"
    assert host.memory_info().used == before + 80_000
    gate.set()
    stream.synchronize()
    assert wait_until(lambda: reference() is None)
    assert host.memory_info().used == before


def test_memory_beyond_the_limit_is_refused():
    info = host.memory_info()
    host.set_memory_limit(info.used + 1000)
    try:
        with pytest.raises(MemoryError, match=r"800 kB asked for.*set_memory_limit"):
            host.empty(100_000, np.float64)
        assert host.memory_info().used == info.used
        kept = host.empty(1000, np.uint8)
        assert kept.nbytes == 1000
    finally:
        host.set_memory_limit(info.limit)


def test_an_allocation_that_numpy_refuses_is_not_counted():
    before = host.memory_info().used
    with pytest.raises(ValueError, match="negative"):
        host.empty(-1)
    assert host.memory_info().used == before


def test_the_default_limit_respects_a_container(tmp_path, monkeypatch):
    limit = tmp_path / "memory.max"
    limit.write_text("2000000\n")
    monkeypatch.setattr(memory, "_CGROUP_LIMIT", limit)
    assert memory._default_limit() == 1_000_000
    limit.write_text("max\n")
    assert memory._default_limit() > 1_000_000


# -- threads


def workers_of(stream_ids):
    """How many of these streams have a worker thread now."""
    names = {f"epprof-host-stream-{stream_id}" for stream_id in stream_ids}
    return sum(thread.name in names for thread in threading.enumerate())


def test_threads_end_with_their_streams():
    streams = [host.Stream() for _ in range(4)]
    ids = [made.stream_id for made in streams]
    assert workers_of(ids) == 0, "no thread before there is work"
    for made in streams:
        host.launch(int, stream=made)
    assert workers_of(ids) == 4
    streams[0].close()
    streams[0].close()
    with pytest.raises(RuntimeError, match="was closed"):
        host.launch(int, stream=streams[0])
    streams[0].synchronize()
    del streams, made
    gc.collect()
    assert wait_until(lambda: workers_of(ids) == 0)


def test_a_closed_stream_finishes_its_work():
    made, array = host.Stream(), host.to_device(np.zeros(3))
    host.synchronize()
    host.launch(lambda view: (time.sleep(0.05), view.fill(7)), array, stream=made)
    made.close()
    made.synchronize()
    assert host.to_host(array).tolist() == [7.0] * 3


def test_device_synchronisation_waits_for_streams_nobody_holds():
    done = []
    host.launch(lambda: (time.sleep(0.1), done.append(1)), stream=host.Stream())
    host.synchronize()
    assert done == [1]


def test_streams_may_be_collected_at_any_moment():
    # Streams in cycles end inside the garbage collector, wherever it happens to run.
    ids = []
    thresholds = gc.get_threshold()
    gc.set_threshold(5, 2, 2)
    try:
        for _ in range(200):
            made = host.Stream()
            ids.append(made.stream_id)
            cycle = [made]
            cycle.append(cycle)
            host.launch(int, stream=made)
            ids.append(host.Stream().stream_id)
            host.synchronize()
    finally:
        gc.set_threshold(*thresholds)
    del made, cycle
    gc.collect()
    assert wait_until(lambda: workers_of(ids) == 0)
    left = {queue.stream_id for queue in _queue.live_queues()}
    assert not left.intersection(ids)


@pytest.mark.parametrize("restarting", [False, True])
def test_the_caller_can_be_interrupted_while_it_waits(stream, restarting):
    # Once CUDA has started in a process, waits behave as with restarting system calls.
    signal.siginterrupt(signal.SIGINT, not restarting)
    gate = threading.Event()
    give_up = threading.Timer(5, gate.set)
    give_up.start()
    host.launch(gate.wait, stream=stream)
    main = threading.main_thread().ident
    timer = threading.Timer(0.1, signal.pthread_kill, (main, signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            stream.synchronize()
        assert not gate.is_set()  # while it waited, not after
    finally:
        give_up.cancel()
        gate.set()
        signal.siginterrupt(signal.SIGINT, True)
    stream.synchronize()


def test_a_fork_starts_with_empty_streams(stream):
    gate, array = threading.Event(), host.to_device(np.ones(10), stream)
    stream.synchronize()
    host.launch(gate.wait, stream=stream)
    pending, closed = host.Event(), host.Stream()
    pending.record(stream)
    host.launch(int, stream=closed)
    closed.close()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            host.launch(np.add, array, 1, array, stream=stream)
            assert host.to_host(array, stream).tolist() == [2.0] * 10
            assert host.memory_info().used >= 80
            with pytest.raises(RuntimeError, match="forked"):
                pending.synchronize()
            closed.synchronize()
            host.synchronize()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    gate.set()
    assert status == 0
    assert host.to_host(array, stream).tolist() == [1.0] * 10


# -- recording


def test_records_say_what_ran_where(recorder, stream):
    array = host.to_device(np.zeros((4, 5), np.float32), stream)
    host.launch(np.negative, array, array, grid=(2, 3), block=64, stream=stream)
    host.memset(array, 1, stream)
    stream.synchronize()
    rows = recorder.drain().activities.to_frame()
    assert rows["kind"].tolist() == ["memcpy", "kernel", "memset", "synchronization"]
    assert rows["name"].tolist() == ["memcpy HtoD", "negative", "memset", "stream_synchronize"]
    assert rows["device_id"].unique().tolist() == [host.HOST_DEVICE_ID]
    assert rows["stream_id"].unique().tolist() == [stream.stream_id]
    assert rows["correlation_id"].is_unique
    assert (rows["correlation_id"] >= 2**32).all()
    assert rows["bytes"].dropna().tolist() == [80, 80]
    assert rows.loc[0, ["copy_kind", "src_kind", "dst_kind"]].tolist() == [
        "HtoD", "pageable", "device",
    ]  # fmt: skip
    dimensions = ["grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"]
    assert rows.loc[1, dimensions].tolist() == [2, 3, 1, 64, 1, 1]
    assert rows.loc[2, dimensions].isna().all()
    assert (rows["duration_ns"] == rows["end_ns"] - rows["start_ns"]).all()
    assert (rows["duration_ns"] >= 0).all()


def test_a_failed_kernel_is_recorded_and_those_skipped_are_not(recorder, stream):
    host.launch(fail, stream=stream)
    host.launch(int, stream=stream)
    with pytest.raises(host.DeviceError):
        stream.synchronize()
    rows = recorder.drain().activities
    assert rows.names("name").to_list() == ["fail", "stream_synchronize"]


def test_records_are_bounded_and_the_rest_is_counted(stream):
    recorder = HostRecorder()
    recorder.start(Options(max_records=10))
    for _ in range(25):
        host.launch(int, stream=stream)
    recorder.sync()
    first = recorder.drain()
    host.launch(int, stream=stream)
    recorder.sync()
    second = recorder.drain()
    recorder.stop()
    assert len(first.activities) == 10
    assert first.dropped == 15
    assert len(second.activities) == 0
    assert second.dropped == 1


def test_allocations_are_recorded_when_asked_for(stream):
    recorder = HostRecorder()
    recorder.start(Options(detail="memory"))
    array = host.empty(100, np.float64)
    address = array.address
    del array
    rows = recorder.drain().memory.to_frame()
    recorder.stop()
    assert rows["operation"].tolist() == ["allocation", "release"]
    assert rows["bytes"].tolist() == [800, 800]
    assert rows["address"].tolist() == [address, address]
    assert rows["correlation_id"].is_unique
    assert rows["time_ns"].is_monotonic_increasing
    assert rows["memory_kind"].tolist() == ["device", "device"]


def test_allocations_are_not_recorded_otherwise(recorder):
    host.empty(100)
    assert len(recorder.drain().memory) == 0


def test_nothing_is_recorded_before_the_start_or_after_the_stop(stream):
    recorder = HostRecorder()
    host.launch(int, stream=stream, name="before")
    stream.synchronize()
    recorder.start(Options())
    gate = threading.Event()
    host.launch(gate.wait, stream=stream, name="unfinished")
    recorder.stop()
    gate.set()
    host.launch(int, stream=stream, name="after")
    stream.synchronize()
    recorder.start(Options())
    taken = recorder.drain()
    recorder.stop()
    assert len(taken.activities) == 0
    assert taken.dropped == 0


def test_the_recorders_wait_leaves_errors_to_the_user(recorder, stream):
    host.launch(fail, stream=stream)
    recorder.sync()
    assert recorder.drain().activities.names("name").to_list() == ["fail"]
    with pytest.raises(host.DeviceError):
        stream.synchronize()


def test_the_recorder_describes_the_device(recorder):
    (device,) = recorder.devices()
    assert device["device_id"] == host.HOST_DEVICE_ID
    assert device["kind"] == "host"
    assert device["name"].startswith("host device (")
    assert "gpu" not in device["name"].lower()


def test_threads_lose_no_record():
    log = Log()
    log.start(1_000_000, memory=False, api=False)
    activity = Activity("kernel", "k", 1, grid=(1, 1, 1), block=(1, 1, 1))
    threads = [
        threading.Thread(target=lambda: [log.add(activity, 0, 1) for _ in range(5000)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    taken = log.drain()
    assert len(taken.activities) == 20_000
    assert (taken.activities["end_ns"] == 1).all()


def test_many_launches_leave_nothing_behind(stream):
    array = host.empty(10)
    before = host.memory_info().used
    for _ in range(3000):
        host.launch(np.negative, array, host.empty(10), stream=stream)
    stream.synchronize()
    gc.collect()
    assert wait_until(lambda: host.memory_info().used == before)
    assert stream._queue._commands.qsize() == 0
