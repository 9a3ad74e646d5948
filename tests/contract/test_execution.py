"""Execution contract: asynchronous work, order within a stream, overlap, waits, correct bytes."""

from __future__ import annotations

import itertools
import threading
import time

import numpy as np
import pytest

import epprof_nb
from tests.contract.rows import kernels_of
from tests.helpers.longer_kernels import with_longer_kernels
from tests.helpers.threads import run_all


def test_a_launch_returns_before_the_work_is_done(device, rig):
    work = device.kernels(["slow"])["slow"]
    stream = device.stream()

    def launch(busy_ms):
        array = rig.array(1.0)
        work(array, 1.0, 1.0, busy_ms=busy_ms, stream=stream)
        was_running = not device.done(stream)
        stream.synchronize()
        return array if was_running else None

    array = with_longer_kernels(launch)
    assert device.done(stream)
    assert rig.content(array)[0] == 2.0


def test_recorded_launch_ends_before_its_kernel_does(device, rig):
    work = device.kernels(["slow"])["slow"]
    array, stream = rig.array(1.0), device.stream()

    def record(busy_ms):
        with epprof_nb.profile() as profile:
            work(array, 1.0, 0.0, busy_ms=busy_ms, stream=stream)
            stream.synchronize()
        kernel = kernels_of(profile).loc["slow"]
        calls = profile.api_calls
        call = calls[calls["correlation_id"] == kernel["correlation_id"]].iloc[0]
        assert call["start_ns"] <= kernel["start_ns"] + device.clock_slack_ns
        assert 0.99e6 * busy_ms <= kernel["duration_ns"] <= profile.wall_ns
        return True if call["end_ns"] < kernel["end_ns"] else None

    assert with_longer_kernels(record)


def test_work_of_one_stream_runs_in_order(device, rig):
    names = ["first", "second", "third"]
    made = device.kernels(names)
    array, stream = rig.array(1.0), device.stream()
    with epprof_nb.profile() as profile:
        made["first"](array, 2.0, 1.0, busy_ms=30, stream=stream)
        made["second"](array, 3.0, 0.0, busy_ms=1, stream=stream)
        made["third"](array, 1.0, -2.0, stream=stream)
        stream.synchronize()
    assert rig.content(array).tolist() == [7.0] * 64
    kernels = kernels_of(profile).loc[names]
    assert kernels["stream_id"].nunique() == 1
    for earlier, later in itertools.pairwise(names):
        starts, ends = kernels["start_ns"], kernels["end_ns"]
        assert starts[later] >= ends[earlier] - device.clock_slack_ns


def test_streams_overlap(device, rig):
    made = device.kernels(["left", "right"])
    arrays = rig.array(1.0), rig.array(1.0)
    streams = device.stream(), device.stream()

    def record(busy_ms):
        with epprof_nb.profile() as profile:
            for name, array, stream in zip(made, arrays, streams, strict=True):
                made[name](array, 1.0, 1.0, busy_ms=busy_ms, stream=stream)
            device.synchronize()
        kernels = kernels_of(profile)
        assert kernels["stream_id"].nunique() == 2
        overlap = kernels["end_ns"].min() - kernels["start_ns"].max()
        return True if overlap > 0.25e6 * busy_ms else None

    assert with_longer_kernels(record)


def test_an_event_wait_orders_work_across_streams(device, rig):
    made = device.kernels(["writer", "reader"])
    array = rig.array(1.0)
    producer, consumer, event = device.stream(), device.stream(), device.event()

    def record(busy_ms):
        with epprof_nb.profile() as profile:
            made["writer"](array, 0.0, 5.0, busy_ms=busy_ms, stream=producer)
            device.record(event, producer)
            consumer.wait_event(event)
            made["reader"](array, 2.0, 0.0, stream=consumer)
            # Only the stream must wait, not the caller.
            was_running = not device.done(producer)
            consumer.synchronize()
        assert rig.content(array).tolist() == [10.0] * 64
        return kernels_of(profile) if was_running else None

    kernels = with_longer_kernels(record)
    assert kernels["stream_id"].nunique() == 2
    ready = kernels.loc["writer", "end_ns"]
    assert kernels.loc["reader", "start_ns"] >= ready - device.clock_slack_ns


def test_a_chain_of_waits_crosses_many_streams(device, rig):
    names = [f"link_{i}" for i in range(5)]
    made = device.kernels(names)
    array, event = rig.array(0.0), None
    with epprof_nb.profile() as profile:
        streams = [device.stream() for _ in names]
        for i, (name, stream) in enumerate(zip(names, streams, strict=True)):
            if event is not None:
                stream.wait_event(event)
            made[name](array, 10.0, i, busy_ms=20, stream=stream)
            event = device.event()
            device.record(event, stream)
        event.synchronize()
    assert rig.content(array)[0] == 1234.0
    kernels = kernels_of(profile).loc[names]
    gaps = kernels["start_ns"].to_numpy()[1:] - kernels["end_ns"].to_numpy()[:-1]
    assert (gaps >= -device.clock_slack_ns).all()


def test_a_wait_is_for_the_latest_record_before_it(device, rig):
    made = device.kernels(["early", "late", "waiting"])
    array, other = rig.array(1.0), rig.array(1.0)
    producer, consumer, event = device.stream(), device.stream(), device.event()

    def record(busy_ms):
        with epprof_nb.profile() as profile:
            made["early"](array, 1.0, 0.0, busy_ms=30, stream=producer)
            device.record(event, producer)
            consumer.wait_event(event)
            made["late"](array, 1.0, 0.0, busy_ms=busy_ms, stream=producer)
            device.record(event, producer)
            made["waiting"](other, 1.0, 0.0, stream=consumer)
            device.synchronize()
        kernels = kernels_of(profile)
        waited_for_late = kernels.loc["waiting", "start_ns"] >= kernels.loc["late", "end_ns"]
        return None if waited_for_late else True

    assert with_longer_kernels(record)


def test_an_event_never_recorded_holds_nothing_up(device, rig):
    work = device.kernels(["work"])["work"]
    array, stream = rig.array(1.0), device.stream()
    stream.wait_event(device.event())
    device.event().synchronize()
    work(array, 1.0, 1.0, stream=stream)
    stream.synchronize()
    assert rig.content(array)[0] == 2.0


def test_events_measure_time(device, rig):
    work = device.kernels(["work"])["work"]
    array, stream = rig.array(1.0), device.stream()
    start, end = device.event(), device.event()
    began = time.monotonic_ns()
    device.record(start, stream)
    work(array, 1.0, 0.0, busy_ms=50, stream=stream)
    device.record(end, stream)
    end.synchronize()
    ended = time.monotonic_ns()
    assert 49e6 <= device.elapsed_ns(start, end) <= ended - began + device.clock_slack_ns


def test_copies_and_sets_move_the_right_bytes_and_are_recorded(device):
    count = 300_000
    source, found = np.arange(count, dtype=np.float64), np.zeros(count)
    cleared = np.ones(count)
    stream = device.stream()
    first, second, third = (device.empty(count) for _ in range(3))
    with epprof_nb.profile() as profile:
        device.upload(first, source, stream)
        device.copy(second, first, stream)
        device.memset(third, 0, stream)
        device.download(found, second, stream)
        device.download(cleared, third, stream)
        stream.synchronize()
    assert np.array_equal(found, source)
    assert not cleared.any()
    activities = profile.activities
    copies = activities[activities["kind"] == "memcpy"]
    assert sorted(copies["copy_kind"].astype(str)) == ["DtoD", "DtoH", "DtoH", "HtoD"]
    sets = activities[activities["kind"] == "memset"]
    assert len(sets) == 1
    assert (copies["bytes"] == source.nbytes).all()
    assert (sets["bytes"] == source.nbytes).all()
    assert (copies["duration_ns"] > 0).all()


def test_threads_share_a_device(device, rig):
    names = [f"thread_{i}" for i in range(4)]
    made = device.kernels(names)
    arrays = [rig.array(0.0) for _ in names]

    def work(name, array):
        stream = device.stream()
        for _ in range(50):
            made[name](array, 1.0, 1.0, stream=stream)
        stream.synchronize()

    threads = [threading.Thread(target=work, args=pair) for pair in zip(names, arrays, strict=True)]
    with epprof_nb.profile() as profile:
        run_all(threads)
    assert [rig.content(array)[0] for array in arrays] == [50.0] * 4
    kernels = kernels_of(profile)
    assert kernels.groupby(level=0).size().to_dict() == dict.fromkeys(names, 50)
    assert kernels.groupby(level=0)["stream_id"].nunique().eq(1).all()


@pytest.mark.parametrize("streams", [1, 3])
def test_device_synchronisation_waits_for_every_stream(device, rig, streams):
    work = device.kernels(["work"])["work"]
    pairs = [(rig.array(0.0), device.stream()) for _ in range(streams)]
    for array, stream in pairs:
        work(array, 1.0, 1.0, busy_ms=50, stream=stream)
    device.synchronize()
    assert all(device.done(stream) for _, stream in pairs)
