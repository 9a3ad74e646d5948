"""The host device: recorded activities and API calls."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

from epprof_nb import host
from epprof_nb.core.options import Options
from epprof_nb.host._log import Activity, Log
from epprof_nb.recording.host.recorder import HostRecorder
from tests.helpers.host_streams import fail, wait_until
from tests.helpers.threads import run_all

pytestmark = pytest.mark.usefixtures("quiet_device")


def test_records_say_what_ran_where(recorder, stream):
    array = host.to_device(np.zeros((4, 5), np.float32), stream)
    host.launch(np.negative, array, array, grid=(2, 3), block=64, stream=stream)
    host.memset(array, 1, stream)
    stream.synchronize()
    rows = recorder.drain().activities.to_frame().sort_values("end_ns", ignore_index=True)
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
    assert sorted(rows.names("name").to_list()) == ["fail", "stream_synchronize"]


def test_records_of_several_streams_are_in_the_order_of_their_start(recorder):
    streams = [host.Stream() for _ in range(3)]
    for _ in range(2000):
        for stream in streams:
            host.launch(int, stream=stream)
    host.synchronize()
    rows = recorder.drain().activities
    assert (np.diff(rows["start_ns"]) >= 0).all()
    assert len(set(rows["correlation_id"].tolist())) == len(rows) >= 6000
    assert (rows["duration_ns"] == rows["end_ns"] - rows["start_ns"]).all()


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
    run_all(
        threading.Thread(target=lambda: [log.add(activity, 0, 1) for _ in range(5000)])
        for _ in range(4)
    )
    taken = log.drain()
    assert len(taken.activities["end_ns"]) == 20_000
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
