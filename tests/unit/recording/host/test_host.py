"""The host device: streams, their threads, and waiting for them."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
import traceback

import numpy as np
import pytest

from epprof_nb import host
from epprof_nb.host import _queue
from tests.helpers.host_streams import wait_until

pytestmark = pytest.mark.usefixtures("quiet_device")


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
    time.sleep(0.05)  # a launch too many would come now
    assert len(launched) == _queue.DEPTH - 1
    gate.set()
    thread.join()
    stream.synchronize()
    assert stream.query()


def workers_of(stream_ids):
    """Number of these streams that have a worker thread."""
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
    with pytest.raises(RuntimeError, match="is closed"):
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
    # Streams in cycles end inside the garbage collector, which may run anywhere.
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
    give_up = threading.Timer(60, gate.set)
    give_up.start()
    host.launch(gate.wait, stream=stream)
    main = threading.main_thread().ident
    timer = threading.Timer(0.1, signal.pthread_kill, (main, signal.SIGINT))

    def wait():
        timer.start()
        stream.synchronize()

    try:
        with pytest.raises(KeyboardInterrupt):
            wait()
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
