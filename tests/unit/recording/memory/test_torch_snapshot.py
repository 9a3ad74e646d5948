"""Snapshots of PyTorch's allocator as arrays, compared with its own statistics."""

import numpy as np
import pytest

from epprof_nb.recording.memory.torch_snapshot import ACTIONS, read_snapshot
from tests.helpers.torch_snapshots import recorded_numbers, recorded_snapshot


@pytest.mark.parametrize(("name", "at"), [("training", "after_steps"), ("graph", "graph")])
def test_sums_equal_the_statistics_of_pytorch(name, at):
    read = read_snapshot(recorded_snapshot(name))
    numbers = recorded_numbers()[at]
    in_use = read.in_use()
    assert read.blocks.nbytes[in_use].sum() == numbers["allocated_bytes.all.current"]
    assert read.blocks.requested[in_use].sum() == numbers["requested_bytes.all.current"]
    assert read.segments.nbytes.sum() == numbers["reserved_bytes.all.current"]


def test_blocks_fill_their_segments():
    read = read_snapshot(recorded_snapshot("graph"))
    sums = np.zeros(len(read.segments), np.int64)
    np.add.at(sums, read.blocks.segment, read.blocks.nbytes)
    assert sums.tolist() == read.segments.nbytes.tolist()
    assert read.segments.pool.any(axis=1).sum() == 2  # those of the CUDA graph


def test_events_keep_their_order_and_actions():
    snapshot = recorded_snapshot("training")
    events = read_snapshot(snapshot).events
    (trace,) = snapshot["device_traces"]
    assert [ACTIONS[code] for code in events.action] == [entry["action"] for entry in trace]
    assert events.time_us.tolist() == [entry["time_us"] for entry in trace]
    assert events.of("alloc", "oom").sum() == events.of("free_completed").sum() == 1996


def test_out_of_memory_has_the_free_bytes_and_new_actions_are_other():
    entry = {"size": 100, "stream": 0, "time_us": 5}
    traces = [[], [{**entry, "action": "oom", "device_free": 7}, {**entry, "action": "melt"}]]
    events = read_snapshot({"segments": [], "device_traces": traces}).events
    assert events.address.tolist() == [7, 0]
    assert [ACTIONS[code] for code in events.action] == ["oom", "other"]
    assert events.device.tolist() == [1, 1]
