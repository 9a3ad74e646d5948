"""The host device: errors in kernels, and errors raised at the call."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from epprof_nb import host
from epprof_nb.host import _queue
from tests.helpers.host_streams import fail

pytestmark = pytest.mark.usefixtures("quiet_device")


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
    assert "2 later commands were skipped" in message
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
        (lambda: host.set_memory_limit(-1), ValueError, "at least 0"),
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
